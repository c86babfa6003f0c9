/** `POST /v1/sales/{saleId}/orders`: the hot path. */
import type { Outcome, Purchase } from '../engine/contract.ts';
import { ID_PATTERN, MAX_ID_CHARACTERS } from '../engine/limits.ts';
import { monotonicMs } from '../engine/monotonic.ts';
import type { Handler } from './exchange.ts';
import { type Authenticate, type Identity, refusal } from './identity.ts';
import { json, type ProblemCode, problem, type Reply } from './problem.ts';

export interface PurchaseHost {
  buy(purchase: Purchase, done: (outcome: Outcome) => void): void;
  readonly authenticate: Authenticate;
  /** Called with the code of every answer. */
  answered(outcome: string, ms: number): void;
}

const BAD_KEY = `Idempotency-Key must be 1 to ${MAX_ID_CHARACTERS} visible ASCII characters without spaces`;
const RESPOND_ASYNC = /(^|[,;\s])respond-async($|[,;\s])/i;

export function purchaseRoute(host: PurchaseHost): Handler {
  return (exchange, request) => {
    const began = monotonicMs();
    const saleId = request.getParameter(0) ?? '';
    const key = request.getHeader('idempotency-key');
    const prefer = request.getHeader('prefer');
    const awaitCommit = prefer === '' || !RESPOND_ASYNC.test(prefer);
    const identity = host.authenticate(request);

    const refuse = (reply: Reply, code: ProblemCode) => {
      exchange.reply(reply);
      host.answered(code, monotonicMs() - began);
    };
    const buy = (who: Identity, quantity: number) => {
      if (!('buyerId' in who)) {
        const { reply, code } = refusal(who);
        return refuse(reply, code);
      }
      if (key !== '' && !ID_PATTERN.test(key)) {
        return refuse(problem('invalid_request', { detail: BAD_KEY }), 'invalid_request');
      }
      host.buy({ saleId, buyerId: who.buyerId, quantity, key, awaitCommit }, (outcome) => {
        exchange.reply(replyOf(outcome, saleId));
        host.answered(outcome.code, monotonicMs() - began);
      });
    };

    exchange.readBody((body) => {
      if ('refused' in body) return refuse(body.refused, body.code);
      const quantity = quantityOf(body.text);
      if (typeof quantity === 'string') {
        return refuse(problem('invalid_request', { detail: quantity }), 'invalid_request');
      }
      if (identity instanceof Promise) return identity.then((who) => buy(who, quantity));
      buy(identity, quantity);
    });
  };
}

/** What most clients send, so that it need not be parsed. */
const USUAL_BODY = '{"quantity":1}';

/** The quantity that a body asks for, or what is wrong with the body. */
function quantityOf(text: string): number | string {
  if (text === USUAL_BODY || text === '') return 1;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return 'the body is not JSON';
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return 'the body must be a JSON object';
  const unknown = Object.keys(body).find((name) => name !== 'quantity');
  if (unknown !== undefined) return `${JSON.stringify(unknown.slice(0, 80))} is not a field of an order`;
  const { quantity = 1 } = body as { quantity?: unknown };
  if (!Number.isSafeInteger(quantity) || (quantity as number) < 1)
    return 'quantity must be a whole number from 1';
  return quantity as number;
}

/** Refusals without values of their own are the same every time, and there are many of them. */
const FIXED = new Map<string, Reply>(
  (['sold_out', 'paused', 'unknown_sale', 'busy', 'unavailable', 'unknown'] as const).map((c) => [
    c,
    problem(c),
  ]),
);

function replyOf(outcome: Outcome, saleId: string): Reply {
  const fixed = FIXED.get(outcome.code);
  if (fixed) return fixed;
  switch (outcome.code) {
    case 'committed':
      return placed('201 Created', outcome.code, outcome.orderId, saleId, outcome.quantity);
    case 'accepted':
      return placed('202 Accepted', outcome.code, outcome.orderId, saleId, outcome.quantity);
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
    case 'refused':
      return problem('refused', { detail: outcome.reason });
    case 'idempotency_mismatch':
      return problem('idempotency_mismatch', { orderId: outcome.orderId, quantity: outcome.quantity });
    default:
      return json(500, outcome);
  }
}

/** Ids are digits, sale ids letters, digits, dots and dashes: nothing here needs escaping. */
function placed(status: string, code: string, orderId: string, saleId: string, quantity: number): Reply {
  return {
    status,
    contentType: 'application/json',
    body: `{"orderId":"${orderId}","status":"${code}","saleId":"${saleId}","quantity":${quantity}}`,
  };
}
