/**
 * A Postgres that the tests did not start: the one of `TEST_POSTGRES_URL`. Its user may create databases and roles. The tests use
 * databases and roles of their own, which are gone afterwards.
 */
import type pg from 'pg';
import { APP_ROLE, OWNER_ROLE } from '../postgres/least-rights.ts';
import { onServer } from './create-database.ts';

const ROLES = [OWNER_ROLE, APP_ROLE];
/** As `createDatabase` names them. */
const OF_TESTS = '^(test|migrated)_[0-9a-f]{12}$';

export class GivenPostgres implements AsyncDisposable {
  readonly url: string;
  /** Databases of others, whatever their names. */
  readonly #others: readonly string[];

  private constructor(url: string, others: readonly string[]) {
    this.url = url;
    this.#others = others;
  }

  /** @throws if it can't be reached, its user has too few rights, or it has roles with the names of the tests' own */
  static async claim(url: string): Promise<GivenPostgres> {
    try {
      return new GivenPostgres(url, await onServer(url, claim));
    } catch (error) {
      throw new Error(`TEST_POSTGRES_URL is refused: ${(error as Error).message}`, { cause: error });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await onServer(this.url, async (client) => {
      const found = await client.query(
        'SELECT datname FROM pg_database WHERE datname ~ $1 AND NOT datname = ANY ($2)',
        [OF_TESTS, this.#others],
      );
      for (const { datname } of found.rows)
        await client.query(`DROP DATABASE ${client.escapeIdentifier(datname)} WITH (FORCE)`);
      await client.query(`DROP ROLE IF EXISTS ${ROLES.join()}`);
    });
  }
}

/** @returns the names of all databases */
async function claim(client: pg.Client): Promise<string[]> {
  const may = await client.query(
    'SELECT 1 FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolcreatedb AND rolcreaterole)',
  );
  if (may.rowCount === 0) throw new Error('its user may not create databases and roles');
  const taken = await client.query('SELECT rolname FROM pg_roles WHERE rolname = ANY ($1)', [ROLES]);
  if (taken.rowCount !== 0) {
    const names = taken.rows.map(({ rolname }) => rolname).join(', ');
    throw new Error(
      `it has the roles ${names}, so a Stockade may use it. If a run of the tests that was killed has left them, drop its databases (test_…, migrated_…) and these roles`,
    );
  }
  const databases = await client.query('SELECT datname FROM pg_database');
  return databases.rows.map(({ datname }) => datname);
}
