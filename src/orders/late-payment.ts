/**
 * A payment that comes after its order has expired. The buyer has paid, so the units are taken anew if they can be; else
 * the money has to go back.
 *
 *   late ──the return of its units is applied──> take ──taken, and in Postgres──> settled: the new order is paid
 *                                                  ├──refused: nothing left, limit, closed──> settled: a refund is due
 *                                                  ├──refused: paused──> late still: the payment is asked again when the sale is resumed
 *                                                  └──not known, or no answer──> late still: the payment is asked again
 *
 * The take is a purchase as any other, by the way of the buyers, so that neither stock nor limit can be broken. Its key
 * is reserved and names the late order: whoever repeats it, at any node, finds the same new order. The new order is paid
 * and the late one settled in one transaction, and the first to settle it decides.
 *
 * Crash points. Before the take: the order is late still. Between take and settlement: the new order is unpaid, as that of
 * a buyer who went away, and expires; a repetition before then finds it by its key, one after that takes anew.
 */
import type { Backend, Outcome, Purchase } from '../engine/contract.ts';
import { RETAKE_PREFIX } from '../engine/limits.ts';
import type { Order, OrderOutcome, PayType } from '../operations/order-operations.ts';
import { type Database, rows } from '../postgres/database.ts';
import { type Asker, type LatePayment, settleLatePayment } from './order-changes.ts';
import { applyReturnsOf } from './returns.ts';

/** Buys as a buyer does, and ends by itself. Sync can't: who has an engine hands it in. */
export type Buy = (purchase: Purchase) => Promise<Outcome>;

export interface LatePaymentParts {
  readonly db: Database;
  readonly backend: Backend;
  readonly buy: Buy;
}

export async function payLate(
  { db, backend, buy }: LatePaymentParts,
  late: Order,
  payType: PayType,
  by: Asker,
): Promise<OrderOutcome> {
  const { orderId, saleId, buyerId, quantity } = late;
  // Until then the buyer's record holds the order: he might be at his limit because of the very one that he pays for.
  await applyReturnsOf(db, backend, [orderId]).catch(() => {});
  if (await isReturning(db, orderId)) return { code: 'unavailable' };
  const payment = { late: orderId, payType, by };
  const key = `${RETAKE_PREFIX}${orderId}`;
  const outcome = await buy({ saleId, buyerId, quantity, key, awaitCommit: true, retake: true });
  switch (outcome.code) {
    case 'committed':
      return settle({ db, backend }, payment, outcome.orderId);
    case 'busy':
    case 'unavailable':
      return { code: outcome.code };
    case 'accepted':
    case 'unknown':
      return { code: 'unknown' };
    // The units may be there: only the pause keeps them from being taken.
    case 'paused':
      return { code: 'wrong_state', state: 'paused' };
    // What stands decides about the buyer's money, for good: each is named, so that no refusal decides it unseen.
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
    case 'idempotency_mismatch':
      return settle({ db, backend }, payment, undefined);
  }
}

async function settle(
  { db, backend }: Omit<LatePaymentParts, 'buy'>,
  payment: LatePayment,
  taken: string | undefined,
): Promise<OrderOutcome> {
  const { verdict, order } = await settleLatePayment(db, payment, taken);
  const isInVain = taken !== undefined && order.orderId !== taken;
  if (isInVain) await applyReturnsOf(db, backend, [taken]).catch(() => {});
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

async function isReturning(db: Database, orderId: string): Promise<boolean> {
  const pending = await rows(db, 'SELECT 1 FROM stock_returns WHERE order_id = ? AND applied_at IS NULL', [
    orderId,
  ]);
  return pending.length > 0;
}
