/** A purchase with an offer of the queue: its buyer accepts the offer, and the order is its own from then on. */
import type { OfferTokens, TokenOffer } from '../../admission/offer-token.ts';
import type { Purchase } from '../../engine/contract.ts';
import type { OrderNote } from '../../engine/sale/order-note.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { settled, withTimeout } from '../../lib/with-timeout.ts';
import type { Acceptance, Accepted } from '../../queue/offers.ts';
import type { Observer } from '../server/exchange.ts';
import { failure } from '../server/failure.ts';
import { problem } from '../server/replies/problem.ts';
import type { ProblemCode } from '../server/replies/problem-kinds.ts';
import type { Reply } from '../server/replies/reply.ts';
import { outcomeReply } from './outcome-reply.ts';

export interface OfferHost extends Observer {
  readonly queueSigners: { readonly offers: OfferTokens };
  /**
   * @param latestMs when it may take effect at the latest, by `monotonicMs`
   * @returns `undefined`: there is no such order. @throws Busy if nothing was done; or the database's error
   */
  acceptOffer(wish: Acceptance, latestMs: number): Promise<Accepted | undefined>;
  readonly readDeadlineMs: number;
}

export interface OfferAnswer {
  readonly reply: Reply;
  readonly code: ProblemCode | 'committed';
  /** Of the order that is the buyer's now. */
  readonly orderId?: string;
}

const ALIEN = {
  detail:
    'It was not made for this buyer in this sale. Ask for the place again: it has the token of its offer.',
  reason: 'alien',
};
const UNKNOWN = {
  detail: 'The offer may have been accepted. Send the request again: it does not take effect twice.',
};

/** @param purchase its token has the form of an offer token. Its idempotency key is not used: an offer is accepted once */
export async function acceptedOffer(host: OfferHost, purchase: Purchase): Promise<OfferAnswer> {
  const offer = host.queueSigners.offers.read(purchase.token ?? '', purchase);
  if (!offer) return refused('token_invalid', ALIEN);
  if (purchase.quantity !== offer.quantity) return otherQuantity(offer);
  const note = (purchase.note ? JSON.parse(purchase.note) : {}) as OrderNote;
  const wish = { ...offer, buyerId: purchase.buyerId, ...note };
  const latestMs = monotonicMs() + host.readDeadlineMs;
  try {
    const accepted = await withTimeout(host.readDeadlineMs, host.acceptOffer(wish, latestMs));
    return answerTo(accepted?.verdict ?? 'late', offer, purchase);
  } catch (error) {
    const answer = failure(host, error, { busy: refused('busy'), failed: refused('unknown', UNKNOWN) });
    await settled(error, latestMs);
    return answer;
  }
}

function answerTo(verdict: Accepted['verdict'], offer: TokenOffer, { saleId }: Purchase): OfferAnswer {
  switch (verdict) {
    case 'done':
      return {
        code: 'committed',
        orderId: offer.orderId,
        reply: outcomeReply({ code: 'committed', ...offer }, saleId),
      };
    case 'late':
      return refused('offer_ended');
    case 'quantity':
      return otherQuantity(offer);
    case 'paused':
      return refused('paused');
    case 'forbidden':
      return refused('token_invalid', ALIEN);
  }
}

function otherQuantity({ quantity }: TokenOffer): OfferAnswer {
  return refused('invalid_request', {
    detail: `quantity must be ${quantity}: the offer is for this number of units, all of them or none`,
  });
}

function refused(code: ProblemCode, more: Parameters<typeof problem>[1] = {}): OfferAnswer {
  return { code, reply: problem(code, more) };
}
