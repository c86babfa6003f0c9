/**
 * The changes of orders in Postgres that somebody asks for: each is one call and one transaction
 * (migrations/027-second-late-payment.sql; operators' changes, which are stored with operator and reason, in
 * migrations/013-who-and-why.sql).
 */
import type { Author } from '../engine/sale/author.ts';
import type { Order, OrderChange, PayType } from '../operations/order-operations.ts';
import { IN_TIME } from '../postgres/changes/in-time.ts';
import { rowsInTime } from '../postgres/changes/rows-in-time.ts';
import type { Database } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';
import { type OrderRow, orderOf } from './order-reader.ts';

/** The result of a change. */
export interface Changed {
  readonly verdict: 'done' | 'forbidden' | 'wrong_status' | 'late' | 'retaken' | 'refund_due';
  /** The order afterwards; with `retaken` the order that replaces it. */
  readonly order: Order;
}

export interface ChangeRequest {
  readonly orderId: string;
  readonly kind: OrderChange['kind'];
  /** For a payment: its type. */
  readonly payType: PayType | undefined;
  readonly by: Asker;
  /** As for `rowsInTime`. */
  readonly latestMs?: number | undefined;
}

/** The author of a change: a buyer, named by id, who must own the order; or an operator. */
export type Asker = string | Author;

/**
 * @returns `undefined` if the order does not exist. @throws as `rowsInTime`; then the change may have been made
 */
export function changeOrder(
  db: Database,
  { orderId, kind, payType, by, latestMs }: ChangeRequest,
): Promise<Changed | undefined> {
  const [name, asker] =
    typeof by === 'string'
      ? ['stockade_change_order', [by]]
      : ['stockade_change_order_by', [by.actor, by.reason]];
  return decide(db, latestMs, name, [orderId, kind, payType ?? null, ...asker]);
}

export interface Settled {
  readonly verdict: 'retaken' | 'refund_due' | 'wrong_status' | 'over';
  /** As in `Changed`. */
  readonly order: Order;
}

export interface LatePayment {
  /** The order that had expired. */
  readonly late: string;
  readonly payType: PayType;
  readonly by: Asker;
  /** As for `rowsInTime`. */
  readonly latestMs?: number | undefined;
}

/**
 * @param taken the new order with the units; `undefined`: they could not be taken
 * @returns `undefined` if the late order was deleted meanwhile
 */
export async function settleLatePayment(
  db: Database,
  { late, payType, by, latestMs }: LatePayment,
  taken: string | undefined,
): Promise<Settled | undefined> {
  const [name, asker] =
    typeof by === 'string'
      ? ['stockade_settle_late_payment', []]
      : ['stockade_settle_late_payment_by', [by.actor, by.reason]];
  return decide<Settled>(db, latestMs, name, [late, taken ?? null, payType, ...asker]);
}

/** Calls one of the SQL functions that decide about an order. @returns `undefined` if it returns no order */
async function decide<D extends Changed | Settled>(
  db: Database,
  latestMs: number | undefined,
  name: string,
  args: readonly (string | null)[],
): Promise<D | undefined> {
  const places = args.map(() => '?').join();
  const [row] = await despiteDeadlocks(() =>
    rowsInTime<OrderRow & { verdict: D['verdict'] }>(db, latestMs, {
      sql: `SELECT ${IN_TIME}, verdict, (stands).* FROM ${name}(${places})`,
      bindings: (latest) => [latest, ...args],
    }),
  );
  return row?.order_id ? ({ verdict: row.verdict, order: orderOf(row) } as D) : undefined;
}
