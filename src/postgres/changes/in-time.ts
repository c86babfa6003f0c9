/**
 * Changes that can't take effect after their caller was told that the outcome is unknown. Each brings the latest time at which it may take
 * effect, by Postgres' clock, and Postgres refuses it afterwards (migrations/029-in-time.sql). A change is one statement
 * (rows-in-time.ts) or a transaction of several (transaction-in-time.ts).
 *
 * Each connection learns the clock of its own server: a name in DNS, or a proxy, may lead to another one. It asks for the time
 * before its first change, and if it has not heard it for a minute. Each change tells it again.
 */
import { StockadeError } from '../../engine/errors.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { ReplyLost } from '../../lib/with-timeout.ts';
import { CONNECTION_ERRORS, type Database, sqlState } from '../database.ts';
import { ServerClock } from './server-clock.ts';

/** A column that refuses what is late, with the latest time as its binding, or `null` for any time. It has the server's time. */
export const IN_TIME = 'stockade_in_time(?) AS shown_ms';

const LATE = 'SK004';
/** Postgres is a standby, or its default_transaction_read_only is on. */
const READ_ONLY = '25006';
const NOT_MADE = 'Postgres takes no writes, so the change was not made';

/** One connection, which belongs to one change at a time. */
export interface Session {
  readonly db: Database;
  readonly connection: object;
  readonly clock: ServerClock;
}

const clocks = new WeakMap<object, ServerClock>();

/**
 * Makes a change on a connection that knows its server's clock. If the server refuses it as late although it is not, its clock was set
 * forward: then the clock is asked again, and the change is made once more.
 * @param latestMs when it may take effect at the latest, by `monotonicMs`
 * @param make called with that time by the server's clock, for IN_TIME
 * @throws what `make` throws; StockadeError `timed_out` if it was not made, because it would have been late, and `unavailable` if it was
 * not, because Postgres takes no writes
 */
export async function inTime<T>(
  db: Database,
  latestMs: number,
  make: (session: Session, latest: number) => Promise<T>,
): Promise<T> {
  const connection: object = await db.client.acquireConnection();
  try {
    const session = { db, connection, clock: clockOf(connection) };
    for (let attempt = 1; attempt <= 2 && monotonicMs() < latestMs; attempt++) {
      if (!session.clock.isKnown) await askForTime(session);
      try {
        return await make(session, session.clock.timeBefore(latestMs));
      } catch (error) {
        if (sqlState(error) === READ_ONLY) throw new StockadeError('unavailable', NOT_MADE, { cause: error });
        if (sqlState(error) !== LATE) throw error;
        session.clock.forget();
      }
    }
  } finally {
    db.client.releaseConnection(connection);
  }
  throw new StockadeError('timed_out', 'a change was not made, because it would have been late');
}

function clockOf(connection: object): ServerClock {
  const known = clocks.get(connection) ?? new ServerClock();
  clocks.set(connection, known);
  return known;
}

async function askForTime({ db, connection, clock }: Session): Promise<void> {
  const { rows } = await db.raw(`SELECT ${IN_TIME}`, [null]).connection(connection);
  clock.learn(rows[0].shown_ms);
}

/** The error of a message that makes a change: ReplyLost if Postgres has not told what became of it. */
export function asLost(error: unknown): unknown {
  const isTold = sqlState(error)?.startsWith(CONNECTION_ERRORS) === false || error instanceof StockadeError;
  return isTold ? error : new ReplyLost(error);
}
