/**
 * Changes that can't take effect after their caller was told that the outcome is unknown. Such a statement brings the latest time at
 * which it may take effect, by Postgres' clock, and Postgres refuses it afterwards (migrations/029-in-time.sql).
 *
 * | the change is held up | and then |
 * |---|---|
 * | before it has a connection | it is not sent after the latest time |
 * | in the network, or in the queue of a proxy | it arrives late, and is rolled back |
 * | by a lock | the time is compared when it has the lock. If it is late, it is rolled back |
 * | after that | it holds the lock of the row that it changes. A repetition waits for the lock, and sees what became of it |
 *
 * Each connection learns the clock of its own server: a name in DNS, or a proxy, may lead to another one. It asks for the time
 * before its first change, and if it has not heard it for a minute. Each change tells it again.
 */
import type { Knex } from 'knex';
import { StockadeError } from '../../engine/errors.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { ReplyLost } from '../../lib/with-timeout.ts';
import { type Database, rows, sqlState } from '../database.ts';
import { ServerClock } from './server-clock.ts';

/** The first column that a change returns, with the latest time as its binding. Its row must come from what makes the change. */
export const IN_TIME = 'stockade_in_time(?) AS shown_ms';

const LATE = 'SK004';

type Bindings = readonly (Knex.RawBinding | null)[];

interface Change {
  readonly sql: string;
  /** @param latest for the column IN_TIME */
  readonly bindings: (latest: number | null) => Bindings;
}

const clocks = new WeakMap<object, ServerClock>();

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
  const connection: object = await db.client.acquireConnection();
  try {
    const found = await madeInTime<T>({ db, connection, clock: clockOf(connection) }, latestMs, change);
    if (found) return found;
    throw new StockadeError('timed_out', 'a change was not made, because it would have been late');
  } finally {
    db.client.releaseConnection(connection);
  }
}

function clockOf(connection: object): ServerClock {
  const known = clocks.get(connection) ?? new ServerClock();
  clocks.set(connection, known);
  return known;
}

interface Session {
  readonly db: Database;
  readonly connection: object;
  readonly clock: ServerClock;
}

/** @returns `undefined` if it is late, also after the clock was asked once more: that of the server may have been set */
async function madeInTime<T>(session: Session, latestMs: number, change: Change): Promise<T[] | undefined> {
  const { clock } = session;
  for (let attempt = 1; attempt <= 2 && monotonicMs() < latestMs; attempt++) {
    if (!clock.isKnown) await askForTime(session);
    try {
      return await make<T>(session, change, clock.timeBefore(latestMs));
    } catch (error) {
      if (sqlState(error) !== LATE) throw error;
      clock.forget();
    }
  }
  return undefined;
}

async function askForTime({ db, connection, clock }: Session): Promise<void> {
  const { rows } = await db.raw(`SELECT ${IN_TIME}`, [null]).connection(connection);
  clock.learn(rows[0].shown_ms);
}

async function make<T>({ db, connection, clock }: Session, change: Change, latest: number): Promise<T[]> {
  try {
    const { rows } = await db.raw(change.sql, bound(change, latest)).connection(connection);
    if (rows.length > 0) clock.learn(rows[0].shown_ms);
    return rows;
  } catch (error) {
    // An error with a state comes from Postgres: the statement has ended. The others come from the connection.
    if (sqlState(error) !== undefined || error instanceof StockadeError) throw error;
    throw new ReplyLost(error);
  }
}

const bound = ({ bindings }: Change, latest: number | null) => bindings(latest) as Knex.RawBinding[];
