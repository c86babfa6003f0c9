/**
 * Finds out from the buyer's record in the home segment how a purchase ended, if neither a take nor a watermark can tell:
 *
 * - `byKey`: for a refused purchase with a key, which may repeat one that succeeded
 * - `byOrder`: for a purchase that is `checking`. It was taken, but no watermark names its entry, or its generation is over
 */
import type { HeldOrder, Outcome, TakeStore } from '../contract.ts';
import { BackendCorrupt, StaleGeneration } from '../errors.ts';
import type { EngineEvents } from './events.ts';
import type { LivePurchase } from './purchase.ts';
import type { BuyersRecord, RecordLookup } from './record-lookup.ts';
import type { Settlement } from './settle.ts';

/**
 * done: the purchase is settled, or waits for a watermark. checking: it was taken, and its record must be read again, because the
 * sale has a newer generation now or a watermark came first. stale: the segment does not serve this generation any more. unread:
 * the record could not be read.
 */
type Resolved = 'done' | 'checking' | 'stale' | 'unread';

export interface ResolverParts {
  readonly takes: Pick<TakeStore, 'ready'>;
  readonly lookup: RecordLookup;
  readonly events: EngineEvents;
}

export class PurchaseResolver {
  readonly #parts: ResolverParts;

  constructor(parts: ResolverParts) {
    this.#parts = parts;
  }

  /** If the buyer's record contains the purchase's key, the order of that key decides; else the purchase is refused. */
  async byKey(
    purchase: LivePurchase,
    refusal: Outcome,
    home: Settlement,
  ): Promise<Exclude<Resolved, 'unread'>> {
    if (!this.#parts.takes.ready) {
      purchase.refuse({ code: 'unavailable' });
      return 'done';
    }
    const record = await this.#read(purchase, home);
    if (record === 'stale') return 'stale';
    if (record === 'unread') purchase.refuse({ code: 'unavailable' });
    else {
      const order = record.orders.find((held) => held.key === purchase.key);
      if (!order) purchase.refuse(refusal);
      else if (order.quantity !== purchase.quantity) purchase.refuse(mismatch(order));
      else return home.found(purchase, order, record.committed);
    }
    return 'done';
  }

  /**
   * If the buyer's record holds the order, the backend has not lost it. A record without the order proves nothing: it may have lost
   * an order that Postgres has, or it was loaded from Postgres after the order had ended.
   */
  async byOrder(purchase: LivePurchase, home: Settlement): Promise<Exclude<Resolved, 'stale'>> {
    const record = await this.#read(purchase, home);
    if (record === 'stale' || record === 'unread') return 'unread';
    const order = record.orders.find((held) => held.orderId === purchase.orderId);
    if (order) return home.found(purchase, order, record.committed);
    purchase.giveUp();
    // A repeated purchase reports nothing: its order may have been given back meanwhile, and the worker that took the order
    // reports it if it is lost.
    if (purchase.entry !== '') this.#reportMissing(purchase, record.committed, home);
    return 'done';
  }

  async #read(purchase: LivePurchase, home: Settlement): Promise<BuyersRecord | 'stale' | 'unread'> {
    try {
      return await this.#parts.lookup.ask(home.place, purchase.buyerId);
    } catch (error) {
      return error instanceof StaleGeneration ? 'stale' : 'unread';
    }
  }

  /** If the order may have been committed and then given back, Postgres must be asked. Otherwise it is lost. */
  #reportMissing(purchase: LivePurchase, committed: number, { place }: Settlement): void {
    const { saleId, orderId, buyerId, quantity } = purchase;
    const { events } = this.#parts;
    if (committed >= purchase.seq || purchase.generation < place.generation) {
      events.onUncommitted?.(saleId, [{ segment: place.segment, orderId, buyerId, quantity }]);
      return;
    }
    const lost = new BackendCorrupt(`order ${orderId} was taken, and the backend has lost it`);
    events.onFault?.(lost, saleId, place.segment);
  }
}

function mismatch({ orderId, quantity }: HeldOrder): Outcome {
  return { code: 'idempotency_mismatch', orderId, quantity };
}
