/**
 * What a worker refuses without asking the store. All of it is decided here, whichever way a purchase comes:
 *
 * | it comes | asked here |
 * |---|---|
 * | from its caller, also when its sale had to be looked up first | `judge` |
 * | back from a sale that stood still, or has other rules now | `judge`, with its precheck of before unless the rules are others |
 * | as a late payment, which takes its units anew (`retake`) | `judge`: neither board, window nor token count |
 * | out of the queue, or to a refill, and the sale is sold out meanwhile | `isHopeless` |
 *
 * In this order: quantity, board, closed, window, paused, purchase token. The token comes last, because its check costs most.
 * That check is the precheck. It is made once: a purchase that was let in stays so although the sale may be built anew while it
 * waits, unless the rules change.
 *
 * A purchase with an idempotency key may repeat one that succeeded. So most of its refusals are not final: the buyer's record,
 * which may know the key, is read first. Made-up keys must not be a way to the store: without a token that was once good no
 * record is read.
 *
 * Whether there is room in a lane is not decided here but by the lane.
 */
import type { Outcome, Purchase, Sale, SaleRecord, TokenFault } from '../contract.ts';
import type { LivePurchase } from './purchase.ts';

/** What is wrong with a purchase's token, if anything is. */
export type CheckToken = (purchase: Purchase, generation: number) => TokenFault | undefined;

/** What a worker knows of the sale at this instant. What is not needed is not read. */
export interface SaleFacts {
  readonly record: SaleRecord;
  readonly isSoldOut: boolean;
  /** The time, in milliseconds since 1970. */
  readonly now: number;
  /** Missing: no token is asked for. */
  readonly checkToken: CheckToken | undefined;
}

export interface Verdict {
  /** Why it is refused; `undefined`: it may be asked for. */
  readonly refusal: Outcome | undefined;
  /** The refusal is the answer. If it is not, the buyer's record is read first: it may know the purchase's key. */
  readonly isFinal: boolean;
  /** To be kept with the purchase, for the next time. */
  readonly precheck: Outcome | undefined;
}

const LET_IN: Verdict = { refusal: undefined, isFinal: false, precheck: undefined };

/** @param known its precheck by the same rules, if it was let in before */
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

/** Whether a purchase that waits for its take can be refused because the board says sold out. */
export function isHopeless({ key, isUnsent }: Pick<LivePurchase, 'key' | 'isUnsent'>): boolean {
  return key === '' && isUnsent;
}

/** Whether the refusal is the answer, whatever the buyer's record knows of the key. */
export function isFinal(refusal: Outcome, { key }: Pick<Purchase, 'key'>): boolean {
  return key === '' || !mayHideRepeat(refusal);
}

function refusalOf({ quantity, retake }: Purchase, facts: SaleFacts): Outcome | undefined {
  const { sale, state } = facts.record;
  if (!Number.isInteger(quantity) || quantity < 1 || quantity > sale.perBuyerLimit) {
    return {
      code: 'invalid_request',
      detail: `quantity must be a whole number from 1 to ${sale.perBuyerLimit}`,
    };
  }
  if (!retake && facts.isSoldOut) return { code: 'sold_out' };
  if (state === 'closed') return { code: 'ended', endedAt: sale.endsAt };
  const outside = retake ? undefined : outsideWindow(sale, facts.now);
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
  if (!record.sale.requireToken || purchase.retake || !checkToken) return undefined;
  if (!purchase.token) return { code: 'token_required' };
  const reason = checkToken(purchase, record.generation);
  return reason && { code: 'token_invalid', reason };
}

/** Each refusal is named: one that is forgotten here must not become a way to the store for made-up keys. */
function mayHideRepeat(refusal: Outcome): boolean {
  switch (refusal.code) {
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
