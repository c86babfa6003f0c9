import type { RebalanceOperations } from '../../operations/rebalance-operations.ts';
import { json } from '../server/problem.ts';
import type { Router } from '../server/router.ts';
import { parseFlag } from './flag-body.ts';
import type { Guarded } from './ops-server.ts';

export function addRebalanceRoute(router: Router, operations: RebalanceOperations, guarded: Guarded): void {
  router.route(
    'post',
    '/v1/sales/:saleId/rebalance',
    guarded(async (id, body) => {
      const dryRun = parseFlag(body, 'dryRun', 'rebalance');
      return json(200, await operations.rebalance(id, { dryRun }));
    }, 'optional'),
  );
}
