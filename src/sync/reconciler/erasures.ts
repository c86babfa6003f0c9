/**
 * Carries out erasures of buyers (rebuild/erasures.ts), in every sale in which one is due. A sale in the backend is
 * rebuilt for this. Its state is in Postgres alone, so another sync may continue at any time.
 */
import { type DueSale, eraseInArchived, readDueSales } from '../../rebuild/erasures.ts';
import type { HeldSales } from '../held/held-sales.ts';
import type { SyncStores } from '../held/sync-stores.ts';
import { isToBeDrained } from './drained.ts';

export class Erasures {
  readonly #stores: SyncStores;
  readonly #sales: HeldSales;
  readonly #catchUp: () => void;

  /** @param catchUp makes sync apply the logs, however high the load is */
  constructor(stores: SyncStores, sales: HeldSales, catchUp: () => void) {
    this.#stores = stores;
    this.#sales = sales;
    this.#catchUp = catchUp;
  }

  /**
   * Advances all due erasures as far as possible without waiting. Call it repeatedly.
   * @param settled awaited before a sale leaves the loop: then none of its orders are being applied
   */
  async advance(settled: () => Promise<void>): Promise<void> {
    for (const due of await readDueSales(this.#stores.db)) {
      await this.#sales.isolate(due.saleId, () => this.#advanceSale(due, settled));
    }
  }

  async #advanceSale(
    { saleId, isClosed, isArchived, ageS }: DueSale,
    settled: () => Promise<void>,
  ): Promise<void> {
    if (isArchived) return eraseInArchived(this.#stores.db, saleId);
    this.#sales.unfinish(saleId);
    const log = await this.#sales.logOf(saleId);
    if (!log) return;
    // In a closed sale every waiting buyer is answered first: nothing new comes.
    if (isClosed ? log.backlog > 0 : isToBeDrained(log, ageS)) return this.#catchUp();
    await settled();
    this.#sales.rebuild(saleId, 'an operator has erased a buyer', { asked: {} });
  }
}
