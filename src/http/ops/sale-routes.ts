/** Routes of the ops port for sales. */
import { InvalidInput } from '../../engine/errors.ts';
import { parseActor, parseReason } from '../../engine/sale/author.ts';
import { parseChange } from '../../engine/sale/sale-change.ts';
import { queryValues } from '../../lib/url-query.ts';
import { parseDeleteQuery } from '../../operations/delete-operations.ts';
import { parseSaleQuery } from '../../operations/sale-list.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import { json } from '../server/problem.ts';
import type { Router } from '../server/router.ts';
import type { Guarded } from './guard.ts';

export function addSaleRoutes(router: Router, operations: SaleOperations, guarded: Guarded): void {
  router
    .route(
      'get',
      '/v1/sales',
      guarded(async (_id, _body, _operator, query) => {
        return json(200, await operations.list(parseSaleQuery(queryValues(query))));
      }),
    )
    .route(
      'post',
      '/v1/sales',
      guarded(async (_, body, actor) => json(201, await operations.create(body, actor)), true),
    )
    .route(
      'get',
      '/v1/sales/:saleId',
      guarded(async (id) => json(200, await operations.show(id))),
    )
    .route(
      'patch',
      '/v1/sales/:saleId',
      guarded(async (id, body, actor) => {
        const { change, reason } = parseChange(body);
        return json(200, await operations.change(id, change, { actor, reason }));
      }, true),
    )
    .route(
      'delete',
      '/v1/sales/:saleId',
      guarded(async (id, _body, operator, query) => {
        const { orders, reason } = parseDeleteQuery(queryValues(query));
        const author = { actor: parseActor(operator), reason: parseReason(reason) };
        return json(202, await operations.delete(id, orders, author));
      }),
    )
    .route(
      'get',
      '/v1/sales/:saleId/deletion',
      guarded(async (id) => json(200, await operations.deletion(id))),
    )
    .route(
      'get',
      '/v1/sales/:saleId/ledger',
      guarded(async (id) => json(200, { ledger: await operations.ledger(id) })),
    )
    .route(
      'post',
      '/v1/sales/:saleId/rebalance',
      guarded(async (id, body) => {
        const dryRun = parseFlag(body, 'dryRun', 'rebalance');
        return json(200, await operations.rebalance(id, { dryRun }));
      }, 'optional'),
    )
    .route(
      'post',
      '/v1/sales/:saleId/recover',
      guarded(async (id) => json(202, await operations.recover(id))),
    )
    .route(
      'get',
      '/v1/sales/:saleId/recover',
      guarded(async (id) => json(200, await operations.recovery(id))),
    )
    .route(
      'post',
      '/v1/sales/:saleId/verify',
      guarded(async (id, body) => {
        const repair = parseFlag(body, 'repair', 'verify');
        return json(200, await operations.verify(id, { repair }));
      }, 'optional'),
    );
}

/**
 * Parses the body of an operation with one switch, such as `{"dryRun": true}`. A missing body or switch means false.
 * @param what the operation, for the error
 * @throws InvalidInput
 */
function parseFlag(body: unknown, name: string, what: string): boolean {
  const invalid = (field: string, problem: string) =>
    new InvalidInput(`the ${what} is not valid`, [{ field, problem }]);
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
  if (body !== undefined && !isObject) throw invalid('body', 'must be an object');
  const { [name]: flag = false, ...rest } = (body ?? {}) as Record<string, unknown>;
  if (typeof flag !== 'boolean') throw invalid(name, 'must be true or false');
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) throw invalid(unknown, `is not a field of a ${what}`);
  return flag;
}
