/** Routes of the ops port for the queue of a sale. */
import { queryValues } from '../../lib/url-query.ts';
import {
  parsePlaceQuery,
  parseQueueChange,
  parseQueueQuery,
  type QueueOperations,
} from '../../operations/queue/queue-operations.ts';
import { headOf, json } from '../server/replies/reply.ts';
import type { Router } from '../server/router.ts';
import type { Guarded } from './guard.ts';

export function addQueueRoutes(router: Router, queues: QueueOperations, guarded: Guarded): void {
  router
    .route(
      'get',
      '/v1/sales/:saleId/queue',
      guarded(async ({ id, query }) =>
        json(200, await queues.showQueue(id, parseQueueQuery(queryValues(query)))),
      ),
    )
    .route(
      'patch',
      '/v1/sales/:saleId/queue',
      guarded(async ({ id, body, actor }) => {
        const { change, reason } = parseQueueChange(body);
        return json(200, await queues.changeQueue(id, change, { actor, reason }));
      }, true),
    )
    .route(
      'get',
      '/v1/sales/:saleId/queue/places',
      guarded(async ({ id, query }) =>
        json(200, await queues.places(id, parsePlaceQuery(queryValues(query)))),
      ),
    )
    .route(
      'get',
      '/v1/sales/:saleId/queue/draw',
      guarded(async ({ id }) => {
        const pieces = await queues.drawFile(id);
        return { status: 200, head: headOf(200, { 'content-type': 'application/x-ndjson' }), pieces };
      }),
    );
}
