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
