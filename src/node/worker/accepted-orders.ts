/**
 * Finds an order that is accepted and not in Postgres yet. Only its buyer's record in the backend holds it, and its id does
 * not tell the sale. So the buyer's record is read in each sale that may have it. A sale that does not answer does not stop
 * the search in the others. Requests with made-up ids cost the backend a bounded number of reads: their number at a time is
 * limited, and an order that was not found is not looked for again for a second.
 */
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { NotExecuted } from '../../engine/errors.ts';
import type { Engine } from '../../engine/purchase/engine.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { mayBeInLog } from '../../orders/log-age.ts';
import { readRecentSales } from '../../orders/recent-sales.ts';
import type { Database } from '../../postgres/database.ts';

const NOT_FOUND_TTL_MS = 1_000;
const MAX_NOT_FOUND = 10_000;
const PARALLEL_VIEWS = 16;

export interface AcceptedOrder {
  readonly saleId: string;
  readonly quantity: number;
}

export interface AcceptedOrdersParts {
  readonly db: Database;
  readonly engine: Pick<Engine, 'view' | 'findOrder'>;
  /**
   * Bounds the searches at a time. Reads of Postgres have another bound, so that a slow backend does not delay them.
   * @throws Busy
   */
  readonly guarded: <T>(work: () => Promise<T>) => Promise<T>;
  /** Limit for each sale, so that one that does not answer leaves time for the others. */
  readonly saleMs: number;
}

export class AcceptedOrders {
  readonly #parts: AcceptedOrdersParts;
  readonly #views = pLimit(PARALLEL_VIEWS);
  readonly #notFound = new LRUCache<string, true>({ max: MAX_NOT_FOUND, ttl: NOT_FOUND_TTL_MS });

  constructor(parts: AcceptedOrdersParts) {
    this.#parts = parts;
  }

  /** @throws Busy; the error of a sale that could not be searched, if no other sale has the order */
  async find(buyerId: string, orderId: string): Promise<AcceptedOrder | undefined> {
    const name = `${orderId} ${buyerId}`;
    if (!mayBeInLog(orderId) || this.#notFound.has(name)) return undefined;
    const order = await this.#parts.guarded(() => this.#search(buyerId, orderId));
    if (!order) this.#notFound.set(name, true);
    return order;
  }

  async #search(buyerId: string, orderId: string): Promise<AcceptedOrder | undefined> {
    const { db, engine, saleMs } = this.#parts;
    let fault: { readonly error: unknown } | undefined;
    // The engine searches the sales that it knows. It may not know this one yet: the worker may be younger than the order,
    // or another node may have taken the order.
    await this.#views.map(await readRecentSales(db), async ({ id }) => {
      try {
        // Postgres has this sale, so it exists, although the directory does not see it yet: its orders can't be read here.
        if (!(await withTimeout(saleMs, engine.view(id))))
          throw new NotExecuted(`sale ${id} is not known here yet`);
      } catch (error) {
        fault = { error };
      }
    });
    const order = await engine.findOrder(buyerId, orderId, saleMs);
    if (!order && fault) throw fault.error;
    return order;
  }
}
