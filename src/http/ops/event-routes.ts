/** Routes for order events that the webhook did not accept. */
import { queryValues } from '../../lib/url-query.ts';
import { isRowId, parsePageQuery } from '../../operations/checked-input.ts';
import type { EventOperations } from '../../operations/event-operations.ts';
import { json } from '../server/replies/reply.ts';
import type { Router } from '../server/router.ts';
import type { Guarded } from './guard.ts';

export function addEventRoutes(router: Router, events: EventOperations, guarded: Guarded): void {
  router
    .route(
      'get',
      '/v1/events/dead',
      guarded(async ({ query }) => {
        const { total, listed, next } = await events.deadLetters(parsePageQuery(queryValues(query), isRowId));
        return json(200, { total, dead: listed, next });
      }),
    )
    .route(
      'post',
      '/v1/events/dead/resend',
      guarded(async () => json(200, { resent: await events.resendAllDeadLetters() })),
    )
    .route(
      'post',
      '/v1/events/dead/:id/resend',
      guarded(async ({ id }) => {
        await events.resendDeadLetter(id);
        return json(200, { resent: 1 });
      }),
    );
}
