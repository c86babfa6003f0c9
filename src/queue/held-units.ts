/** How the units that buyers hold already bound what they may queue for. */
import { MAX_TOLD_ORDERS } from '../engine/limits.ts';
import { numbers, texts } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';
import { liveOrdersOf } from '../postgres/live-orders.ts';
import type { PlaceWish } from './place.ts';

/** The wish and what its buyer holds are more than one buyer may have. */
export interface LimitReached {
  readonly code: 'limit_reached';
  /** Units that one buyer may have. */
  readonly limit: number;
  /** Of orders that the buyer holds: the newest, MAX_TOLD_ORDERS at most. */
  readonly orderIds: readonly string[];
}

/**
 * Those of the buyers who would get no place because of the limit, as `stockade_give_places` judges it. Nobody who has one by now, and
 * nobody if places are not given at all: then that is the reason.
 */
export async function limitReachedBy(
  db: Database,
  saleId: string,
  wishes: readonly PlaceWish[],
): Promise<Map<string, LimitReached>> {
  const found = await rows<{ buyer: string; per_buyer_limit: number; order_ids: string[] }>(
    db,
    `SELECT n.buyer, s.per_buyer_limit, held.order_ids::text[]
     FROM sales s CROSS JOIN unnest(?::text[], ?::integer[]) AS n (buyer, quantity)
     CROSS JOIN LATERAL (SELECT sum(h.quantity) AS units, (array_agg(h.order_id ORDER BY h.order_id DESC))[:${MAX_TOLD_ORDERS}] AS order_ids
       FROM (${liveOrdersOf('s.id', 'n.buyer')}) AS h) AS held
     WHERE s.id = ? AND s.live_orders IS DISTINCT FROM 0 AND held.units + n.quantity > s.per_buyer_limit
       AND s.queue <> 'off' AND s.state <> 'closed' AND s.deleting_since IS NULL
       AND NOT EXISTS (SELECT 1 FROM places p
         WHERE p.sale_id = s.id AND p.buyer_id = n.buyer AND p.state IN ('waiting', 'offered'))`,
    [texts(wishes.map(({ buyerId }) => buyerId)), numbers(wishes.map(({ quantity }) => quantity)), saleId],
  );
  return new Map(
    found.map(({ buyer, per_buyer_limit: limit, order_ids: orderIds }) => [
      buyer,
      { code: 'limit_reached', limit, orderIds },
    ]),
  );
}
