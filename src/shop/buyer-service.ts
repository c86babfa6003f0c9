import { setTimeout as delay } from 'node:timers/promises';
import type { Backend, LogHint } from '../engine/contract.ts';
import { StockadeError } from '../engine/errors.ts';
import type { Author } from '../engine/sale/author.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { BuyerOperations, ErasureReport, ErasureWish } from '../operations/buyer-operations.ts';
import { Arrivals } from '../orders/arrivals.ts';
import { type RecentSale, readSalesWithLogs } from '../orders/recent-sales.ts';
import type { Database } from '../postgres/database.ts';
import {
  type AskedErasure,
  askErasures,
  eraseInArchived,
  findBuyer,
  readErasedOrders,
  readErasuresOf,
} from '../rebuild/erasures.ts';
import { readKnownSale, readSale, type SaleRow } from '../sales/sale-rows.ts';

/** How long an answer waits for sync, which rebuilds the sales. */
const SYNC_WAIT_MS = 20_000;
const POLL_MS = 50;

export interface BuyerParts {
  readonly db: Database;
  readonly backend: Backend;
  /** Notifies sync that a caller waits for a log. */
  readonly hint?: (hint: LogHint) => void;
  readonly syncWaitMs?: number;
}

/**
 * Erases buyers (rebuild/erasures.ts). It records the request, and erases the buyer in archived sales. Sync does that in the other
 * sales, even if this process dies.
 */
export class BuyerService implements BuyerOperations {
  readonly #db: Database;
  readonly #backend: Backend;
  readonly #hint: BuyerParts['hint'];
  /** Of all sales. */
  readonly #arrivals: Arrivals;
  readonly #syncWaitMs: number;

  constructor({ db, backend, hint, syncWaitMs = SYNC_WAIT_MS }: BuyerParts) {
    this.#db = db;
    this.#backend = backend;
    this.#hint = hint;
    this.#arrivals = new Arrivals(db, backend, hint, readSalesWithLogs);
    this.#syncWaitMs = syncWaitMs;
  }

  async erase(wish: ErasureWish, author: Author): Promise<ErasureReport> {
    const { buyerId, saleId } = wish;
    const sale = saleId === undefined ? undefined : await readKnownSale(this.#db, saleId);
    if (!sale?.archivedAt) await this.#assertArrived(sale);
    if (wish.dryRun) return { erased: [], waiting: [], found: await findBuyer(this.#db, wish) };
    const asked = await askErasures(this.#db, wish, author);
    for (const each of asked) if (each.isArchived) await eraseInArchived(this.#db, each.saleId);
    const open = await this.#waitForSync(buyerId, asked);
    return reportOf(asked, open, await readErasedOrders(this.#db, asked));
  }

  /**
   * Orders that are only in a log may be the buyer's, and Postgres can't find them.
   * @param sale the only one that counts; missing: all. @throws StockadeError `unavailable`
   */
  async #assertArrived(sale: SaleRow | undefined): Promise<void> {
    const arrivals = sale
      ? new Arrivals(this.#db, this.#backend, this.#hint, async () => logsOf(sale))
      : this.#arrivals;
    if (await arrivals.caughtUp()) return;
    throw new StockadeError(
      'unavailable',
      'orders are on their way to Postgres, and may be of this buyer. Nothing was erased: repeat it in a moment',
    );
  }

  /** @returns the sales that still hold the id */
  async #waitForSync(buyerId: string, asked: readonly AskedErasure[]): Promise<Set<string>> {
    const deadline = monotonicMs() + this.#syncWaitMs;
    const due = asked.filter(({ isDue }) => isDue).map(({ saleId }) => saleId);
    for (;;) {
      const open = await readErasuresOf(this.#db, buyerId);
      for (const saleId of due) if (!(await this.#hasFollowed(saleId))) open.add(saleId);
      if (!due.some((saleId) => open.has(saleId)) || monotonicMs() >= deadline) return open;
      await delay(POLL_MS);
    }
  }

  /** Whether the backend has followed Postgres: until then it holds the id. */
  async #hasFollowed(saleId: string): Promise<boolean> {
    const [row, record] = await Promise.all([readSale(this.#db, saleId), this.#backend.sales.read(saleId)]);
    return record?.generation === (row?.archivedAt ? undefined : row?.generation);
  }
}

/** A sale that was never built has no logs. */
function logsOf({ sale: { id, segments }, generation }: SaleRow): readonly RecentSale[] {
  return generation === 0 ? [] : [{ id, segments, generation }];
}

function reportOf(
  asked: readonly AskedErasure[],
  open: ReadonlySet<string>,
  erased: ReadonlyMap<string, number>,
): ErasureReport {
  const all = asked.map(({ saleId, pseudonym, orders, isDue }) => ({
    erasure: { saleId, pseudonym, orders: erased.get(pseudonym) ?? orders },
    until: isDue ? ('rebuilt' as const) : ('closed' as const),
  }));
  return {
    erased: all.filter(({ erasure }) => !open.has(erasure.saleId)).map(({ erasure }) => erasure),
    waiting: all
      .filter(({ erasure }) => open.has(erasure.saleId))
      .map(({ erasure, until }) => ({ ...erasure, until })),
  };
}
