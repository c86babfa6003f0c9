/**
 * What is known of lost orders: counts, which a rebuild writes with its new generation (losses.ts), and order ids,
 * which nodes add when they learn of the loss.
 */
import type { Knex } from 'knex';
import type { TakenOrder } from '../engine/purchase/uncommitted-orders.ts';
import type { SegmentLosses } from '../operations/recover-operations.ts';
import { numbers, texts } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';
import type { Loss } from './losses.ts';

const NAMED_ORDERS = 1_000;

/** Runs in the transaction that begins the generation, so that no other rebuild counts the same losses. */
export async function writeLosses(
  trx: Knex.Transaction,
  saleId: string,
  generation: number,
  losses: readonly Loss[],
): Promise<void> {
  if (losses.length === 0) return;
  await trx.raw(
    `INSERT INTO sale_losses (sale_id, generation, segment, orders)
     SELECT ?, ?, l.segment, l.orders FROM unnest(?::integer[], ?::bigint[]) AS l (segment, orders)`,
    [
      saleId,
      generation,
      numbers(losses.map(({ segment }) => segment)),
      numbers(losses.map(({ orders }) => orders)),
    ],
  );
}

/**
 * Records orders of older generations that are not in Postgres: they are lost, because all orders in the logs were
 * salvaged before the new generation began.
 * @returns the orders that were not recorded before
 */
export async function nameLostOrders(
  db: Database,
  saleId: string,
  taken: readonly TakenOrder[],
): Promise<TakenOrder[]> {
  if (taken.length === 0) return [];
  const lost = await rows<{ id: string }>(
    db,
    `INSERT INTO lost_orders (order_id, sale_id, generation, segment, buyer_id, quantity)
     SELECT a.id, s.id, s.generation, a.segment, a.buyer, a.quantity
     FROM unnest(?::bigint[], ?::integer[], ?::text[], ?::integer[]) AS a (id, segment, buyer, quantity)
     JOIN sales s ON s.id = ? AND s.deleting_since IS NULL
     WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.order_id = a.id)
     ON CONFLICT (order_id) DO NOTHING RETURNING order_id::text AS id`,
    [
      numbers(taken.map(({ orderId }) => orderId)),
      numbers(taken.map(({ segment }) => segment)),
      texts(taken.map(({ buyerId }) => buyerId)),
      numbers(taken.map(({ quantity }) => quantity)),
      saleId,
    ],
  );
  const ids = new Set(lost.map(({ id }) => id));
  return taken.filter(({ orderId }) => ids.has(orderId));
}

/** Losses by segment, found when generation `since` or a later one was built. */
export async function readLosses(db: Knex, saleId: string, since = 0): Promise<SegmentLosses[]> {
  const counted = await rows<{ segment: number; orders: string }>(
    db,
    'SELECT segment, sum(orders) AS orders FROM sale_losses WHERE sale_id = ? AND generation >= ? GROUP BY segment',
    [saleId, since],
  );
  const named = await rows<TakenOrder>(
    db,
    `SELECT segment, order_id::text AS "orderId", buyer_id AS "buyerId", quantity FROM lost_orders
     WHERE sale_id = ? AND generation >= ? ORDER BY order_id LIMIT ?`,
    [saleId, since, NAMED_ORDERS],
  );
  const counts = new Map(counted.map(({ segment, orders }) => [segment, Number(orders)]));
  const segments = new Set([...counts.keys(), ...named.map(({ segment }) => segment)]);
  return [...segments]
    .sort((a, b) => a - b)
    .map((segment) => {
      const ofSegment = named.filter((order) => order.segment === segment);
      return { segment, orders: Math.max(counts.get(segment) ?? 0, ofSegment.length), named: ofSegment };
    });
}
