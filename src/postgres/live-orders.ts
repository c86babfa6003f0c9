/**
 * The statuses of live orders, which hold their units and count against their buyer's limit, and of orders that have
 * ended. SQL lists, spelled as in the migrations: Postgres uses a partial index only for a query with the same
 * condition.
 */
export const LIVE = "('unpaid', 'paid', 'redeemed')";
export const ENDED = "('cancelled', 'expired', 'refunded', 'rejected')";

/** Conditions of the three indexes on (sale_id, buyer_id). Every order meets one of them. */
const INDEXED = [
  `one_per_buyer AND status IN ${LIVE}`,
  'NOT one_per_buyer',
  `one_per_buyer AND status IN ${ENDED}`,
];

/** A buyer's orders in a sale: the condition `which` must name both, and is used three times. */
export function ofBuyer(which: string): string {
  return INDEXED.map((indexed) => `SELECT * FROM orders WHERE ${which} AND ${indexed}`).join(' UNION ALL ');
}

/**
 * The live orders of a buyer, as SQL. Each half has the condition of one index.
 * @param sale an expression for the sale's id
 * @param buyer an expression for the buyer's id
 */
export function liveOrdersOf(sale: string, buyer: string): string {
  const live = `SELECT o.order_id, o.quantity FROM orders o
    WHERE o.sale_id = ${sale} AND o.buyer_id = ${buyer} AND o.status IN ${LIVE}`;
  return `${live} AND o.one_per_buyer UNION ALL ${live} AND NOT o.one_per_buyer`;
}
