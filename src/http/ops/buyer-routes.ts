/** Routes of the ops port for buyers. A buyer's id is in the body only: proxies write addresses to their logs. */
import { type BuyerOperations, parseErasure } from '../../operations/buyer-operations.ts';
import { json } from '../server/replies/reply.ts';
import type { Router } from '../server/router.ts';
import type { Guarded } from './guard.ts';

export function addBuyerRoutes(router: Router, buyers: BuyerOperations, guarded: Guarded): void {
  router.route(
    'post',
    '/v1/erasures',
    guarded(async ({ body, actor }) => {
      const { wish, reason } = parseErasure(body, actor);
      const report = await buyers.erase(wish, { actor, reason });
      return json(report.waiting.length > 0 ? 202 : 200, report);
    }, true),
  );
}
