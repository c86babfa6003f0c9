/** A purchase request. */
export interface Purchase {
  readonly saleId: string;
  readonly buyerId: string;
  /** Units, 1 to the sale's limit per buyer; all or nothing. */
  readonly quantity: number;
  /** The client's idempotency key, `''` for none. The same key again gives the same answer. */
  readonly key: string;
  /** False: `accepted` is enough (where the backend's log is durable). */
  readonly awaitCommit: boolean;
  /**
   * Stockade itself makes the purchase in the buyer's name: it takes the units of a late payment again, or offers units to a
   * place of the queue. Window, queue and purchase token do not apply, and the board is not consulted, because it may not know
   * yet that units came back. Such a purchase has a key.
   */
  readonly onBehalf?: boolean;
  /** The buyer's purchase token, where the sale requires one; missing or `''`: none was sent. */
  readonly token?: string;
  /** What the shop notes with the order, one line of JSON (engine/sale/order-note.ts); missing or `''`: nothing. */
  readonly note?: string;
  /** Follows the purchase through the engine; missing: it is not traced, as most are not. */
  readonly trace?: PurchaseTrace | undefined;
}

/** Notes what happens to one purchase. Its methods throw nothing. */
export interface PurchaseTrace {
  /** @param state of engine/purchase/purchase.ts, in which the purchase is from now on */
  entered(state: string): void;
  /** The purchase is about to be sent to this segment, in a batch with this number of orders. */
  sent(segment: number, orders: number): void;
}

/** How a purchase ended. Every purchase ends in exactly one of these, before its deadline. */
export type Outcome =
  | { readonly code: 'committed'; readonly orderId: string; readonly quantity: number }
  | { readonly code: 'accepted'; readonly orderId: string; readonly quantity: number }
  | { readonly code: 'sold_out' }
  | { readonly code: 'limit_reached'; readonly limit: number; readonly orderIds: readonly string[] }
  | { readonly code: 'insufficient_stock'; readonly remaining: number }
  | { readonly code: 'not_started'; readonly startsAt: number }
  | { readonly code: 'ended'; readonly endedAt: number | undefined }
  | { readonly code: 'paused' }
  | { readonly code: 'unknown_sale' }
  /** The sale requires a purchase token, and none was sent. */
  | { readonly code: 'token_required' }
  | { readonly code: 'token_invalid'; readonly reason: TokenFault }
  /** The sale has a queue, and the purchase comes without an offer. */
  | { readonly code: 'offer_required' }
  | { readonly code: 'invalid_request'; readonly detail: string }
  | { readonly code: 'idempotency_mismatch'; readonly orderId: string; readonly quantity: number }
  /** The shop's own check refused it. */
  | { readonly code: 'refused'; readonly reason: string }
  /** The node or the log is at its queue limit; nothing was taken. */
  | { readonly code: 'busy' }
  /** The backend can't be reached, or the sale is being rebuilt; nothing was taken. */
  | { readonly code: 'unavailable' }
  /** It may or may not have been taken; a repeat with the same key returns the result. */
  | { readonly code: 'unknown' };

/** expired: its time is over. generation: the sale has been rebuilt since. alien: it names another buyer or sale. */
export type TokenFault = 'expired' | 'generation' | 'alien';

export type OutcomeCode = Outcome['code'];
