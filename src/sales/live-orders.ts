/**
 * Counts a sale's live orders, for `sales.live_orders`. Functions of Postgres keep the number afterwards
 * (migrations/023-queue.sql and migrations/025-many-sales.sql). docs/internals/history.md has the interleavings.
 */
import { type Database, rows } from '../postgres/database.ts';
import { LIVE } from '../postgres/live-orders.ts';

/** The conditions are those of the indexes, one for each kind of sale. */
const COUNT = `
  SELECT (SELECT count(*) FROM orders WHERE sale_id = ? AND one_per_buyer AND status IN ${LIVE})
    + (SELECT count(*) FROM orders WHERE sale_id = ? AND NOT one_per_buyer AND status IN ${LIVE}) AS orders`;

/**
 * Counts and stores the number. Commits of the sale wait meanwhile: some 0.3 s for a million orders.
 *
 * The row is locked by a statement of its own, so that the count sees all that was committed before the lock: each
 * statement of this transaction sees what was committed when it began.
 */
export async function countLiveOrders(db: Database, saleId: string): Promise<number> {
  return db.transaction(async (trx) => {
    await trx.raw('SELECT 1 FROM sales WHERE id = ? FOR UPDATE', [saleId]);
    const [counted] = await rows<{ orders: string }>(trx, COUNT, [saleId, saleId]);
    await trx.raw('UPDATE sales SET live_orders = ? WHERE id = ?', [counted!.orders, saleId]);
    return Number(counted!.orders);
  });
}

/** Counts all sales that were never counted. @param progress called with the number of counted sales and the total */
export async function countAllSales(
  db: Database,
  progress: (done: number, total: number) => void = () => {},
): Promise<number> {
  const uncounted = await rows<{ id: string }>(
    db,
    'SELECT id FROM sales WHERE live_orders IS NULL ORDER BY id',
  );
  for (const [done, { id }] of uncounted.entries()) {
    progress(done, uncounted.length);
    await countLiveOrders(db, id);
  }
  return uncounted.length;
}
