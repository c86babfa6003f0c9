import { isOrderId } from '../../engine/order-id.ts';
import { within } from '../../engine/within.ts';
import { UnknownSale } from '../operations.ts';
import { readSale } from '../sale-rows.ts';
import { type LatePaymentParts, payLate } from './late-payment.ts';
import { type Asker, changeOrder } from './order-changes.ts';
import type { Order, OrderChange, OrderOperations, OrderOutcome } from './order-operations.ts';
import { readNotedOrder, readRefundsDue } from './order-reader.ts';
import { applyReturnsOf } from './returns.ts';

/** For units to be for sale again before their buyer is answered. Sync sees to those that take longer. */
const RETURN_WAIT_MS = 500;

/**
 * Orders after their purchase. Postgres decides, in one transaction each; the units of an order that has ended are then
 * given back to the segments, which sync makes up for if this process dies in between.
 */
export class OrderService implements OrderOperations {
  readonly #parts: LatePaymentParts;

  constructor(parts: LatePaymentParts) {
    this.#parts = parts;
  }

  async showOrder(orderId: string): Promise<OrderOutcome> {
    const order = isOrderId(orderId) && (await readNotedOrder(this.#parts.db, orderId));
    return order ? { code: 'done', order } : { code: 'unknown_order' };
  }

  async changeOrder(orderId: string, change: OrderChange, by: Asker): Promise<OrderOutcome> {
    if (!isOrderId(orderId)) return { code: 'unknown_order' };
    const payType = change.kind === 'pay' ? change.payType : undefined;
    const changed = await changeOrder(this.#parts.db, { orderId, kind: change.kind, payType, by });
    if (!changed) return { code: 'unknown_order' };
    const { verdict, order } = changed;
    switch (verdict) {
      case 'done':
        await this.#giveBack(order);
        return { code: 'done', order };
      case 'retaken':
        return { code: 'done', order, replaces: orderId };
      case 'late':
        return payLate(this.#parts, order, payType!, by);
      case 'refund_due':
        return { code: 'expired', refundDue: order.refundDue === true };
      case 'wrong_status':
        return { code: 'wrong_status', orderStatus: order.status };
      case 'forbidden':
        return { code: 'forbidden' };
    }
  }

  async refundsDue(saleId?: string): Promise<Order[]> {
    // A name that is mistyped must not look like a sale without refunds.
    if (saleId !== undefined && !(await readSale(this.#parts.db, saleId))) throw new UnknownSale(saleId);
    return readRefundsDue(this.#parts.db, saleId);
  }

  async #giveBack({ orderId, status }: Order): Promise<void> {
    if (status !== 'cancelled' && status !== 'refunded') return;
    const { db, backend } = this.#parts;
    await within(RETURN_WAIT_MS, applyReturnsOf(db, backend, [orderId])).catch(() => {});
  }
}
