/** Routes for single orders, for operators and for the shop's handler of payment callbacks. */
import type { OrderChange, OrderOperations } from '../../operations/order-operations.ts';
import { parseOrderQuery, queryValues } from '../../operations/order-query.ts';
import { parseNotedChange } from '../orders/order-change-body.ts';
import { orderReply } from '../orders/order-reply.ts';
import { json } from '../server/problem.ts';
import type { Router } from '../server/router.ts';
import type { Action, Guarded } from './guard.ts';

export function addOrderRoutes(router: Router, orders: OrderOperations, guarded: Guarded): void {
  router
    .route(
      'get',
      '/v1/orders/:orderId',
      guarded(async (id) => orderReply(await orders.showOrder(id))),
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
    'get',
    '/v1/sales/:saleId/orders',
    guarded(async (saleId, _body, _operator, query) =>
      json(200, await orders.listOrders(saleId, parseOrderQuery(queryValues(query)))),
    ),
  );
  const changing =
    (kind: OrderChange['kind']): Action =>
    async (id, body = {}, actor) => {
      const { change, reason } = parseNotedChange(kind, body);
      return orderReply(await orders.changeOrder(id, change, { actor, reason }));
    };
  router.route('post', '/v1/orders/:orderId/pay', guarded(changing('pay'), true));
  for (const kind of ['cancel', 'redeem', 'refund'] as const) {
    router.route('post', `/v1/orders/:orderId/${kind}`, guarded(changing(kind), 'optional'));
  }
}
