import { assertRights } from '../../postgres/app-role.ts';
import type { Database } from '../../postgres/database.ts';
import { missingIndexes } from '../../postgres/large-indexes.ts';
import { migrate } from '../../postgres/migrate.ts';
import type { Log } from '../process/log.ts';

/**
 * Migrates the tables to this version, if this Postgres user may do that. Then checks that the user has all rights that a
 * node needs, so that a missing one is reported at the start and not when the first order comes.
 * @throws StockadeError `migrations_pending`, `missing_rights`
 */
export async function prepareDatabase(db: Database, log: Log): Promise<void> {
  const migrations = await migrate(db);
  if (migrations.length > 0) log.info({ migrations }, 'these migrations were applied');
  await assertRights(db);
  const missing = await missingIndexes(db);
  if (missing.length > 0) {
    log.warn(
      { indexes: missing },
      'indexes are missing, so lists of orders are slow: run `stockade migrate`',
    );
  }
}
