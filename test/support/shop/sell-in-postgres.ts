import type { Database } from '../../../src/postgres/database.ts';

/** So many buyers have bought one unit each: `holder-1`, `holder-2` … Their orders are in Postgres, and in no segment. */
export async function sellInPostgres(db: Database, saleId: string, holders: number): Promise<void> {
  await db.raw(
    `WITH sold AS (
       INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer)
       SELECT n, ?, 'holder-' || n, 1, true FROM generate_series(1, ?) AS n RETURNING quantity)
     UPDATE sales SET stock = stock - (SELECT coalesce(sum(quantity), 0) FROM sold),
       live_orders = (SELECT count(*) FROM sold) WHERE id = ?`,
    [saleId, holders, saleId],
  );
}
