/**
 * What happens to an order after it was bought: the words, and what buyers and operators may ask for. Done in place
 * (OrderService) or through a node's ops port (cli/command/ops-client.ts).
 */
import type { Author } from '../engine/sale/author.ts';

export type OrderStatus = 'unpaid' | 'paid' | 'redeemed' | 'cancelled' | 'expired' | 'refunded' | 'rejected';

export const PAY_TYPES = ['balance', 'alipay', 'wechat', 'card', 'other'] as const;
export type PayType = (typeof PAY_TYPES)[number];

/** An order as it is in Postgres. Times are ISO 8601 in UTC; of a change that was not made there is none. */
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
  /** It was paid after it had expired, its units were gone, and the money has not gone back yet. */
  readonly refundDue: true | undefined;
  /** The order that took its place, because it was paid after it had expired. */
  readonly retakenBy: string | undefined;
  /** What operators have done to it, the oldest first: only where an operator asks for the order (`showOrder`). */
  readonly changes?: readonly NotedChange[];
}

/** A change of an order that an operator has made. What a buyer does to his own order is not noted. */
export interface NotedChange extends Author {
  readonly change: OrderChange['kind'];
  /** ISO 8601. */
  readonly at: string;
}

/** What may be done to an order. Each may be repeated: what was done before is answered as the first time. */
export type OrderChange =
  | { readonly kind: 'pay'; readonly payType: PayType }
  | { readonly kind: 'cancel' | 'redeem' | 'refund' };

/** How a change, or a question, has ended. */
export type OrderOutcome =
  /** `replaces`: the expired order for which the payment came, and whose units this one has taken anew. */
  | { readonly code: 'done'; readonly order: Order; readonly replaces?: string }
  | { readonly code: 'unknown_order' }
  /** It is somebody else's. */
  | { readonly code: 'forbidden' }
  /** Its status does not allow the change. `accepted`: it is in the order log, and not in Postgres yet. */
  | { readonly code: 'wrong_status'; readonly orderStatus: OrderStatus | 'accepted' }
  /** The payment came too late, and the units can't be taken anew while the sale is paused. Nothing was decided. */
  | { readonly code: 'wrong_state'; readonly state: 'paused' }
  /** Postgres does not have it, and not all order logs were carried over in time: it may still come. Nothing was done. */
  | { readonly code: 'not_arrived' }
  /** The payment came too late, and the units could not be taken anew. False: the money has gone back already. */
  | { readonly code: 'expired'; readonly refundDue: boolean }
  /** Nothing was decided: ask again. */
  | { readonly code: 'busy' | 'unavailable' }
  /** It may be done or not: ask again. */
  | { readonly code: 'unknown' };

export interface OrderOperations {
  showOrder(orderId: string): Promise<OrderOutcome>;
  /** @param by who asks, who may change anybody's order; noted with the change */
  changeOrder(orderId: string, change: OrderChange, by: Author): Promise<OrderOutcome>;
  /**
   * Orders that were paid too late and whose payments are to be refunded, the longest due first, at most 1,000.
   * @param saleId missing: of all sales. @throws UnknownSale
   */
  refundsDue(saleId?: string): Promise<Order[]>;
}
