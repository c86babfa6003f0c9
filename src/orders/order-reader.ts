import { InvalidInput } from '../engine/errors.ts';
import { MAX_PAGE, pageOf } from '../operations/checked-input.ts';
import type { RefundPage, RefundQuery } from '../operations/order-list.ts';
import type { NotedChange, Order, OrderStatus, PayType } from '../operations/order-operations.ts';
import { type Database, rows } from '../postgres/database.ts';

/** A row of `orders`. */
export interface OrderRow {
  order_id: string;
  sale_id: string;
  buyer_id: string;
  quantity: number;
  /** As in the table: an offer is an unpaid order there. */
  status: Exclude<OrderStatus, 'offered'>;
  pay_type: PayType | null;
  committed_at: Date;
  expires_at: Date | null;
  paid_at: Date | null;
  redeemed_at: Date | null;
  refunded_at: Date | null;
  cancelled_at: Date | null;
  expired_at: Date | null;
  refund_due_at: Date | null;
  retaken_by: string | null;
  reference: string | null;
  metadata: Record<string, unknown> | null;
  offer_of: string | null;
}

/** Leaves out orders of sales that are being deleted: they exist no more for any reader. */
export const IN_A_SALE = `NOT EXISTS (SELECT 1 FROM sales s WHERE s.id = o.sale_id AND s.deleting_since IS NOT NULL)`;

/** The order as it is in Postgres; an order that is only in its log is not there yet. */
export async function readOrder(db: Database, orderId: string): Promise<Order | undefined> {
  const [row] = await rows<OrderRow>(db, `SELECT o.* FROM orders o WHERE o.order_id = ? AND ${IN_A_SALE}`, [
    orderId,
  ]);
  return row && orderOf(row);
}

/** The order with its operators' changes, read at one instant. */
export async function readNotedOrder(db: Database, orderId: string): Promise<Order | undefined> {
  const [row] = await rows<OrderRow & { changes: NotedChange[] }>(
    db,
    `SELECT o.*, (SELECT coalesce(json_agg(json_build_object(
         'change', c.change, 'at', c.changed_at, 'actor', c.actor, 'reason', c.reason) ORDER BY c.changed_at), '[]')
       FROM order_changes c WHERE c.order_id = o.order_id) AS changes
     FROM orders o WHERE o.order_id = ? AND ${IN_A_SALE}`,
    [orderId],
  );
  if (!row) return undefined;
  const changes = row.changes.map((change) => ({ ...change, at: new Date(change.at).toISOString() }));
  return { ...orderOf(row), changes };
}

export function orderOf(row: OrderRow): Order {
  const time = (at: Date | null) => at?.toISOString();
  return {
    orderId: row.order_id,
    saleId: row.sale_id,
    buyerId: row.buyer_id,
    quantity: row.quantity,
    status: isOffer(row) ? 'offered' : row.status,
    payType: row.pay_type ?? undefined,
    committedAt: row.committed_at.toISOString(),
    expiresAt: time(row.expires_at),
    paidAt: time(row.paid_at),
    redeemedAt: time(row.redeemed_at),
    refundedAt: time(row.refunded_at),
    cancelledAt: time(row.cancelled_at),
    expiredAt: time(row.expired_at),
    refundDue: isRefundDue(row) || undefined,
    retakenBy: row.retaken_by ?? undefined,
    reference: row.reference ?? undefined,
    metadata: row.metadata ?? undefined,
  };
}

function isOffer({ status, offer_of }: OrderRow): boolean {
  return status === 'unpaid' && offer_of !== null;
}

function isRefundDue({ refund_due_at, refunded_at }: OrderRow): boolean {
  return refund_due_at !== null && refunded_at === null;
}

/** A page of the orders that were paid too late and are not refunded yet, the longest due first. @throws InvalidInput */
export async function readRefundsDue(
  db: Database,
  { saleId, after, limit = MAX_PAGE }: RefundQuery,
): Promise<RefundPage> {
  const ofSale = saleId === undefined ? '' : 'AND o.sale_id = ?';
  // The order has this time also after it was refunded.
  const behind =
    after === undefined
      ? ''
      : 'AND (o.refund_due_at, o.order_id) > (SELECT a.refund_due_at, a.order_id FROM orders a WHERE a.order_id = ?::bigint)';
  const found = await rows<OrderRow>(
    db,
    `SELECT o.* FROM orders o
     WHERE o.refund_due_at IS NOT NULL AND o.refunded_at IS NULL ${ofSale} ${behind} AND ${IN_A_SALE}
     ORDER BY o.refund_due_at, o.order_id LIMIT ?`,
    [...(saleId === undefined ? [] : [saleId]), ...(after === undefined ? [] : [after]), limit + 1],
  );
  // Another order's id must not look like the end of the list.
  if (found.length === 0 && after !== undefined && !(await wasRefundDue(db, after))) {
    const problem = 'is not an order that had to be refunded after a late payment, or its sale was deleted';
    throw new InvalidInput('the query is not valid', [{ field: 'after', problem }]);
  }
  const { page, next } = pageOf(found, limit, (row) => row.order_id);
  return { orders: page.map(orderOf), next };
}

async function wasRefundDue(db: Database, orderId: string): Promise<boolean> {
  const found = await rows(
    db,
    'SELECT 1 FROM orders WHERE order_id = ?::bigint AND refund_due_at IS NOT NULL',
    [orderId],
  );
  return found.length > 0;
}
