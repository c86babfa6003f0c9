/**
 * Offers from the moment at which the head begins them until it is known what has become of them. Operators stop offers, hand some out, or
 * set a pace. An offer uses up what they allow when it is begun, and Postgres keeps which offers those are:
 *
 *   ──begun──> taken, committed ──settled──> counts as made
 *        └──its place leaves, or is passed over──settled──> what it has used up of a hand-out is given back
 *
 * | a process dies | a reader sees | then |
 * |---|---|---|
 * | the head, before the offers are begun | nothing used up | the next head begins them |
 * | the head, after that and before they are taken | offers that are used up and not made | the next head takes for the same places, and uses up nothing again |
 * | the head, before they are settled | a number of offers made that is too small | the next head settles them |
 *
 * Two heads at a time share what is allowed, because both use it up under the lock on the row of the queue. Operators change their rule
 * under the same lock (operators/offer-control.ts). What was begun under another rule counts no more: it is begun again, or not. And what was
 * begun before the last stop or hand-out gives nothing back.
 */
import { numbers } from '../../postgres/array-literal.ts';
import { type Database, rows } from '../../postgres/database.ts';
import { despiteDeadlocks } from '../../postgres/deadlock.ts';
import { type QueueState, sameQueue } from '../queue-state.ts';

/**
 * A head that stalled may call this after another head has made the same offers. They would be counted again, and use up further offers
 * that an operator allows. So none is begun if one of the places waits no longer, or if another head has reported since the queue was
 * read. Postgres checks both under the lock (migrations/034-begun-offers.sql).
 * @param places their numbers
 * @returns false if none is begun: fewer are allowed by now, or the queue has changed since it was read
 */
export async function beginOffers(
  db: Database,
  queue: Pick<QueueState, 'saleId' | 'draw' | 'report'>,
  places: readonly number[],
): Promise<boolean> {
  if (places.length === 0) return true;
  const [row] = await despiteDeadlocks(() =>
    rows<{ begun: boolean }>(db, 'SELECT stockade_begin_offers(?, ?, ?, ?, ?::bigint[]) AS begun', [
      ...sameQueue(queue),
      queue.report ?? null,
      numbers(places),
    ]),
  );
  return row!.begun;
}

/** @returns the numbers of the places whose offers are begun under the present rule, and not settled yet */
export async function settleOffers(db: Database, saleId: string): Promise<Set<number>> {
  const [row] = await despiteDeadlocks(() =>
    rows<{ begun: string[] }>(db, 'SELECT stockade_settle_offers(?)::text[] AS begun', [saleId]),
  );
  return new Set(row!.begun.map(Number));
}
