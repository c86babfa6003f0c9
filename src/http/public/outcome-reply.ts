/** The HTTP answer to each outcome of a purchase. */
import type { Outcome, TokenFault } from '../../engine/contract.ts';
import { problem } from '../server/replies/problem.ts';
import { headOf, type Reply, sentOften } from '../server/replies/reply.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const CREATED = { status: 201, head: headOf(201, JSON_TYPE) };
const ACCEPTED = { status: 202, head: headOf(202, JSON_TYPE) };

/** Most refusals have no values of their own, so each of these is built once. */
const FIXED = {
  sold_out: sentOften(problem('sold_out')),
  paused: sentOften(problem('paused')),
  unknown_sale: sentOften(problem('unknown_sale')),
  token_required: sentOften(problem('token_required')),
  offer_required: sentOften(problem('offer_required')),
  busy: sentOften(problem('busy')),
  unavailable: sentOften(problem('unavailable')),
  unknown: sentOften(problem('unknown')),
} as const;

const GET_ANOTHER = 'Get another with POST /v1/sales/{saleId}/tokens.';
const INVALID_TOKEN: Readonly<Record<TokenFault, Reply>> = {
  expired: invalidToken('expired', `It has expired. ${GET_ANOTHER}`),
  generation: invalidToken('generation', `The sale has been rebuilt since. ${GET_ANOTHER}`),
  alien: invalidToken('alien', `It was not made for this buyer in this sale. ${GET_ANOTHER}`),
};

function invalidToken(reason: TokenFault, detail: string): Reply {
  return problem('token_invalid', { detail, reason });
}

export function outcomeReply(outcome: Outcome, saleId: string): Reply {
  switch (outcome.code) {
    case 'sold_out':
    case 'paused':
    case 'unknown_sale':
    case 'token_required':
    case 'offer_required':
    case 'busy':
    case 'unavailable':
    case 'unknown':
      return FIXED[outcome.code];
    case 'committed':
    case 'accepted':
      return placed(outcome, saleId);
    case 'limit_reached':
      return problem('limit_reached', { limit: outcome.limit, orderIds: outcome.orderIds });
    case 'insufficient_stock':
      return problem('insufficient_stock', { remaining: outcome.remaining });
    case 'not_started':
      return problem('not_started', { startsAt: new Date(outcome.startsAt).toISOString() });
    case 'ended':
      return problem(
        'ended',
        outcome.endedAt === undefined ? {} : { endedAt: new Date(outcome.endedAt).toISOString() },
      );
    case 'invalid_request':
      return problem('invalid_request', { detail: outcome.detail });
    case 'token_invalid':
      return INVALID_TOKEN[outcome.reason];
    case 'refused':
      return problem('refused', { detail: outcome.reason });
    case 'idempotency_mismatch':
      return problem('idempotency_mismatch', { orderId: outcome.orderId, quantity: outcome.quantity });
  }
}

/** Order ids are digits; sale ids are letters, digits, dots and dashes. So nothing here needs escaping. */
function placed(
  { code, orderId, quantity }: Extract<Outcome, { code: 'committed' | 'accepted' }>,
  saleId: string,
): Reply {
  const { status, head } = code === 'committed' ? CREATED : ACCEPTED;
  const body = `{"orderId":"${orderId}","status":"${code}","saleId":"${saleId}","quantity":${quantity}}`;
  return { status, head, body };
}
