/** The changes of orders as Postgres makes them: one call, one transaction each (migrations/005-order-changes.sql). */
import { type Database, rows } from '../database.ts';
import { despiteDeadlocks } from '../deadlock.ts';
import type { Order, OrderChange, PayType } from './order-operations.ts';
import { type OrderRow, orderOf } from './order-reader.ts';

/** What has become of a change. */
export interface Changed {
  readonly verdict: 'done' | 'forbidden' | 'wrong_status' | 'late' | 'retaken' | 'refund_due';
  /** The order afterwards; with `retaken` the one that took its place. */
  readonly order: Order;
}

export interface ChangeRequest {
  readonly orderId: string;
  readonly kind: OrderChange['kind'];
  /** Of a payment. */
  readonly payType: PayType | undefined;
  /** Whose order it must be; `undefined`: anybody's. */
  readonly buyerId: string | undefined;
}

/** @returns `undefined` if there is no such order. @throws the database's error, which leaves open whether it is done */
export async function changeOrder(
  db: Database,
  { orderId, kind, payType, buyerId }: ChangeRequest,
): Promise<Changed | undefined> {
  const [row] = await despiteDeadlocks(() =>
    rows<OrderRow & { verdict: Changed['verdict'] }>(
      db,
      'SELECT verdict, (stands).* FROM stockade_change_order(?, ?, ?, ?)',
      [orderId, kind, payType ?? null, buyerId ?? null],
    ),
  );
  return row && { verdict: row.verdict, order: orderOf(row) };
}

export interface Settled {
  readonly verdict: 'retaken' | 'refund_due' | 'wrong_status' | 'over';
  /** As in `Changed`. */
  readonly order: Order;
}

/** @param taken the order that has taken the units anew; `undefined`: they could not be taken */
export async function settleLatePayment(
  db: Database,
  late: string,
  taken: string | undefined,
  payType: PayType,
): Promise<Settled> {
  const [row] = await despiteDeadlocks(() =>
    rows<OrderRow & { verdict: Settled['verdict'] }>(
      db,
      'SELECT verdict, (stands).* FROM stockade_settle_late_payment(?, ?, ?)',
      [late, taken ?? null, payType],
    ),
  );
  return { verdict: row!.verdict, order: orderOf(row!) };
}

export interface ExpiredOrders {
  readonly orderIds: readonly string[];
  /** When the first of them should have expired. */
  readonly dueSince: Date | undefined;
}

/** Expires at most `most` orders whose time to pay is over. */
export async function expireOrders(db: Database, most: number): Promise<ExpiredOrders> {
  const [row] = await despiteDeadlocks(() =>
    rows<{ order_ids: string[]; due_since: Date | null }>(
      db,
      'SELECT order_ids::text[], due_since FROM stockade_expire_orders(?)',
      [most],
    ),
  );
  return { orderIds: row!.order_ids, dueSince: row!.due_since ?? undefined };
}
