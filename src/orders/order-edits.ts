/** What the shop notes with an order: its reference and metadata. Nothing in this program depends on either. */
import type { Author } from '../engine/sale/author.ts';
import type { Order, OrderEdit } from '../operations/order.ts';
import { type Database, rows } from '../postgres/database.ts';
import { IN_A_SALE, type OrderRow, orderOf } from './order-reader.ts';

/** Makes the edit and notes its author, in one statement. @returns `undefined` if the order does not exist */
export async function editOrder(
  db: Database,
  orderId: string,
  { reference, metadata }: OrderEdit,
  { actor, reason }: Author,
): Promise<Order | undefined> {
  const [row] = await rows<OrderRow>(
    db,
    `WITH edited AS (
       UPDATE orders o SET reference = CASE WHEN ? THEN ? ELSE reference END,
         metadata = CASE WHEN ? THEN ?::jsonb ELSE metadata END
       WHERE order_id = ? AND ${IN_A_SALE} RETURNING *
     ), noted AS (
       INSERT INTO order_changes (order_id, change, actor, reason) SELECT order_id, 'edit', ?, ? FROM edited
       ON CONFLICT (order_id, change) DO UPDATE
         SET actor = excluded.actor, reason = excluded.reason, changed_at = excluded.changed_at
     )
     SELECT * FROM edited`,
    [
      ...[reference !== undefined, reference ?? null],
      ...[metadata !== undefined, metadata == null ? null : JSON.stringify(metadata)],
      ...[orderId, actor, reason],
    ],
  );
  return row && orderOf(row);
}
