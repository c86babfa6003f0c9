/** Routes of the ops port that check or mend where a sale's units are. */
import { InvalidInput } from '../../engine/errors.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import { json } from '../server/replies/reply.ts';
import type { Router } from '../server/router.ts';
import type { Guarded } from './guard.ts';

export function addStockRoutes(router: Router, sales: SaleOperations, guarded: Guarded): void {
  router
    .route(
      'post',
      '/v1/sales/:saleId/rebalance',
      guarded(async ({ id, body }) => {
        const dryRun = parseFlag(body, 'dryRun', 'rebalance');
        return json(200, await sales.rebalance(id, { dryRun }));
      }, 'optional'),
    )
    .route(
      'post',
      '/v1/sales/:saleId/recover',
      guarded(async ({ id }) => json(202, await sales.recover(id))),
    )
    .route(
      'get',
      '/v1/sales/:saleId/recover',
      guarded(async ({ id }) => json(200, await sales.recovery(id))),
    )
    .route(
      'post',
      '/v1/sales/:saleId/verify',
      guarded(async ({ id, body }) => {
        const repair = parseFlag(body, 'repair', 'verify');
        return json(200, await sales.verify(id, { repair }));
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
