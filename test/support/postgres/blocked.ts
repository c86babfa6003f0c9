/** Statements that wait for a lock in Postgres. */
import { type Database, rows } from '../../../src/postgres/database.ts';
import { until } from '../fixtures.ts';

/** How many there are in the database of this connection. */
export async function blockedStatements(db: Database): Promise<number> {
  const waiting = "datname = current_database() AND wait_event_type = 'Lock'";
  return (await rows(db, `SELECT 1 FROM pg_stat_activity WHERE ${waiting}`)).length;
}

/** Waits until there are exactly so many. */
export async function untilBlocked(db: Database, statements: number): Promise<void> {
  await until(async () => (await blockedStatements(db)) === statements, {
    what: `${statements} statements wait for a lock`,
  });
}
