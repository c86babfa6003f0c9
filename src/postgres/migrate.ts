import { readdirSync, readFileSync } from 'node:fs';
import type { Knex } from 'knex';
import { StockadeError } from '../engine/errors.ts';
import { grantTo, isRightMissing, MissingRights } from './app-role.ts';
import { type Database, rows } from './database.ts';

const FOLDER = new URL('./migrations/', import.meta.url);

export interface MigrateOptions {
  /** A role that gets the rights that a node needs, and no more, on all tables and functions. */
  readonly grantee?: string | undefined;
  /** Whether that role may also delete sales. */
  readonly mayDelete?: boolean | undefined;
}

/**
 * Applies the numbered SQL files that this database has not seen, all in one transaction under a transaction lock:
 * any number of nodes may start at once, and a crash leaves nothing half done. If nothing is pending, the right to
 * read the names of the applied files is enough.
 *
 * knex has a migrator, but its lock is a row that outlives a crash and then blocks every later start until an
 * operator removes it.
 *
 * @returns the names of the files that were applied
 * @throws MigrationsPending if some are pending and this user may not apply them; MissingRights if it may not see which are, or
 *   NotTheOwner if it was to grant rights as well
 */
export async function migrate(db: Database, { grantee, mayDelete }: MigrateOptions = {}): Promise<string[]> {
  const pending = await pendingMigrations(db).catch((error: unknown) => {
    if (!isRightMissing(error)) throw error;
    if (grantee !== undefined) throw new NotTheOwner();
    throw new MissingRights(['SELECT on stockade_migrations']);
  });
  if (pending.length === 0 && grantee === undefined) return [];
  try {
    return await db.transaction(async (trx) => {
      const applied = await applyPending(trx);
      if (grantee !== undefined) await grantTo(trx, grantee, mayDelete);
      return applied;
    });
  } catch (error) {
    if (isRightMissing(error)) throw new MigrationsPending(pending, error);
    throw error;
  }
}

/** This session's user may not create the missing tables, or may not grant rights on them. */
export class MigrationsPending extends StockadeError {
  constructor(pending: readonly string[], cause: unknown) {
    const first = pending[0];
    const last = pending.at(-1);
    const files = first === last ? first : `${first} to ${last}`;
    const what =
      first === undefined ? 'grant rights on its tables' : `apply the migrations that are pending, ${files}`;
    super(
      'migrations_pending',
      `the user of DATABASE_URL may not ${what}: run \`stockade migrate --grant-to <the user of your nodes>\` as the owner of the tables`,
      { cause },
    );
  }
}

/** Rights on tables of another user can't be granted. A role that was made for the tables may not have got them yet. */
export class NotTheOwner extends StockadeError {
  constructor() {
    super(
      'missing_rights',
      'the tables belong to another user than that of DATABASE_URL: connect as their owner, or transfer them first (docs/operations/hardening.md)',
    );
  }
}

async function applyPending(trx: Knex): Promise<string[]> {
  await trx.raw("SELECT pg_advisory_xact_lock(hashtextextended('stockade:migrate', 0))");
  await trx.raw(
    'CREATE TABLE IF NOT EXISTS stockade_migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL)',
  );
  const pending = await pendingMigrations(trx);
  for (const name of pending) {
    await trx.raw(escapeBindings(readFileSync(new URL(name, FOLDER), 'utf8')));
    await trx.raw('INSERT INTO stockade_migrations VALUES (?, now())', [name]);
  }
  return pending;
}

async function pendingMigrations(db: Knex): Promise<string[]> {
  const [found] = await rows<{ begun: boolean }>(
    db,
    "SELECT to_regclass('stockade_migrations') IS NOT NULL AS begun",
  );
  const applied = found!.begun
    ? await rows<{ name: string }>(db, 'SELECT name FROM stockade_migrations')
    : [];
  const seen = new Set(applied.map(({ name }) => name));
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith('.sql') && !seen.has(name))
    .sort();
}

/** knex takes `?` for a binding, even in comments. */
const escapeBindings = (sql: string) => sql.replaceAll('?', '\\?');
