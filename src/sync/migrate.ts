import { readdirSync, readFileSync } from 'node:fs';
import { type Database, rows } from './database.ts';

const FOLDER = new URL('./migrations/', import.meta.url);

/**
 * Applies the numbered SQL files that this database has not seen, all in one transaction under a transaction lock: any
 * number of nodes may start at once, and a crash leaves nothing half done.
 *
 * knex has a migrator; its lock is a row that outlives a crash and then blocks every later start until somebody frees it.
 *
 * @returns the names of the files that were applied
 */
export async function migrate(db: Database): Promise<string[]> {
  return db.transaction(async (trx) => {
    await trx.raw("SELECT pg_advisory_xact_lock(hashtextextended('stockade:migrate', 0))");
    await trx.raw(
      'CREATE TABLE IF NOT EXISTS stockade_migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL)',
    );
    const seen = new Set(
      (await rows<{ name: string }>(trx, 'SELECT name FROM stockade_migrations')).map((r) => r.name),
    );
    const pending = readdirSync(FOLDER)
      .filter((name) => name.endsWith('.sql') && !seen.has(name))
      .sort();
    for (const name of pending) {
      await trx.raw(escapeBindings(readFileSync(new URL(name, FOLDER), 'utf8')));
      await trx.raw('INSERT INTO stockade_migrations VALUES (?, now())', [name]);
    }
    return pending;
  });
}

/** knex takes `?` for a binding, in comments too. */
const escapeBindings = (sql: string) => sql.replaceAll('?', '\\?');
