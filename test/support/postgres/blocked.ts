/** Statements that wait for a lock in Postgres. */
import { type Database, rows } from '../../../src/postgres/database.ts';
import { until } from '../fixtures.ts';

/**
 * How many there are in the database of this connection.
 * @param words only those that contain this in their first 1,024 bytes, which is all that Postgres shows
 */
export async function blockedStatements(db: Database, words = ''): Promise<number> {
  const waiting = "datname = current_database() AND wait_event_type = 'Lock' AND strpos(query, ?) > 0";
  return (await rows(db, `SELECT 1 FROM pg_stat_activity WHERE ${waiting}`, [words])).length;
}

/** Waits until there are exactly this many. @param words as above */
export async function untilBlocked(db: Database, statements: number, words = ''): Promise<void> {
  await until(async () => (await blockedStatements(db, words)) === statements, {
    what: `${statements} statements ${words} wait for a lock`,
  });
}
