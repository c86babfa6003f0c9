/**
 * A Postgres database with a clock that a test sets: its `now()` is a function of the test, found before Postgres'
 * own.
 */

import { query } from '../shop/truth.ts';
import { APP_ROLE, asAdmin } from './least-rights.ts';

export interface PostgresClock {
  /** Sets the clock this many seconds ahead of the true time, or behind it. */
  set(aheadS: number): Promise<void>;
}

/** Must be called before any session connects: sessions look the function up when they begin. */
export async function settablePostgresClock(databaseUrl: string): Promise<PostgresClock> {
  const admin = asAdmin(databaseUrl);
  const name = new URL(databaseUrl).pathname.slice(1);
  await query(admin, 'CREATE SCHEMA test_clock');
  await query(admin, 'CREATE TABLE test_clock.step AS SELECT 0::float8 AS ahead_s');
  await query(
    admin,
    `CREATE FUNCTION test_clock.now() RETURNS timestamptz STABLE SECURITY DEFINER LANGUAGE sql
     AS 'SELECT pg_catalog.now() + ahead_s * interval ''1 second'' FROM test_clock.step'`,
  );
  await query(admin, `GRANT USAGE ON SCHEMA test_clock TO ${APP_ROLE}`);
  await query(admin, `ALTER DATABASE "${name}" SET search_path = test_clock, public, pg_catalog`);
  return {
    async set(aheadS) {
      await query(admin, 'UPDATE test_clock.step SET ahead_s = $1', [aheadS]);
    },
  };
}
