/**
 * Carries out resizes: operators' requests for another number of segments. Buyers wait while a sale is rebuilt, so
 * everything that can be prepared is done before, and the sale sells until it leaves the loop. Steps and crash points:
 * docs/internals/resize.md.
 */
import { StaleGeneration } from '../../engine/errors.ts';
import { type Draft, writeDraft } from '../../rebuild/draft.ts';
import { readResizes, readWantedSegments } from '../../sales/ledger.ts';
import { readSale } from '../../sales/sale-rows.ts';
import type { HeldSales } from '../held/held-sales.ts';
import type { SyncStores } from '../held/sync-stores.ts';
import { isToBeDrained } from './drained.ts';

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

  /** @param catchUp makes sync apply the logs, however high the load is */
  constructor(stores: SyncStores, sales: HeldSales, catchUp: () => void) {
    this.#stores = stores;
    this.#sales = sales;
    this.#catchUp = catchUp;
  }

  /** Whether drafts are kept, also of resizes that are no longer requested. */
  get areDrafting(): boolean {
    return this.#drafting.size > 0;
  }

  /**
   * Advances all requested resizes as far as possible without waiting. Call it repeatedly.
   * @param settled awaited before a sale leaves the loop: then none of its orders are being applied
   */
  async advance(settled: () => Promise<void>): Promise<void> {
    const wanted = await readResizes(this.#stores.db);
    for (const { saleId, ageS } of wanted) {
      await this.#sales.isolate(saleId, () => this.#advanceSale(saleId, ageS, settled));
    }
    const open = new Set(wanted.map(({ saleId }) => saleId));
    for (const saleId of this.#drafting.keys()) if (!open.has(saleId)) this.#drafting.delete(saleId);
  }

  /** Resolves when no draft is being written. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#drafting.values()].map(({ ended }) => ended));
  }

  async #advanceSale(saleId: string, ageS: number, settled: () => Promise<void>): Promise<void> {
    const log = await this.#sales.logOf(saleId);
    const segments = await readWantedSegments(this.#stores.db, saleId);
    if (!log || segments === undefined) return;
    const drafting = this.#drafting.get(saleId);
    if (drafting?.generation !== log.generation || drafting.segments !== segments) {
      this.#begin(saleId, log.generation, segments);
    } else if (drafting.draft && isToBeDrained(log, ageS)) {
      this.#catchUp();
    } else if (drafting.draft) {
      this.#drafting.delete(saleId);
      await settled();
      const { draft } = drafting;
      this.#sales.rebuild(saleId, 'an operator has changed its number of segments', { asked: { draft } });
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
