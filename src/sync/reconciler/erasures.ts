/**
 * Carries out erasures of buyers (rebuild/erasures.ts), in every sale in which one is due. A sale in the backend is
 * rebuilt for this. Its state is in Postgres alone, so another sync may continue at any time.
 */
import { type DueSale, eraseInArchived, readDueSales } from '../../rebuild/erasures.ts';
import type { HeldSales } from '../held/held-sales.ts';
import type { SyncStores } from '../held/sync-stores.ts';
import { isToBeDrained } from './drained.ts';

/** How many archived sales one call serves, so that no order waits for a buyer who has bought in hundreds of sales. */
const ARCHIVED_AT_ONCE = 5;
/** How long it waits for a locked row of an archived sale: the process that was asked may erase there at this moment. */
const ARCHIVED_WAIT_MS = 100;

export class Erasures {
  readonly #stores: SyncStores;
  readonly #sales: HeldSales;
  readonly #catchUp: () => void;
  /** The last archived sale that was served; `''`: all were. */
  #lastArchived = '';

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
    const due = await readDueSales(this.#stores.db);
    for (const sale of due.filter(({ isArchived }) => !isArchived))
      await this.#sales.isolate(sale.saleId, () => this.#advanceSale(sale, settled));
    for (const saleId of this.#nextArchived(due))
      await this.#sales.isolate(saleId, () => eraseInArchived(this.#stores.db, saleId, ARCHIVED_WAIT_MS));
  }

  /** In the order of their ids, so that a sale whose rows stay locked does not hold up the others. */
  #nextArchived(due: readonly DueSale[]): string[] {
    const archived = due.filter(({ isArchived }) => isArchived).map(({ saleId }) => saleId);
    const behind = archived.sort().filter((saleId) => saleId > this.#lastArchived);
    const next = behind.slice(0, ARCHIVED_AT_ONCE);
    this.#lastArchived = behind.length > next.length ? next.at(-1)! : '';
    return next;
  }

  async #advanceSale({ saleId, isClosed, ageS }: DueSale, settled: () => Promise<void>): Promise<void> {
    this.#sales.unfinish(saleId);
    const log = await this.#sales.logOf(saleId);
    if (!log) return;
    // In a closed sale every waiting buyer is answered first: nothing new comes.
    if (isClosed ? log.backlog > 0 : isToBeDrained(log, ageS)) return this.#catchUp();
    await settled();
    this.#sales.rebuild(saleId, 'an operator has erased a buyer', { asked: {} });
  }
}
