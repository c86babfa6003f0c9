import { assertRights } from '../../postgres/app-role.ts';
import type { Database } from '../../postgres/database.ts';
import { migrate } from '../../postgres/migrate.ts';
import type { Log } from '../process/log.ts';

/**
 * Brings the tables up to this version, if this user may do that, and sees that it may do all that serving asks for: what it
 * lacks is better said now than by the first buyer's order.
 * @throws StockadeError `migrations_pending`, `missing_rights`
 */
export async function prepareDatabase(db: Database, log: Log): Promise<void> {
  for (const name of await migrate(db)) log.info({ migration: name }, 'applied a migration');
  await assertRights(db);
}
