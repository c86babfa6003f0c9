/** `GET /v1/orders/{orderId}`: an order, for its owner. */
import { isOrderId, type OrderRecord } from '../sync/order-reader.ts';
import type { Handler } from './exchange.ts';
import type { Authenticate } from './identity.ts';
import { json, problem } from './problem.ts';

export interface OrderHost {
  readonly authenticate: Authenticate;
  /** From Postgres. */
  readOrder(orderId: string): Promise<OrderRecord | undefined>;
  /** From the buyer's records: orders that are accepted and not in Postgres yet. */
  findAccepted(buyerId: string, orderId: string): Promise<{ saleId: string; quantity: number } | undefined>;
}

export function orderRoute(host: OrderHost): Handler {
  return async (exchange, request) => {
    const orderId = request.getParameter(0) ?? '';
    const identity = await host.authenticate(request);
    if ('refused' in identity)
      return exchange.reply(problem('unauthenticated', { detail: identity.refused }));
    if (!isOrderId(orderId)) return exchange.reply(problem('unknown_order'));
    const order = await host.readOrder(orderId);
    if (order) {
      if (order.buyerId !== identity.buyerId) return exchange.reply(problem('forbidden'));
      const { saleId, quantity, status, committedAt } = order;
      return exchange.reply(
        json(200, { orderId, saleId, quantity, status, committedAt: committedAt.toISOString() }),
      );
    }
    const accepted = await host.findAccepted(identity.buyerId, orderId);
    exchange.reply(
      accepted ? json(200, { orderId, ...accepted, status: 'accepted' }) : problem('unknown_order'),
    );
  };
}
