/**
 * Handles a payment that arrives after its order has expired. The buyer has paid, so the units are taken again if
 * possible; otherwise the money must be refunded.
 *
 *   late ──the return of its units is applied──> take ──taken, and in Postgres──> settled: the new order is paid
 *                                                  ├──refused: nothing left, limit, closed──> settled: a refund is due
 *                                                  ├──refused: paused──> still late: the client repeats the payment when the sale resumes
 *                                                  └──unknown, or no answer──> still late: the client repeats the payment
 *
 * An archived sale has no units to take, and those of a sale with a queue go to the queue. There the late order is settled at
 * once, with the order that an earlier attempt has taken, if there is one.
 *
 * The take is a purchase like any other, through the same code, so that neither stock nor limit can be exceeded. Its
 * key is reserved and names the late order: a repetition, at any node, finds the same new order. One transaction
 * marks the new order as paid and settles the late one, and the first to settle it decides.
 *
 * Crash points: docs/internals/orders.md.
 */
import type { Backend, Outcome, Purchase } from '../engine/contract.ts';
import { RETAKE_PREFIX } from '../engine/limits.ts';
import { encodeNote } from '../engine/sale/order-note.ts';
import type { Order, OrderOutcome } from '../operations/order-operations.ts';
import { type Database, rows } from '../postgres/database.ts';
import { LIVE } from '../postgres/live-orders.ts';
import { readSale } from '../sales/sale-rows.ts';
import { type LatePayment, settleLatePayment } from './order-changes.ts';
import { applyReturnsOf } from './returns.ts';

/** Makes a purchase, and always ends. Sync has no engine, so a process with an engine passes this in. */
export type Buy = (purchase: Purchase) => Promise<Outcome>;

export interface LatePaymentParts {
  readonly db: Database;
  readonly backend: Backend;
  readonly buy: Buy;
}

/** @param paid how, by whom, and how long it may take effect */
export async function payLate(
  { db, backend, buy }: LatePaymentParts,
  late: Order,
  paid: Omit<LatePayment, 'late'>,
): Promise<OrderOutcome> {
  const { orderId, saleId, buyerId, quantity } = late;
  // Until the return is applied, the buyer's record holds the old order, which could put the buyer at the limit.
  await applyReturnsOf(db, backend, [orderId]).catch(() => {});
  if (await isReturning(db, orderId)) return { code: 'unavailable' };
  const payment = { late: orderId, ...paid };
  const key = `${RETAKE_PREFIX}${orderId}`;
  const row = await readSale(db, saleId);
  if (row?.archivedAt || row?.sale.queue) {
    return settle({ db, backend }, payment, await takenBefore(db, late, key));
  }
  const note = encodeNote(late);
  const outcome = await buy({ saleId, buyerId, quantity, key, awaitCommit: true, onBehalf: true, note });
  switch (outcome.code) {
    case 'committed':
      return settle({ db, backend }, payment, outcome.orderId);
    case 'busy':
    case 'unavailable':
      return { code: outcome.code };
    case 'accepted':
    case 'unknown':
      return { code: 'unknown' };
    // Units may be left: only the pause prevents the take.
    case 'paused':
      return { code: 'wrong_state', state: 'paused' };
    // These outcomes make a refund due, for good. Each is named, so that a new outcome does not decide this
    // unnoticed.
    case 'sold_out':
    case 'insufficient_stock':
    case 'limit_reached':
    case 'not_started':
    case 'ended':
    case 'refused':
    case 'unknown_sale':
    case 'token_required':
    case 'token_invalid':
    case 'invalid_request':
    case 'offer_required':
    case 'idempotency_mismatch':
      return settle({ db, backend }, payment, undefined);
  }
}

async function settle(
  { db, backend }: Omit<LatePaymentParts, 'buy'>,
  payment: LatePayment,
  taken: string | undefined,
): Promise<OrderOutcome> {
  const settled = await settleLatePayment(db, payment, taken);
  if (!settled) return { code: 'unknown_order' };
  const { verdict, order } = settled;
  // The late order was settled without the new order, so Postgres has cancelled that. If this return fails, sync applies it.
  const isUnneeded = taken !== undefined && order.orderId !== taken;
  if (isUnneeded) await applyReturnsOf(db, backend, [taken]).catch(() => {});
  switch (verdict) {
    case 'retaken':
      return { code: 'done', order, replaces: payment.late };
    case 'refund_due':
      return { code: 'expired', refundDue: order.refundDue === true };
    case 'wrong_status':
      return { code: 'wrong_status', orderStatus: order.status };
    case 'over':
      return { code: 'unavailable' };
  }
}

/** The live order that an earlier attempt has taken. */
async function takenBefore(
  db: Database,
  { saleId, buyerId }: Order,
  key: string,
): Promise<string | undefined> {
  const [found] = await rows<{ id: string }>(
    db,
    `SELECT order_id::text AS id FROM orders
     WHERE sale_id = ? AND buyer_id = ? AND idempotency_key = ? AND status IN ${LIVE}`,
    [saleId, buyerId, key],
  );
  return found?.id;
}

async function isReturning(db: Database, orderId: string): Promise<boolean> {
  const pending = await rows(db, 'SELECT 1 FROM stock_returns WHERE order_id = ? AND applied_at IS NULL', [
    orderId,
  ]);
  return pending.length > 0;
}
