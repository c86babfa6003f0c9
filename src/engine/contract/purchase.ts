/** What a buyer asks for. */
export interface Purchase {
  readonly saleId: string;
  readonly buyerId: string;
  /** Units, 1 to the sale's limit per buyer; all or nothing. */
  readonly quantity: number;
  /** The client's idempotency key, `''` for none. The same key again gives the same answer. */
  readonly key: string;
  /** False: be content with `accepted` (where the backend's log is durable). */
  readonly awaitCommit: boolean;
  /**
   * It takes the units of a late payment anew: the sale's window has no say, and the board, which may not know yet that
   * they came back, is not believed. It has a key.
   */
  readonly retake?: boolean;
  /** The buyer's leave to buy, where the sale asks for one; missing or `''`: he has sent none. */
  readonly token?: string;
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
  /** The sale asks for a purchase token, and there is none. */
  | { readonly code: 'token_required' }
  | { readonly code: 'token_invalid'; readonly reason: TokenFault }
  | { readonly code: 'invalid_request'; readonly detail: string }
  | { readonly code: 'idempotency_mismatch'; readonly orderId: string; readonly quantity: number }
  /** The shop's own check does not let it through. */
  | { readonly code: 'refused'; readonly reason: string }
  /** The node or the log has more work than it may queue; nothing was taken. */
  | { readonly code: 'busy' }
  /** The backend can't be reached, or the sale is being rebuilt; nothing was taken. */
  | { readonly code: 'unavailable' }
  /** It may or may not have been taken; the same key, asked again, settles it. */
  | { readonly code: 'unknown' };

/** expired: its time is over. generation: the sale has been built anew since. alien: not for this buyer in this sale. */
export type TokenFault = 'expired' | 'generation' | 'alien';

export type OutcomeCode = Outcome['code'];
