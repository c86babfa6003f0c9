/**
 * The statuses of live orders, which hold their units and count against their buyer's limit, and of orders that have
 * ended. SQL lists, spelled as in the migrations: Postgres uses a partial index only for a query with the same
 * condition.
 */
export const LIVE = "('unpaid', 'paid', 'redeemed')";
export const ENDED = "('cancelled', 'expired', 'refunded', 'rejected')";
