/**
 * A change in a transaction that can't take effect after its caller was told that the outcome is unknown (in-time.ts). Its last statement
 * compares the time, when all locks are held. From then on Postgres waits for the COMMIT until the latest time, and no longer.
 *
 * | the change is held up | and then |
 * |---|---|
 * | before it has a connection | it does not begin after the latest time |
 * | by a lock, or in the network before its last statement | the last statement comes late, and all is rolled back |
 * | in the network between its last statement and the COMMIT | Postgres ends the session at the latest time, and rolls it back |
 * | after that | it holds its locks. A repetition waits for them |
 *
 * PGlite does not end sessions. Nothing lies between it and this process that could hold up a COMMIT.
 */
import type { Knex } from 'knex';
import { type Database, rows } from '../database.ts';
import { asLost, IN_TIME, inTime, type Session } from './in-time.ts';

/** `idle_in_transaction_session_timeout` takes whole milliseconds, and 0 means for ever. */
const SEAL = `SELECT shown_ms,
    set_config('idle_in_transaction_session_timeout', greatest(1, floor(? - shown_ms))::bigint::text, true)
  FROM (SELECT ${IN_TIME}) AS seen`;

/**
 * The result of a transaction, which may be made twice if Postgres' clock was set.
 * @param latestMs when it may take effect at the latest, by `monotonicMs`; `undefined`: at any time
 * @throws what `work` throws; the database's error; StockadeError `timed_out` if it was not made, because it would have been late;
 * ReplyLost if it may still take effect, until `latestMs`
 */
export async function transactionInTime<T>(
  db: Database,
  latestMs: number | undefined,
  work: (trx: Knex.Transaction) => Promise<T>,
): Promise<T> {
  if (latestMs === undefined) return db.transaction(work);
  return inTime(db, latestMs, (session, latest) => make(session, work, latest));
}

async function make<T>(
  { db, connection, clock }: Session,
  work: (trx: Knex.Transaction) => Promise<T>,
  latest: number,
): Promise<T> {
  let isSealed = false;
  const sealed = async (trx: Knex.Transaction) => {
    const result = await work(trx);
    const [seal] = await rows<{ shown_ms: number }>(trx, SEAL, [latest, latest]);
    clock.learn(seal!.shown_ms);
    isSealed = true;
    return result;
  };
  try {
    return await db.transaction(sealed, { connection });
  } catch (error) {
    // Before that nothing is committed, whatever becomes of the connection.
    throw isSealed ? asLost(error) : error;
  }
}
