/**
 * The life of an order after its purchase: its states, and the changes that buyers and operators may request. OrderService
 * makes them on the stores, OpsClient (cli/command/ops-client.ts) through a node's ops port.
 */
import type { Author } from '../engine/sale/author.ts';

export type OrderStatus = 'unpaid' | 'paid' | 'redeemed' | 'cancelled' | 'expired' | 'refunded' | 'rejected';

export const PAY_TYPES = ['balance', 'alipay', 'wechat', 'card', 'other'] as const;
export type PayType = (typeof PAY_TYPES)[number];

/** An order as stored in Postgres. Times are ISO 8601 in UTC; `undefined` means that the change was not made. */
export interface Order {
  readonly orderId: string;
  readonly saleId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly status: OrderStatus;
  readonly payType: PayType | undefined;
  readonly committedAt: string;
  /** When it expires, if it is still unpaid then. */
  readonly expiresAt: string | undefined;
  readonly paidAt: string | undefined;
  readonly redeemedAt: string | undefined;
  readonly refundedAt: string | undefined;
  readonly cancelledAt: string | undefined;
  readonly expiredAt: string | undefined;
  /** It was paid after it had expired, its units were gone, and the money is not refunded yet. */
  readonly refundDue: true | undefined;
  /** The order that replaced it, because it was paid after it had expired. */
  readonly retakenBy: string | undefined;
  /** Changes made by operators, the oldest first; present only if an operator asks (`showOrder`). */
  readonly changes?: readonly NotedChange[];
}

/** An operator's change of an order. Buyers' changes of their own orders are not recorded. */
export interface NotedChange extends Author {
  readonly change: OrderChange['kind'];
  /** ISO 8601. */
  readonly at: string;
}

/** The changes of an order. A repeated change gets the same answer as the first. */
export type OrderChange =
  | { readonly kind: 'pay'; readonly payType: PayType }
  | { readonly kind: 'cancel' | 'redeem' | 'refund' };

/** The result of a change or a query. */
export type OrderOutcome =
  /** `replaces`: the expired order that was paid, and whose units this order has taken again. */
  | { readonly code: 'done'; readonly order: Order; readonly replaces?: string }
  | { readonly code: 'unknown_order' }
  /** The order belongs to another buyer. */
  | { readonly code: 'forbidden' }
  /** The order's status does not allow the change. `accepted`: it is in the order log, and not in Postgres yet. */
  | { readonly code: 'wrong_status'; readonly orderStatus: OrderStatus | 'accepted' }
  /** The payment came too late, and the units can't be taken again while the sale is paused. Nothing was changed. */
  | { readonly code: 'wrong_state'; readonly state: 'paused' }
  /**
   * Postgres does not have the order, and not all order logs were applied in time: it may still arrive. Nothing was
   * done.
   */
  | { readonly code: 'not_arrived' }
  /**
   * The payment came too late, and the units could not be taken again. `refundDue` is false if the money is already
   * refunded.
   */
  | { readonly code: 'expired'; readonly refundDue: boolean }
  /** Nothing was changed: try again. */
  | { readonly code: 'busy' | 'unavailable' }
  /** The change may have been made: repeat it. */
  | { readonly code: 'unknown' };

export interface OrderOperations {
  showOrder(orderId: string): Promise<OrderOutcome>;
  /** @param by the operator, who may change every order; stored with the change */
  changeOrder(orderId: string, change: OrderChange, by: Author): Promise<OrderOutcome>;
  /**
   * Orders that were paid too late and are not refunded yet, the longest due first, at most 1,000.
   * @param saleId if absent, of all sales. @throws UnknownSale
   */
  refundsDue(saleId?: string): Promise<Order[]>;
}
