/**
 * Finds sales whose segments have lost units. If the backend loses a return, a top-up or a withdrawal, but no take, then no log and
 * no lane shows it: units are for sale nowhere, or are for sale again after they were withdrawn. The same holds if units
 * move between two servers, and one server loses its part of the move.
 *
 * A sale with many returns takes long to add up. So after each page the check rests for a hundred times as long as it took.
 */
import type { SegmentAudit } from '../../engine/contract.ts';
import { counted } from '../../lib/counted.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { OlderNodes } from '../../postgres/older-nodes.ts';
import {
  begunBySegments,
  countedUnits,
  type GivenUnits,
  isStockExplained,
  readBegunUnits,
  readGivenUnits,
} from '../../sales/given-units.ts';
import type { HeldSales } from '../held/held-sales.ts';
import type { SyncStores } from '../held/sync-stores.ts';

/** Sales of this sync in one page. */
const PAGE_SALES = 100;
const REST_FACTOR = 100;

export interface LostUnits {
  readonly saleId: string;
  readonly generation: number;
  /** What is missing, for the log. */
  readonly problem: string;
}

export class SupplyCheck {
  readonly #stores: SyncStores;
  readonly #sales: HeldSales;
  /** Sales that this round has not checked yet. */
  #left: string[] = [];
  #notBeforeMs = 0;
  readonly #olderNodes: OlderNodes;

  constructor(stores: SyncStores, sales: HeldSales) {
    this.#stores = stores;
    this.#sales = sales;
    this.#olderNodes = new OlderNodes(stores.db);
  }

  /** Checks the next sales that this sync works on, and `others`, unless it rests. @returns those that have lost units */
  async next(others: readonly string[]): Promise<LostUnits[]> {
    const { backend } = this.#stores;
    const began = monotonicMs();
    // An in-process backend loses nothing as long as it lives. Nodes of 0.1.0 give units back without counting them.
    if (!backend.durable || began < this.#notBeforeMs || (await this.#olderNodes.areRunning())) return [];
    if (this.#left.length === 0) this.#left = [...this.#sales.logs].map(({ saleId }) => saleId);
    const page = [...this.#left.splice(0, PAGE_SALES), ...others];
    if (page.length === 0) return [];
    const lost = await this.#lostAmong(page);
    const now = monotonicMs();
    this.#notBeforeMs = now + (now - began) * REST_FACTOR;
    return lost;
  }

  async #lostAmong(page: readonly string[]): Promise<LostUnits[]> {
    const { db, backend } = this.#stores;
    const all = await readGivenUnits(db, page);
    const suspects = backend.isSpread ? all : all.filter(hasCome);
    const begun = await readBegunUnits(
      db,
      suspects.map(({ saleId }) => saleId),
    );
    const lost: LostUnits[] = [];
    for (const given of suspects) {
      const { saleId, segments, generation } = given;
      const audit = await backend.audits.audit(saleId, segments, generation);
      const began = begun.get(saleId);
      // Without this number, the sale was rebuilt between the two reads, or archived.
      const units = began?.generation === generation ? began.units : undefined;
      const problem = lossIn(given, audit) ?? (await this.#lossOfMoves(saleId, units, audit));
      if (problem !== undefined) lost.push({ saleId, generation, problem });
    }
    return lost;
  }

  /** Units have moved between two servers, and one server has lost its part of the move. */
  async #lossOfMoves(
    saleId: string,
    begunUnits: number | undefined,
    segments: readonly SegmentAudit[],
  ): Promise<string | undefined> {
    const bySegments = begunBySegments(segments);
    if (begunUnits === undefined || bySegments === undefined) return undefined;
    const units = begunUnits - bySegments;
    if (units === 0 || !(await isStockExplained(this.#stores.db, saleId))) return undefined;
    return units > 0
      ? `the segments have lost ${counted(units, 'unit')} that moved between them`
      : `the segments have ${counted(-units, 'unit')} twice, which moved between them`;
  }
}

/** Whether a segment has counted units that one server could lose. */
function hasCome({ returned, credited, withdrawn }: GivenUnits): boolean {
  return returned > 0 || credited > 0 || withdrawn > 0;
}

const KINDS = [
  { counter: 'returned', what: (units: number) => `${counted(units, 'unit')} that came back` },
  { counter: 'credited', what: (units: number) => `${counted(units, 'unit')} that were added` },
  { counter: 'withdrawn', what: (units: number) => `the withdrawal of ${counted(units, 'unit')}` },
] as const;

function lossIn(given: GivenUnits, segments: readonly SegmentAudit[]): string | undefined {
  const counted = countedUnits(segments);
  if (!counted) return undefined;
  const missing = KINDS.flatMap(({ counter, what }) => {
    const units = given[counter] - counted[counter];
    return units > 0 ? [what(units)] : [];
  });
  return missing.length === 0 ? undefined : `the segments have lost ${missing.join(', ')}`;
}
