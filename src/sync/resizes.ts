/**
 * Sales that operators want to have another number of segments, as the sync that works on them carries it out. Buyers wait
 * while a sale is built anew; so all that can be done before is done before.
 *
 *   wanted (a row of the ledger) ──drafted (draft.ts)──> logs are short ──> out of the loop, and rebuilt (rebuilds.ts)
 *
 * The sale sells on, and its orders are applied, until it is taken out of the loop. It dies anywhere: the row is open, and
 * the next sync begins anew; or its rebuild has begun the next generation, which is the wanted one.
 */
import { StaleGeneration } from '../engine/errors.ts';
import { type Draft, writeDraft } from '../rebuild/draft.ts';
import { readResizes, readWantedSegments } from '../sales/ledger.ts';
import { readSale } from '../sales/sale-rows.ts';
import type { HeldSales } from './held-sales.ts';
import type { SyncStores } from './sync-stores.ts';

/** What the logs hold is applied while buyers wait: they are to hold no more than this. */
const DRAINED_ORDERS = 2_000;
/** It is not waited for longer, if more is taken than sync can apply. */
const DRAIN_MAX_S = 20;

interface Drafting {
  readonly generation: number;
  readonly segments: number;
  readonly ended: Promise<void>;
  draft: Draft | undefined;
}

export class Resizes {
  readonly #stores: SyncStores;
  readonly #sales: HeldSales;
  readonly #catchUp: () => void;
  readonly #drafting = new Map<string, Drafting>();
  readonly #stopping = new AbortController();

  /** @param catchUp lets sync apply what is in the logs, however busy the node is */
  constructor(stores: SyncStores, sales: HeldSales, catchUp: () => void) {
    this.#stores = stores;
    this.#sales = sales;
    this.#catchUp = catchUp;
  }

  /**
   * Goes on with all that are wanted, as far as nothing has to be waited for. To be called again and again.
   * @param settled is awaited before a sale is taken out of the loop: nothing of it is being applied then
   */
  async goOn(settled: () => Promise<void>): Promise<void> {
    const wanted = await readResizes(this.#stores.db);
    for (const { saleId, ageS } of wanted) {
      await this.#sales.apart(saleId, () => this.#goOnWith(saleId, ageS, settled));
    }
    const open = new Set(wanted.map(({ saleId }) => saleId));
    for (const saleId of this.#drafting.keys()) if (!open.has(saleId)) this.#drafting.delete(saleId);
  }

  /** Resolves when no draft is being written. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#drafting.values()].map(({ ended }) => ended));
  }

  async #goOnWith(saleId: string, ageS: number, settled: () => Promise<void>): Promise<void> {
    const log = await this.#sales.logOf(saleId);
    const segments = await readWantedSegments(this.#stores.db, saleId);
    if (!log || segments === undefined) return;
    const drafting = this.#drafting.get(saleId);
    if (drafting?.generation !== log.generation || drafting.segments !== segments) {
      this.#begin(saleId, log.generation, segments);
    } else if (drafting.draft && log.backlog > DRAINED_ORDERS && ageS < DRAIN_MAX_S) {
      this.#catchUp();
    } else if (drafting.draft) {
      this.#drafting.delete(saleId);
      await settled();
      this.#sales.rebuild(saleId, 'an operator has changed its number of segments', drafting.draft);
    }
  }

  #begin(saleId: string, generation: number, segments: number): void {
    const drafting: Drafting = {
      generation,
      segments,
      draft: undefined,
      ended: this.#write(saleId, segments).then(
        (draft) => {
          drafting.draft = draft;
        },
        (error) => {
          if (this.#drafting.get(saleId) === drafting) this.#drafting.delete(saleId);
          const isFault = !(error instanceof StaleGeneration || this.#stopping.signal.aborted);
          if (isFault) this.#sales.setAside(saleId, error);
        },
      ),
    };
    this.#drafting.set(saleId, drafting);
  }

  async #write(saleId: string, segments: number): Promise<Draft | undefined> {
    const { db, backend } = this.#stores;
    const row = await readSale(db, saleId);
    return row && writeDraft(db, backend, row, segments, this.#stopping.signal);
  }
}
