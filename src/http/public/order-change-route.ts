/**
 * `POST /v1/orders/{orderId}/cancel`: a buyer cancels its order. `/pay` and `/redeem` exist only with PUBLIC_PAYMENT=1,
 * because a buyer that says "paid" proves nothing.
 */
import { InvalidInput, isBusy, StockadeError } from '../../engine/errors.ts';
import { isOrderId } from '../../engine/order-id.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { OrderChange, OrderOutcome } from '../../operations/order-operations.ts';
import { refusal } from '../identity/identity.ts';
import { parseOrderChange } from '../orders/order-change-body.ts';
import { forBuyer, MAY_BE_DONE, orderReply } from '../orders/order-reply.ts';
import type { Handler } from '../server/exchange.ts';
import { problem } from '../server/replies/problem.ts';
import type { Reply } from '../server/replies/reply.ts';
import { lookUp, type OrderHost } from './order-route.ts';

export interface OrderChangeHost extends OrderHost {
  /** @throws Busy if nothing was done, because too much is under way */
  changeOrder(orderId: string, change: OrderChange, buyerId: string): Promise<OrderOutcome>;
}

const OPERATORS_ONLY = problem('operators_only');

/** Refuses every request alike, without reading it. */
export const operatorsOnlyRoute: Handler = (exchange) => exchange.reply(OPERATORS_ONLY);

export function orderChangeRoute(host: OrderChangeHost, kind: OrderChange['kind']): Handler {
  return (exchange, request) => {
    const orderId = request.getParameter(0) ?? '';
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
  try {
    const change = parseOrderChange(kind, jsonOf(body));
    if (!isOrderId(orderId)) return problem('unknown_order');
    return await withTimeout(host.readDeadlineMs, changed(host, orderId, change, buyerId));
  } catch (error) {
    if (error instanceof InvalidInput) return problem('invalid_request', { detail: error.message });
    if (isBusy(error)) return orderReply({ code: 'busy' });
    if (!(error instanceof StockadeError)) host.fault(error);
    return MAY_BE_DONE;
  }
}

async function changed(
  host: OrderChangeHost,
  orderId: string,
  change: OrderChange,
  buyerId: string,
): Promise<Reply> {
  const { saved, accepted } = await lookUp(host, { buyerId, orderId }, async () => {
    const outcome = await host.changeOrder(orderId, change, buyerId);
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
