/**
 * The sales of `stockade rehearse`. Nothing but the id tells them from others, so they sell as others do. No event of their
 * orders leaves Postgres (events/outbox.ts, events/webhook-queue.ts): the shop would take them for real.
 */
import { randomBytes } from 'node:crypto';

/** Begins the id of each sale of a rehearsal. No order events are sent for such a sale, even if it was not created by a rehearsal. */
export const REHEARSAL_PREFIX = 'stockade-rehearsal-';

/** An id that no sale has had. */
export function newRehearsalId(): string {
  return `${REHEARSAL_PREFIX}${randomBytes(6).toString('hex')}`;
}

export function isRehearsal(saleId: string): boolean {
  return saleId.startsWith(REHEARSAL_PREFIX);
}
