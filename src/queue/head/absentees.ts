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

/** Places that end in one round: some 50 ms of Postgres' time. */
const MAX_ENDED = 2_048;

export interface AbsenteesOf {
  readonly queue: ReadQueue;
  readonly line: Line;
  readonly present: PresentPlaces;
  /** No place of a rank up to this one waits. */
  readonly head: number;
  /** The turn of all places before this rank has come. */
  readonly before: number;
}

export interface Ended {
  readonly absent: number;
  /** There are more. */
  readonly isMore: boolean;
}

export async function endAbsentees(db: Database, absentees: AbsenteesOf): Promise<Ended> {
  const { queue, line, present, head, before } = absentees;
  if (present.isEverybody || before <= head + 1) return { absent: 0, isMore: false };
  const waiting = await line.waiting(db, head, MAX_ENDED);
  const absent = waiting.filter(({ number }) => line.rankOf(number) < before && !present.has(number));
  const ended = await passOverAbsent(db, queue, absent);
  // If all that were read are present, the next look would find the same.
  const isMore = ended > 0 && waiting.length === MAX_ENDED && absent.at(-1) === waiting.at(-1);
  return { absent: ended, isMore };
}
