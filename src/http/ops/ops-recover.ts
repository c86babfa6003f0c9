import type { RecoverOperations } from '../../operations/recover-operations.ts';
import { json } from '../server/problem.ts';
import type { Router } from '../server/router.ts';
import type { Guarded } from './ops-server.ts';

export function addRecoverRoutes(router: Router, operations: RecoverOperations, guarded: Guarded): void {
  const path = '/v1/sales/:saleId/recover';
  router
    .route(
      'post',
      path,
      guarded(async (id) => json(202, await operations.recover(id))),
    )
    .route(
      'get',
      path,
      guarded(async (id) => json(200, await operations.recovery(id))),
    );
}
