/** Routes of the ops port for sales: what they are, and what operators change. */
import { parseReason } from '../../engine/sale/author.ts';
import { parseChange } from '../../engine/sale/sale-change.ts';
import { queryValues } from '../../lib/url-query.ts';
import { isRowId, parsePageQuery } from '../../operations/checked-input.ts';
import { parseDeleteQuery } from '../../operations/delete-operations.ts';
import { parseSaleQuery } from '../../operations/sale-list.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import { json } from '../server/replies/reply.ts';
import type { Router } from '../server/router.ts';
import type { Guarded } from './guard.ts';

export function addSaleRoutes(router: Router, sales: SaleOperations, guarded: Guarded): void {
  router
    .route(
      'get',
      '/v1/sales',
      guarded(async ({ query }) => json(200, await sales.list(parseSaleQuery(queryValues(query))))),
    )
    .route(
      'post',
      '/v1/sales',
      guarded(async ({ body, actor }) => json(201, await sales.create(body, actor)), true),
    )
    .route(
      'get',
      '/v1/sales/:saleId',
      guarded(async ({ id }) => json(200, await sales.show(id))),
    )
    .route(
      'patch',
      '/v1/sales/:saleId',
      guarded(async ({ id, body, actor }) => {
        const { change, reason } = parseChange(body);
        return json(200, await sales.change(id, change, { actor, reason }));
      }, true),
    )
    .route(
      'delete',
      '/v1/sales/:saleId',
      guarded(async ({ id, query, actor }) => {
        const { orders, reason } = parseDeleteQuery(queryValues(query));
        const author = { actor, reason: parseReason(reason) };
        return json(202, await sales.delete(id, orders, author));
      }),
    )
    .route(
      'get',
      '/v1/sales/:saleId/deletion',
      guarded(async ({ id }) => json(200, await sales.deletion(id))),
    )
    .route(
      'get',
      '/v1/sales/:saleId/ledger',
      guarded(async ({ id, query }) =>
        json(200, await sales.ledger(id, parsePageQuery(queryValues(query), isRowId))),
      ),
    );
}
