/** Routes for single orders, for operators and for the shop's handler of payment callbacks. */

import { queryValues } from '../../lib/url-query.ts';
import { parseOrderEdit } from '../../operations/order-edit.ts';
import { exportOrders, textOf } from '../../operations/order-export.ts';
import type { OrderQuery } from '../../operations/order-list.ts';
import type { OrderChange, OrderOperations } from '../../operations/order-operations.ts';
import {
  type ExportFormat,
  parseOrderExport,
  parseOrderQuery,
  parseRefundsQuery,
} from '../../operations/order-query.ts';
import { parseNotedChange } from '../orders/order-change-body.ts';
import { orderReply } from '../orders/order-reply.ts';
import { headOf, json } from '../server/replies/reply.ts';
import type { Router } from '../server/router.ts';
import type { Action, Guarded } from './guard.ts';

/** RFC 4180 has a parameter that says whether a CSV begins with the names of its columns. One that continues another does not. */
function contentType(format: ExportFormat, isContinued: boolean): string {
  if (format === 'ndjson') return 'application/x-ndjson';
  return `text/csv; charset=utf-8; header=${isContinued ? 'absent' : 'present'}`;
}

export function addOrderRoutes(router: Router, orders: OrderOperations, guarded: Guarded): void {
  router
    .route(
      'get',
      '/v1/orders/:orderId',
      guarded(async ({ id }) => orderReply(await orders.showOrder(id))),
    )
    .route(
      'get',
      '/v1/refunds-due',
      guarded(async ({ query }) => json(200, await orders.refundsDue(parseRefundsQuery(queryValues(query))))),
    );
  router.route(
    'get',
    '/v1/sales/:saleId/orders',
    guarded(async ({ id: saleId, query }) =>
      json(200, await orders.listOrders(saleId, parseOrderQuery(queryValues(query)))),
    ),
  );
  router.route(
    'get',
    '/v1/sales/:saleId/orders/export',
    guarded(async ({ id: saleId, query }) => {
      const { format, ...wanted } = parseOrderExport(queryValues(query));
      const type = contentType(format, wanted.after !== undefined);
      const list = (page: OrderQuery) => orders.listOrders(saleId, page);
      // An unknown sale, or a store that does not answer, must be told before the answer begins.
      await list({ ...wanted, limit: 1 });
      const pieces = textOf(exportOrders(list, wanted, format));
      return { status: 200, head: headOf(200, { 'content-type': type }), pieces };
    }),
  );
  router.route(
    'patch',
    '/v1/orders/:orderId',
    guarded(async ({ id, body, actor }) => {
      const { edit, reason } = parseOrderEdit(body);
      return orderReply(await orders.editOrder(id, edit, { actor, reason }));
    }, true),
  );
  const changing =
    (kind: OrderChange['kind']): Action =>
    async ({ id, body = {}, actor }) => {
      const { change, reason } = parseNotedChange(kind, body);
      return orderReply(await orders.changeOrder(id, change, { actor, reason }));
    };
  router.route('post', '/v1/orders/:orderId/pay', guarded(changing('pay'), true));
  for (const kind of ['cancel', 'redeem', 'refund'] as const) {
    router.route('post', `/v1/orders/:orderId/${kind}`, guarded(changing(kind), 'optional'));
  }
}
