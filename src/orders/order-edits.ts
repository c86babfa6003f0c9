/** What the shop notes with an order: its reference and metadata. Nothing in this program depends on either. */
import type { Author } from '../engine/sale/author.ts';
import type { Order, OrderEdit } from '../operations/order.ts';
import { IN_TIME } from '../postgres/changes/in-time.ts';
import { rowsInTime } from '../postgres/changes/rows-in-time.ts';
import type { Database } from '../postgres/database.ts';
import { IN_A_SALE, type OrderRow, orderOf } from './order-reader.ts';

interface EditAuthor extends Author {
  /** As for `rowsInTime`. */
  readonly latestMs?: number | undefined;
}

/** Makes the edit and notes its author, in one statement. @returns `undefined` if the order does not exist. @throws as `rowsInTime` */
export async function editOrder(
  db: Database,
  orderId: string,
  { reference, metadata }: OrderEdit,
  { actor, reason, latestMs }: EditAuthor,
): Promise<Order | undefined> {
  const [row] = await rowsInTime<OrderRow>(db, latestMs, {
    sql: `WITH edited AS (
       UPDATE orders o SET reference = CASE WHEN ? THEN ? ELSE reference END,
         metadata = CASE WHEN ? THEN ?::jsonb ELSE metadata END
       WHERE order_id = ? AND ${IN_A_SALE} RETURNING *
     ), noted AS (
       INSERT INTO order_changes (order_id, change, actor, reason) SELECT order_id, 'edit', ?, ? FROM edited
       ON CONFLICT (order_id, change) DO UPDATE
         SET actor = excluded.actor, reason = excluded.reason, changed_at = excluded.changed_at
     )
     SELECT ${IN_TIME}, edited.* FROM edited`,
    bindings: (latest) => [
      ...[reference !== undefined, reference ?? null],
      ...[metadata !== undefined, metadata == null ? null : JSON.stringify(metadata)],
      ...[orderId, actor, reason, latest],
    ],
  });
  return row && orderOf(row);
}
