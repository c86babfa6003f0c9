/** An order in a buyer's record, and how it is compared with Postgres and the log. */

import type { HeldOrder, Holding } from '../engine/contract.ts';
import { counted } from '../lib/counted.ts';

export interface RecordedOrder {
  readonly buyerId: string;
  readonly order: HeldOrder;
  /** The record has this order id a second time. */
  readonly isTwice: boolean;
}

/** An order in Postgres. */
export interface KnownOrder {
  readonly saleId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
  readonly isLive: boolean;
  /** Its return is pending: it is about to be removed from its record. */
  readonly isReturning: boolean;
}

/**
 * How a record's order differs from the order with the same id in Postgres or the log; a text to follow "is in the buyer's
 * record".
 */
export function differenceOf(
  { buyerId, order, isTwice }: RecordedOrder,
  known: Pick<KnownOrder, 'saleId' | 'buyerId' | 'quantity' | 'key'>,
  saleId: string,
): string | undefined {
  if (isTwice) return ' twice';
  if (known.saleId !== saleId) return `, and is of sale ${known.saleId}`;
  if (known.buyerId !== buyerId) return `, and is that of buyer ${known.buyerId}`;
  if (known.quantity !== order.quantity)
    return ` as ${counted(order.quantity, 'unit')} instead of ${known.quantity}`;
  return known.key === order.key ? undefined : ' under another idempotency key than its own';
}

export function ordersOf({ buyerId, orders }: Holding): RecordedOrder[] {
  const ids = orders.map(({ orderId }) => orderId);
  return orders.map((order, i) => ({ buyerId, order, isTwice: ids.indexOf(order.orderId) !== i }));
}

export function isSame(a: RecordedOrder, b: RecordedOrder): boolean {
  const [x, y] = [a.order, b.order];
  return (
    x.orderId === y.orderId &&
    x.quantity === y.quantity &&
    x.seq === y.seq &&
    x.key === y.key &&
    a.isTwice === b.isTwice
  );
}
