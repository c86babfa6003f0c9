import type { LogHint } from '../engine/contract.ts';
import { InvalidInput } from '../engine/errors.ts';
import { isOrderId } from '../engine/order-id.ts';
import type { Author } from '../engine/sale/author.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { OrderEdit } from '../operations/order.ts';
import type { OrderPage, OrderQuery, RefundPage, RefundQuery } from '../operations/order-list.ts';
import type { Order, OrderChange, OrderOperations, OrderOutcome } from '../operations/order-operations.ts';
import { UnknownSale } from '../operations/sale-operations.ts';
import { readKnownSale } from '../sales/sale-rows.ts';
import { Arrivals } from './arrivals.ts';
import { type LatePaymentParts, payLate } from './late-payment.ts';
import { mayBeInLog } from './log-age.ts';
import { type Asker, type ChangeRequest, changeOrder } from './order-changes.ts';
import { editOrder } from './order-edits.ts';
import { isOfFormerSale, readOrderPage } from './order-pages.ts';
import { readNotedOrder, readRefundsDue } from './order-reader.ts';
import { applyReturnsOf } from './returns.ts';

const RETURN_WAIT_MS = 500;

export interface OrderServiceParts extends LatePaymentParts {
  /** Notifies sync that a caller waits for a log, as lanes do. */
  readonly hint?: (hint: LogHint) => void;
  /** How long an answer waits for the return of units. Sync completes slower returns. */
  readonly returnWaitMs?: number;
}

/**
 * Changes orders after their purchase. Postgres decides, in one transaction each. The units of an ended order are
 * then returned to the segments. If this process dies before that, sync returns them.
 */
export class OrderService implements OrderOperations {
  readonly #parts: OrderServiceParts;
  readonly #arrivals: Arrivals;

  constructor(parts: OrderServiceParts) {
    this.#parts = parts;
    this.#arrivals = new Arrivals(parts.db, parts.backend, parts.hint);
  }

  showOrder(orderId: string): Promise<OrderOutcome> {
    return this.#onceArrived(orderId, async () => {
      const order = await readNotedOrder(this.#parts.db, orderId);
      return order ? { code: 'done', order } : { code: 'unknown_order' };
    });
  }

  /**
   * A buyer's own record may hold an order that is not in Postgres yet: for a buyer's change, the caller checks that
   * record.
   * @param latestMs as for `rowsInTime`
   */
  async changeOrder(
    orderId: string,
    change: OrderChange,
    by: Asker,
    latestMs?: number,
  ): Promise<OrderOutcome> {
    const make = () => this.#change(orderId, change, { by, latestMs });
    if (typeof by !== 'string') return this.#onceArrived(orderId, make);
    return isOrderId(orderId) ? make() : { code: 'unknown_order' };
  }

  /** @param latestMs as for `rowsInTime` */
  editOrder(orderId: string, edit: OrderEdit, by: Author, latestMs?: number): Promise<OrderOutcome> {
    return this.#onceArrived(orderId, async () => {
      const order = await editOrder(this.#parts.db, orderId, edit, { ...by, latestMs });
      return order ? { code: 'done', order } : { code: 'unknown_order' };
    });
  }

  /** The answer is `unknown_order` only when the order can't be in a log. */
  async #onceArrived(orderId: string, ask: () => Promise<OrderOutcome>): Promise<OrderOutcome> {
    if (!isOrderId(orderId)) return { code: 'unknown_order' };
    const first = await ask();
    if (first.code !== 'unknown_order' || !mayBeInLog(orderId)) return first;
    const haveArrived = await this.#arrivals.caughtUp();
    const last = await ask();
    return last.code === 'unknown_order' && !haveArrived ? { code: 'not_arrived' } : last;
  }

  async #change(
    orderId: string,
    change: OrderChange,
    asked: Pick<ChangeRequest, 'by' | 'latestMs'>,
  ): Promise<OrderOutcome> {
    const payType = change.kind === 'pay' ? change.payType : undefined;
    const changed = await changeOrder(this.#parts.db, { orderId, kind: change.kind, payType, ...asked });
    if (!changed) return { code: 'unknown_order' };
    const { verdict, order } = changed;
    switch (verdict) {
      case 'done':
        await this.#giveBack(order);
        return { code: 'done', order };
      case 'retaken':
        return { code: 'done', order, replaces: orderId };
      case 'late':
        return payLate(this.#parts, order, { payType: payType!, ...asked });
      case 'refund_due':
        return { code: 'expired', refundDue: order.refundDue === true };
      case 'wrong_status':
        return { code: 'wrong_status', orderStatus: order.status };
      case 'forbidden':
        return { code: 'forbidden' };
    }
  }

  async listOrders(saleId: string, query: OrderQuery = {}): Promise<OrderPage> {
    const { db } = this.#parts;
    const { createdAt } = await readKnownSale(db, saleId);
    const page = await readOrderPage(db, saleId, query);
    // If its deletion began meanwhile, orders may be missing, and the last page of an export must not look like its end. That
    // deletion may have ended, and another sale may have the id now.
    if (page.next === undefined) {
      const now = await readKnownSale(db, saleId);
      if (now.createdAt.getTime() !== createdAt.getTime()) throw new UnknownSale(saleId);
    }
    // The first pages may have been of a former sale with the id.
    if (query.after !== undefined && (await isOfFormerSale(db, saleId, query.after))) {
      const problem = `is not an order of sale ${saleId}, but may be one of a former sale with this id, which was deleted`;
      throw new InvalidInput('the query is not valid', [{ field: 'after', problem }]);
    }
    return page;
  }

  async refundsDue(query: RefundQuery = {}): Promise<RefundPage> {
    // A mistyped sale id must not look like a sale without refunds.
    if (query.saleId !== undefined) await readKnownSale(this.#parts.db, query.saleId);
    return readRefundsDue(this.#parts.db, query);
  }

  async #giveBack({ orderId, status }: Order): Promise<void> {
    if (status !== 'cancelled' && status !== 'refunded') return;
    const { db, backend, returnWaitMs = RETURN_WAIT_MS } = this.#parts;
    await withTimeout(returnWaitMs, applyReturnsOf(db, backend, [orderId])).catch(() => {});
  }
}
