/** Prints orders, and explains why an order could not be changed. */
import { StockadeError } from '../../engine/errors.ts';
import type { Order, OrderChange, OrderOutcome } from '../../operations/order-operations.ts';
import { columns, number, plural } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';

type Done = Extract<OrderOutcome, { code: 'done' }>;

/**
 * @param change the change that was tried; absent if the order was only to be shown
 * @throws StockadeError with the outcome's code unless the outcome is `done`
 */
export function expectDone(outcome: OrderOutcome, orderId: string, change?: OrderChange): Done {
  if (outcome.code === 'done') return outcome;
  if (outcome.code === 'unknown_order') throw new StockadeError(outcome.code, `there is no order ${orderId}`);
  throw new StockadeError(outcome.code, refusalText(outcome, `order ${orderId}`, change));
}

const ALLOWED: Readonly<Record<OrderChange['kind'], string>> = {
  pay: 'only an unpaid order can be paid',
  cancel: 'only an unpaid order can be cancelled; the money of a paid one goes back by `order refund`',
  redeem: 'only a paid order can be redeemed',
  refund: 'only an order that is paid, or was paid too late, can be refunded',
};

type Refusal = Exclude<OrderOutcome, Done | { code: 'unknown_order' }>;

function refusalText(outcome: Refusal, order: string, change?: OrderChange): string {
  switch (outcome.code) {
    case 'forbidden':
      return `${order} is another buyer's`;
    case 'wrong_status':
      return wrongStatusText(`${order} is ${outcome.orderStatus}`, outcome.orderStatus, change);
    case 'expired':
      return outcome.refundDue
        ? `${order} had expired, and its units are no longer available: give the money back, then refund the order`
        : `${order} had expired, and its payment has been refunded`;
    case 'wrong_state':
      return `${order} had expired, and its units can't be taken again while the sale is paused: try again when it is resumed`;
    case 'not_arrived':
      return `${order} is not in Postgres yet, but may still be in an order log that sync has not copied: try again`;
    case 'busy':
    case 'unavailable':
      return `the units of ${order} could not be taken again now, and nothing has changed: try again`;
    case 'unknown':
      return `it is not known whether the units of ${order} were taken again: try again, which does no harm`;
  }
}

function wrongStatusText(what: string, status: string, change?: OrderChange): string {
  if (change?.kind === 'pay' && status === 'paid') {
    return `${what} already, by another means than ${change.payType}; if it was paid twice, give one payment back`;
  }
  return change === undefined ? what : `${what}; ${ALLOWED[change.kind]}`;
}

export function orderSheet(order: Order, replaces?: string): string {
  const rows: [string, string | number | undefined][] = [
    ['order', order.orderId],
    ['replaces', replaces && `${replaces}, which had expired before it was paid`],
    ['sale', order.saleId],
    ['buyer', order.buyerId],
    ['quantity', plural(order.quantity, 'unit')],
    ['status', order.refundDue ? `${order.status}; a refund is due` : order.status],
    ['paid by', order.payType],
    ['reference', order.reference],
    ['metadata', order.metadata && JSON.stringify(order.metadata)],
    ['committed', order.committedAt],
    ['expires', order.status === 'unpaid' ? order.expiresAt : undefined],
    ['paid', order.paidAt],
    ['redeemed', order.redeemedAt],
    ['cancelled', order.cancelledAt],
    ['expired', order.expiredAt],
    ['refunded', order.refundedAt],
    ['taken again by', order.retakenBy],
    ...(order.changes ?? []).map(({ change, at, actor, reason }): [string, string] => [
      'operator',
      `${change} by ${actor} at ${at}${reason && `: ${reason}`}`,
    ]),
  ];
  return columns(rows.filter(([, value]) => value !== undefined));
}

const COLUMNS = {
  order: { head: 'order', of: ({ orderId }) => orderId },
  sale: { head: 'sale', of: ({ saleId }) => saleId, isId: true },
  buyer: { head: 'buyer', of: ({ buyerId }) => buyerId, isId: true },
  units: { head: 'units', of: ({ quantity }) => number(quantity), align: 'right', spare: 4 },
  status: { head: 'status', of: ({ status }) => status },
  payType: { head: 'paid by', of: ({ payType }) => payType, spare: 2 },
  committed: { head: 'committed', of: ({ committedAt }) => committedAt, spare: 3 },
  expired: { head: 'expired', of: ({ expiredAt }) => expiredAt, spare: 1 },
} as const satisfies Readonly<Record<string, Column<Order>>>;

const { order, sale, buyer, units, status, payType, committed, expired } = COLUMNS;

export const REFUND_COLUMNS: readonly Column<Order>[] = [order, sale, buyer, units, payType, expired];

/** @param ofOneBuyer the list has the orders of one buyer: its column is needed least */
export function orderColumns(ofOneBuyer: boolean): readonly Column<Order>[] {
  return [order, ofOneBuyer ? { ...buyer, spare: 1 } : buyer, units, status, payType, committed];
}
