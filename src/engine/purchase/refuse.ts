/**
 * Decides which purchases a worker refuses without asking the store. Every purchase is checked here:
 *
 * | the purchase | is checked by |
 * |---|---|
 * | comes from its caller, at once or after its sale was looked up | `judge` |
 * | has waited for a rebuild or for new rules | `judge`; it keeps its precheck unless the rules have changed |
 * | is made by Stockade for a buyer (`onBehalf`) | `judge`, without queue, board, window and token |
 * | leaves the queue, or needs a refill, and the sale has sold out meanwhile | `isRefusedWhenSoldOut` |
 *
 * `judge` checks in this order: quantity, queue, board, closed, window, paused, purchase token. The token comes last, because its
 * check costs most. The result of the token's check is the precheck. The check is made once: a purchase that was let in stays so even
 * if the sale is rebuilt while it waits, unless the rules change.
 *
 * A purchase with an idempotency key may repeat one that succeeded. So most of its refusals are not final: the buyer's record,
 * which may contain the key, is read first. But purchases with made-up keys must not reach the store. So if the sale requires
 * tokens, the record is read only for a purchase whose token was once issued to this buyer for this sale.
 *
 * Whether a lane has room is decided by the lane.
 */
import type { Outcome, Purchase, Sale, SaleRecord, TokenFault } from '../contract.ts';
import type { LivePurchase } from './purchase.ts';

/** What is wrong with a purchase's token, if anything is. */
export type CheckToken = (purchase: Purchase, generation: number) => TokenFault | undefined;

/** What a worker knows of the sale now. The members may be getters: only those that a decision needs are read. */
export interface SaleFacts {
  readonly record: SaleRecord;
  readonly isSoldOut: boolean;
  /** The time, in milliseconds since 1970. */
  readonly now: number;
  /** `undefined` if tokens are not checked. */
  readonly checkToken: CheckToken | undefined;
}

export interface Verdict {
  /** Why the purchase is refused; `undefined` if it may be sent to the store. */
  readonly refusal: Outcome | undefined;
  /** The refusal is the answer. If false, the buyer's record is read first: it may contain the purchase's key. */
  readonly isFinal: boolean;
  /** Keep it with the purchase, for the next call of `judge`. */
  readonly precheck: Outcome | undefined;
}

const LET_IN: Verdict = { refusal: undefined, isFinal: false, precheck: undefined };

/** @param known the purchase's precheck by the same rules, if it was let in before */
export function judge(
  purchase: Purchase,
  sale: SaleFacts,
  known?: { readonly precheck: Outcome | undefined },
): Verdict {
  const refusal = refusalOf(purchase, sale);
  if (refusal && isFinal(refusal, purchase)) return { refusal, isFinal: true, precheck: undefined };
  const precheck = known ? known.precheck : precheckOf(purchase, sale);
  if (!refusal && !precheck) return LET_IN;
  if (precheck && isFinal(precheck, purchase)) return { refusal: precheck, isFinal: true, precheck };
  return { refusal: refusal ?? precheck, isFinal: false, precheck };
}

/** Whether a purchase that waits for its take is refused when its sale is sold out: it has no key, and nothing was sent for it. */
export function isRefusedWhenSoldOut({ key, isUnsent }: Pick<LivePurchase, 'key' | 'isUnsent'>): boolean {
  return key === '' && isUnsent;
}

/** Whether the refusal is the answer, whatever the buyer's record says about the key. */
export function isFinal(refusal: Outcome, { key }: Pick<Purchase, 'key'>): boolean {
  return key === '' || !mayHideRepeat(refusal);
}

function refusalOf({ quantity, onBehalf }: Purchase, facts: SaleFacts): Outcome | undefined {
  const { sale, state } = facts.record;
  if (!Number.isInteger(quantity) || quantity < 1 || quantity > sale.perBuyerLimit) {
    return {
      code: 'invalid_request',
      detail: `quantity must be a whole number from 1 to ${sale.perBuyerLimit}`,
    };
  }
  if (!onBehalf && sale.queue) return { code: 'offer_required' };
  if (!onBehalf && facts.isSoldOut) return { code: 'sold_out' };
  if (state === 'closed') return { code: 'ended', endedAt: sale.endsAt };
  const outside = onBehalf ? undefined : outsideWindow(sale, facts.now);
  if (outside) return outside;
  if (state === 'paused') return { code: 'paused' };
  return undefined;
}

function outsideWindow({ startsAt, endsAt }: Sale, now: number): Outcome | undefined {
  if (now < startsAt) return { code: 'not_started', startsAt };
  if (endsAt !== undefined && now >= endsAt) return { code: 'ended', endedAt: endsAt };
  return undefined;
}

function precheckOf(purchase: Purchase, { record, checkToken }: SaleFacts): Outcome | undefined {
  if (!record.sale.requireToken || purchase.onBehalf || !checkToken) return undefined;
  if (!purchase.token) return { code: 'token_required' };
  const reason = checkToken(purchase, record.generation);
  return reason && { code: 'token_invalid', reason };
}

/** Each code is listed, so that a new one does not compile before it is decided here: made-up keys must not reach the store. */
function mayHideRepeat(refusal: Outcome): boolean {
  switch (refusal.code) {
    case 'offer_required':
    case 'sold_out':
    case 'not_started':
    case 'ended':
    case 'paused':
    case 'limit_reached':
    case 'insufficient_stock':
    case 'refused':
    case 'busy':
    case 'unavailable':
      return true;
    case 'token_invalid':
      return refusal.reason !== 'alien';
    case 'token_required':
    case 'invalid_request':
    case 'unknown_sale':
    case 'idempotency_mismatch':
    case 'committed':
    case 'accepted':
    case 'unknown':
      return false;
  }
}
