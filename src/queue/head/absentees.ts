/**
 * Ends the places whose turn came while their buyers were absent. Offers do not wait for that, because there may be a million such
 * places.
 *
 *   head ──absent, absent, absent …──> a present place, which has its offer
 *          └──some of them in each round ──> left
 *
 * A buyer that comes back before its place has ended gets the next unit.
 */
import type { Database } from '../../postgres/database.ts';
import type { Line } from '../line.ts';
import { passOverAbsent } from '../places.ts';
import type { PresentPlaces } from '../presence.ts';
import type { ReadQueue } from '../queue-state.ts';
import type { Turns } from './turns.ts';

/** Places that end in one round: some 50 ms of Postgres' time. */
const MAX_ENDED = 2_048;

export interface AbsenteesOf {
  readonly queue: ReadQueue;
  readonly line: Line;
  readonly present: PresentPlaces;
  /** No place of a rank up to this one waits. */
  readonly head: number;
  readonly turns: Turns;
}

export interface Ended {
  readonly absent: number;
  /** There are more. */
  readonly isMore: boolean;
}

export async function endAbsentees(db: Database, absentees: AbsenteesOf): Promise<Ended> {
  const { queue, line, present, head, turns } = absentees;
  const mostUnits = turns.mostAt(head + 1);
  if (present.isEverybody || mostUnits === 0) return { absent: 0, isMore: false };
  const waiting = await line.waiting(db, head, MAX_ENDED, mostUnits);
  const absent = waiting.filter(
    ({ number, quantity }) => line.rankOf(number) < turns.before(quantity) && !present.has(number),
  );
  const ended = await passOverAbsent(db, queue, absent);
  // If none has ended, the next look would find the same.
  const isFull = ended > 0 && waiting.length === MAX_ENDED;
  const isMore = isFull && line.rankOf(waiting.at(-1)!.number) < turns.before(1);
  return { absent: ended, isMore };
}
