/**
 * Asks the record of a buyer in the home segment what became of a purchase, where neither a take nor a watermark can tell:
 *
 * - of a refused purchase with a key, which may repeat one that succeeded: `byKey`
 * - of a purchase that is `checking`: it was taken, and no watermark names its entry, or its generation is over: `byOrder`
 */
import type { HeldOrder, Outcome, TakeStore } from '../contract.ts';
import { BackendCorrupt, StaleGeneration } from '../errors.ts';
import type { EngineEvents } from './events.ts';
import type { LivePurchase } from './purchase.ts';
import type { BuyersRecord, RecordLookup } from './record-lookup.ts';
import type { Settlement } from './settle.ts';

/**
 * settled: it is, or waits for a watermark. checking: it was taken, and its record is to be read again, now in a newer
 * generation, or because of a watermark that came first. stale: the segment does not serve this generation any more. unread: the
 * record could not be read.
 */
type Resolved = 'settled' | 'checking' | 'stale' | 'unread';

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

  /** Answers with what became of the order of its key, if the buyer's record knows the key; else with the refusal. */
  async byKey(
    purchase: LivePurchase,
    refusal: Outcome,
    home: Settlement,
  ): Promise<Exclude<Resolved, 'unread'>> {
    if (!this.#parts.takes.ready) {
      purchase.refuse({ code: 'unavailable' });
      return 'settled';
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
    return 'settled';
  }

  /**
   * The buyer's record holds the order, if the backend has not lost it. A record that does not hold it says nothing: it may have
   * lost an order that Postgres has, or was built from Postgres when the order had ended.
   */
  async byOrder(purchase: LivePurchase, home: Settlement): Promise<Exclude<Resolved, 'stale'>> {
    const record = await this.#read(purchase, home);
    if (record === 'stale' || record === 'unread') return 'unread';
    const order = record.orders.find((held) => held.orderId === purchase.orderId);
    if (order) return home.found(purchase, order, record.committed);
    purchase.giveUp();
    // The order of a repeated purchase may have been given back meanwhile. Its first buyer's worker reports a loss.
    if (purchase.entry !== '') this.#reportMissing(purchase, record.committed, home);
    return 'settled';
  }

  async #read(purchase: LivePurchase, home: Settlement): Promise<BuyersRecord | 'stale' | 'unread'> {
    try {
      return await this.#parts.lookup.ask(home.place, purchase.buyerId);
    } catch (error) {
      return error instanceof StaleGeneration ? 'stale' : 'unread';
    }
  }

  /** An order whose buyer has missed its commit may have been given back: Postgres knows whether it is that, or was lost. */
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
