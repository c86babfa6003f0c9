/** How each outcome of a purchase is told over HTTP. */
import type { Outcome } from '../engine/contract.ts';
import { headOf, json, problem, type Reply } from './problem.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const CREATED = { status: 201, head: headOf(201, JSON_TYPE) };
const ACCEPTED = { status: 202, head: headOf(202, JSON_TYPE) };

/** Refusals without values of their own are the same every time, and there are many of them. */
const FIXED = new Map<string, Reply>(
  (['sold_out', 'paused', 'unknown_sale', 'busy', 'unavailable', 'unknown'] as const).map((code) => [
    code,
    problem(code),
  ]),
);

export function outcomeReply(outcome: Outcome, saleId: string): Reply {
  const fixed = FIXED.get(outcome.code);
  if (fixed) return fixed;
  switch (outcome.code) {
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
    case 'idempotency_mismatch':
      return problem('idempotency_mismatch', { orderId: outcome.orderId, quantity: outcome.quantity });
    default:
      return json(500, outcome);
  }
}

/** Ids are digits, sale ids letters, digits, dots and dashes: nothing here needs escaping. */
function placed(
  { code, orderId, quantity }: Extract<Outcome, { code: 'committed' | 'accepted' }>,
  saleId: string,
): Reply {
  const { status, head } = code === 'committed' ? CREATED : ACCEPTED;
  const body = `{"orderId":"${orderId}","status":"${code}","saleId":"${saleId}","quantity":${quantity}}`;
  return { status, head, body };
}
