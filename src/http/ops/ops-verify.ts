import type { SaleOperations } from '../../operations/sale-operations.ts';
import { json } from '../server/problem.ts';
import type { Router } from '../server/router.ts';
import { parseFlag } from './flag-body.ts';
import type { Guarded } from './ops-server.ts';

export function addVerifyRoute(router: Router, operations: SaleOperations, guarded: Guarded): void {
  router.route(
    'post',
    '/v1/sales/:saleId/verify',
    guarded(async (id, body) => {
      const repair = parseFlag(body, 'repair', 'verify');
      return json(200, await operations.verify(id, { repair }));
    }, 'optional'),
  );
}
