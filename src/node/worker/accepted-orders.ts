/**
 * Orders that are accepted and not in Postgres yet: only their buyers' records know them, and nothing says which sale's. So each
 * sale that may have one is asked. A sale that can't be asked keeps no order of the others from being found; and made-up ids,
 * however many, are a bounded way to the backend: what was in no record is not looked for again at once.
 */
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { NotExecuted } from '../../engine/errors.ts';
import type { Engine } from '../../engine/purchase/engine.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { mayBeInLog } from '../../orders/log-age.ts';
import { readRecentSales } from '../../orders/order-reader.ts';
import type { Database } from '../../postgres/database.ts';

const UNFOUND_TTL_MS = 1_000;
const MAX_UNFOUND = 10_000;
const PARALLEL_VIEWS = 16;

export interface AcceptedOrder {
  readonly saleId: string;
  readonly quantity: number;
}

export interface AcceptedOrdersParts {
  readonly db: Database;
  readonly engine: Pick<Engine, 'view' | 'findOrder'>;
  /** Lets so much work through at a time: of its own, so that a backend that is slow holds up no order in Postgres. @throws Busy */
  readonly guarded: <T>(work: () => Promise<T>) => Promise<T>;
  /** For each sale, so that one which does not answer leaves time for the others. */
  readonly saleMs: number;
}

export class AcceptedOrders {
  readonly #parts: AcceptedOrdersParts;
  readonly #views = pLimit(PARALLEL_VIEWS);
  readonly #unfound = new LRUCache<string, true>({ max: MAX_UNFOUND, ttl: UNFOUND_TTL_MS });

  constructor(parts: AcceptedOrdersParts) {
    this.#parts = parts;
  }

  /** @throws Busy; what a sale could not be asked for, if the order is in none of the others */
  async find(buyerId: string, orderId: string): Promise<AcceptedOrder | undefined> {
    const name = `${orderId} ${buyerId}`;
    if (!mayBeInLog(orderId) || this.#unfound.has(name)) return undefined;
    const order = await this.#parts.guarded(() => this.#look(buyerId, orderId));
    if (!order) this.#unfound.set(name, true);
    return order;
  }

  async #look(buyerId: string, orderId: string): Promise<AcceptedOrder | undefined> {
    const { db, engine, saleMs } = this.#parts;
    let fault: { readonly error: unknown } | undefined;
    // The worker may be younger than the order, or another node may have taken it.
    await this.#views.map(await readRecentSales(db), async ({ id }) => {
      try {
        // What Postgres has is there: who can't see it yet, because he asked too early, does not know what it holds.
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
