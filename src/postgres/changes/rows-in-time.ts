/**
 * A change in one statement that can't take effect after its caller was told that the outcome is unknown (in-time.ts). Its time is
 * compared in the result of the statement.
 *
 * | the change is held up | and then |
 * |---|---|
 * | before it has a connection | it is not sent after the latest time |
 * | in the network, or in the queue of a proxy | it arrives late, and is rolled back |
 * | by a lock | the time is compared when it has the lock. If it is late, it is rolled back |
 * | after that | it holds the lock of the row that it changes. A repetition waits for the lock, and sees what became of it |
 */
import type { Knex } from 'knex';
import { type Database, rows } from '../database.ts';
import { asLost, inTime, type Session } from './in-time.ts';

type Bindings = readonly (Knex.RawBinding | null)[];

interface Change {
  /** IN_TIME is the first column that it returns, in a row that comes from what makes the change. */
  readonly sql: string;
  /** @param latest for the column IN_TIME */
  readonly bindings: (latest: number | null) => Bindings;
}

/**
 * The rows that a change returns.
 * @param latestMs when it may take effect at the latest, by `monotonicMs`; `undefined`: at any time
 * @throws the database's error; StockadeError `timed_out` if it was not made, because it would have been late; ReplyLost if it may
 * still take effect, until `latestMs`
 */
export async function rowsInTime<T>(
  db: Database,
  latestMs: number | undefined,
  change: Change,
): Promise<T[]> {
  if (latestMs === undefined) return rows<T>(db, change.sql, bound(change, null));
  return inTime(db, latestMs, (session, latest) => make<T>(session, change, latest));
}

async function make<T>({ db, connection, clock }: Session, change: Change, latest: number): Promise<T[]> {
  try {
    const { rows } = await db.raw(change.sql, bound(change, latest)).connection(connection);
    if (rows.length > 0) clock.learn(rows[0].shown_ms);
    return rows;
  } catch (error) {
    throw asLost(error);
  }
}

const bound = ({ bindings }: Change, latest: number | null) => bindings(latest) as Knex.RawBinding[];
