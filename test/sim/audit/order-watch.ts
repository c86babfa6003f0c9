/**
 * Checks the lives of orders for the auditor: an order changes its status only in allowed ways, carries the marks of exactly
 * the changes made to it, and a change that was answered as done stays done.
 */
import type { OrderChange, OrderOutcome } from '../../../src/operations/order-operations.ts';
import type { Truth } from './books.ts';

type Order = Truth['orders'][number];

/** The statuses that an order may reach, in one or several steps: there may be several between two checks. */
const LATER: Readonly<Record<string, readonly string[]>> = {
  unpaid: ['paid', 'redeemed', 'refunded', 'cancelled', 'expired'],
  paid: ['redeemed', 'refunded'],
};

/** A mark is a word for a time in the row, such as `paid_at`. `due`: the payment must be refunded. */
const MARKS: Readonly<Record<string, readonly string[]>> = {
  unpaid: [''],
  rejected: [''],
  paid: ['paid'],
  redeemed: ['paid redeemed'],
  refunded: ['paid refunded'],
  cancelled: ['cancelled'],
  expired: ['expired', 'expired due', 'expired refunded due', 'expired retaken'],
};

const MARK_OF: Readonly<Record<OrderChange['kind'], string>> = {
  pay: 'paid',
  cancel: 'cancelled',
  redeem: 'redeemed',
  refund: 'refunded',
};

export class OrderWatch {
  readonly #fail: (what: string) => never;
  readonly #statuses = new Map<string, string>();
  /** By order, the marks of changes that were answered as done. */
  readonly #told = new Map<string, Set<string>>();

  constructor(fail: (what: string) => never) {
    this.#fail = fail;
  }

  told(orderId: string, kind: OrderChange['kind'], outcome: OrderOutcome): void {
    if (outcome.code === 'done') {
      this.#promise(outcome.order.orderId, MARK_OF[kind]);
      if (outcome.replaces !== undefined) this.#promise(outcome.replaces, 'retaken');
    } else if (kind === 'pay' && outcome.code === 'expired' && outcome.refundDue)
      this.#promise(orderId, 'due');
  }

  #promise(orderId: string, mark: string): void {
    const marks = this.#told.get(orderId) ?? new Set();
    this.#told.set(orderId, marks.add(mark));
  }

  check({ orders }: Truth): void {
    const byId = new Map(orders.map((order) => [order.id, order]));
    for (const order of orders) this.#checkStep(order);
    for (const id of this.#statuses.keys()) if (!byId.has(id)) this.#fail(`P4: order ${id} is gone`);
    const taking = new Map<string, string>();
    for (const order of orders) {
      if (order.retakenBy === null) continue;
      if (taking.has(order.retakenBy))
        this.#fail(
          `P7: order ${order.retakenBy} is the retake of both ${taking.get(order.retakenBy)} and ${order.id}`,
        );
      taking.set(order.retakenBy, order.id);
      this.#checkRetaken(order, byId.get(order.retakenBy));
    }
    for (const [id, marks] of this.#told) {
      const has = byId.get(id)?.marks.split(' ') ?? [];
      for (const mark of marks)
        if (!has.includes(mark)) this.#fail(`P4: order ${id} was answered as ${mark}: ${has.join(' ')}`);
    }
  }

  #checkStep({ id, status, marks }: Order): void {
    const before = this.#statuses.get(id);
    if (before !== undefined && before !== status && !LATER[before]?.includes(status))
      this.#fail(`P4: order ${id} was ${before}, and is ${status}`);
    if (!MARKS[status]?.includes(marks))
      this.#fail(`P4: order ${id} is ${status}, and its marks are ${marks}`);
    this.#statuses.set(id, status);
  }

  #checkRetaken(late: Order, taken: Order | undefined): void {
    const isPaid = taken?.marks.split(' ').includes('paid');
    if (!taken || !isPaid || taken.buyer !== late.buyer || taken.units !== late.units)
      this.#fail(`P4: order ${late.id} was paid late, and its retake is ${JSON.stringify(taken)}`);
  }
}
