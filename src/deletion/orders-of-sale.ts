/** The orders of a sale that is leaving, in slices: no statement takes longer if there are more of them. */
import { type Database, rows } from '../postgres/database.ts';

/** Comes before all orders of a sale. */
export const BEFORE_ALL_ORDERS = '-1';

/**
 * SQL: whether an order comes after one of a sale's orders. Its values: the sale, that order, the sale. Pairs, so that no plan can walk
 * through the orders of all sales by their ids.
 */
export const IS_AFTER = `(sale_id, order_id) > (?, ?::bigint) AND (sale_id, order_id) <= (?, ${2n ** 63n - 1n})`;

/** A sale's orders after one of them. Its values are those of IS_AFTER. */
export const ORDERS_AFTER = `FROM orders WHERE ${IS_AFTER} ORDER BY sale_id, order_id`;

const SLICE_ORDERS = 5_000;

/** Counts what is committed when it begins. Of what is committed meanwhile, it may count a part. */
export async function countOrders(db: Database, saleId: string, sliceOrders = SLICE_ORDERS): Promise<number> {
  let orders = 0;
  for (let last: string | null = BEFORE_ALL_ORDERS; last !== null; ) {
    const after: string = last;
    const [slice] = await rows<{ orders: number; last: string | null }>(
      db,
      `SELECT count(*)::integer AS orders, max(order_id)::text AS last
       FROM (SELECT order_id ${ORDERS_AFTER} LIMIT ?) AS slice`,
      [saleId, after, saleId, sliceOrders],
    );
    orders += slice!.orders;
    last = slice!.last;
  }
  return orders;
}
