/**
 * The reference: the same rows, in a table with the same columns, checks and indexes, inserted from arrays in transactions of the
 * same size. Nothing else happens: no log is read, no stock is guarded, no cursor is moved.
 *
 * It is as fast as we could make it: as in the product, array literals are built here, because pg's own conversion is slower, and
 * values that are equal in all rows are sent once.
 */
import type { TakeOrder } from '../../src/engine/contract.ts';
import { numbers, texts } from '../../src/postgres/array-literal.ts';
import type { Database } from '../../src/postgres/database.ts';
import { BARE_ORDERS } from './bare-orders.ts';

const STATEMENT = `INSERT INTO ${BARE_ORDERS} (order_id, sale_id, buyer_id, quantity, one_per_buyer)
  SELECT o.id, ?, o.buyer, o.quantity, true
  FROM unnest(?::bigint[], ?::text[], ?::integer[]) AS o (id, buyer, quantity)`;

export async function insertBare(
  db: Database,
  saleId: string,
  orders: readonly TakeOrder[],
  batchRows: number,
): Promise<void> {
  for (let from = 0; from < orders.length; from += batchRows) {
    const batch = orders.slice(from, from + batchRows);
    // A statement outside a transaction is one of its own.
    await db.raw(STATEMENT, [
      saleId,
      numbers(batch.map((order) => order.orderId)),
      texts(batch.map((order) => order.buyerId)),
      numbers(batch.map((order) => order.quantity)),
    ]);
  }
}
