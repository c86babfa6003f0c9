/** What operators, and a payment provider's callbacks behind them, do with single orders. */
import { takenAtMs } from '../engine/order-id.ts';
import type { OrderOperations, OrderOutcome } from '../sync/orders/order-operations.ts';
import { isOrderId } from '../sync/orders/order-reader.ts';
import type { Router } from './exchange.ts';
import type { Guarded } from './ops-server.ts';
import { parseOrderChange } from './order-change-body.ts';
import { orderReply } from './order-reply.ts';
import { json, problem, type Reply } from './problem.ts';

export function addOrderRoutes(router: Router, orders: OrderOperations, guarded: Guarded): void {
  router
    .route(
      'get',
      '/v1/orders/:orderId',
      guarded(async (id) => told(id, await orders.showOrder(id))),
    )
    .route(
      'get',
      '/v1/refunds-due',
      guarded(async (_id, _body, _operator, query) => {
        const saleId = new URLSearchParams(query).get('saleId') ?? undefined;
        return json(200, { orders: await orders.refundsDue(saleId) });
      }),
    );
  router.route(
    'post',
    '/v1/orders/:orderId/pay',
    guarded(async (id, body) => told(id, await orders.changeOrder(id, parseOrderChange('pay', body))), true),
  );
  for (const kind of ['cancel', 'redeem', 'refund'] as const) {
    router.route(
      'post',
      `/v1/orders/:orderId/${kind}`,
      guarded(
        async (id, body = {}) => told(id, await orders.changeOrder(id, parseOrderChange(kind, body))),
        'optional',
      ),
    );
  }
}

/** An order that is not in Postgres may be in its log still, where only its buyer's name would find it. */
const ACCEPTED_WITHIN_MS = 24 * 3_600_000;

function told(orderId: string, outcome: OrderOutcome): Reply {
  if (outcome.code !== 'unknown_order' || !isOrderId(orderId)) return orderReply(outcome);
  const ageMs = Date.now() - takenAtMs(orderId);
  if (ageMs < 0 || ageMs > ACCEPTED_WITHIN_MS) return orderReply(outcome);
  const detail = 'It is not in Postgres. If it was accepted a moment ago, it will be: ask again.';
  return problem('unknown_order', { detail }, { 'retry-after': '1' });
}
