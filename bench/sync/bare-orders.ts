/** The table of a bench's reference: that of orders, with the same columns, checks and indexes. Nothing but inserts happens to it. */
import type { Database } from '../../src/postgres/database.ts';

export const BARE_ORDERS = 'bare_orders';

/** In a database that has the product's tables. */
export async function createBareOrders(db: Database): Promise<void> {
  await db.raw(`CREATE TABLE ${BARE_ORDERS} (LIKE orders INCLUDING ALL)`);
}
