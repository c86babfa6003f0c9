/**
 * `POST /v1/orders/{orderId}/cancel`: a buyer cancels its order. `/pay` and `/redeem` exist only with PUBLIC_PAYMENT=1,
 * because a buyer that says "paid" proves nothing.
 */
import { InvalidInput } from '../../engine/errors.ts';
import { isOrderId } from '../../engine/order-id.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { settled, withTimeout } from '../../lib/with-timeout.ts';
import type { OrderChange, OrderOutcome } from '../../operations/order-operations.ts';
import { refusal } from '../identity/identity.ts';
import { parseOrderChange } from '../orders/order-change-body.ts';
import { forBuyer, MAY_BE_DONE, orderReply } from '../orders/order-reply.ts';
import type { Handler } from '../server/exchange.ts';
import { failure } from '../server/failure.ts';
import { pathIdOf } from '../server/http-request.ts';
import { problem } from '../server/replies/problem.ts';
import type { Reply } from '../server/replies/reply.ts';
import { lookUp, type OrderHost } from './order-route.ts';

export interface OrderChangeHost extends OrderHost {
  /**
   * @param latestMs when the change may take effect at the latest, by `monotonicMs`
   * @throws Busy if nothing was done, because too much is under way
   */
  changeOrder(orderId: string, change: OrderChange, buyerId: string, latestMs: number): Promise<OrderOutcome>;
}

const OPERATORS_ONLY = problem('operators_only');

/** Refuses every request alike, without reading it. */
export const operatorsOnlyRoute: Handler = (exchange) => exchange.reply(OPERATORS_ONLY);

export function orderChangeRoute(host: OrderChangeHost, kind: OrderChange['kind']): Handler {
  return (exchange, request) => {
    const orderId = pathIdOf(request);
    const identity = host.authenticate(request);
    exchange.readBody(request, async (body) => {
      if ('refused' in body) return exchange.reply(body.refused);
      const who = await identity;
      if (!('buyerId' in who)) return exchange.reply(refusal(who).reply);
      exchange.reply(await replyTo(host, kind, orderId, body.text, who.buyerId));
    });
  };
}

async function replyTo(
  host: OrderChangeHost,
  kind: OrderChange['kind'],
  orderId: string,
  body: string,
  buyerId: string,
): Promise<Reply> {
  const latestMs = monotonicMs() + host.readDeadlineMs;
  try {
    const change = parseOrderChange(kind, jsonOf(body));
    if (!isOrderId(orderId)) return problem('unknown_order');
    return await withTimeout(host.readDeadlineMs, changed(host, { orderId, buyerId, change, latestMs }));
  } catch (error) {
    if (error instanceof InvalidInput) return problem('invalid_request', { detail: error.message });
    const reply = failure(host, error, { busy: orderReply({ code: 'busy' }), failed: MAY_BE_DONE });
    await settled(error, latestMs);
    return reply;
  }
}

interface Wanted {
  readonly orderId: string;
  readonly buyerId: string;
  readonly change: OrderChange;
  readonly latestMs: number;
}

async function changed(host: OrderChangeHost, wanted: Wanted): Promise<Reply> {
  const { orderId, buyerId, change, latestMs } = wanted;
  const { saved, accepted } = await lookUp(host, wanted, async () => {
    const outcome = await host.changeOrder(orderId, change, buyerId, latestMs);
    return outcome.code === 'unknown_order' ? undefined : outcome;
  });
  if (accepted) return orderReply({ code: 'wrong_status', orderStatus: 'accepted' });
  return orderReply(saved ?? { code: 'unknown_order' }, forBuyer);
}

/** @returns `undefined` for what is not JSON, which is then refused because it is no object */
function jsonOf(body: string): unknown {
  if (body === '') return {};
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
