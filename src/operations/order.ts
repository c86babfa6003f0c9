/** An order after its purchase, and its changes. */
import type { Author } from '../engine/sale/author.ts';

export const ORDER_STATUSES = [
  'offered',
  'unpaid',
  'paid',
  'redeemed',
  'cancelled',
  'expired',
  'refunded',
  'rejected',
] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];

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
  /** What the shop calls the order, such as its cart's id. */
  readonly reference: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  /** Changes made by operators, the oldest first; present only if an operator asks (`showOrder`). */
  readonly changes?: readonly NotedChange[];
}

/** An operator's change of an order. Buyers' changes of their own orders are not recorded. */
export interface NotedChange extends Author {
  /** `edit`: reference or metadata; only the last one is kept. */
  readonly change: OrderChange['kind'] | 'edit';
  /** ISO 8601. */
  readonly at: string;
}

/** The changes of an order. A repeated change gets the same answer as the first. */
export type OrderChange =
  | { readonly kind: 'pay'; readonly payType: PayType }
  | { readonly kind: 'cancel' | 'redeem' | 'refund' };

/** What the shop notes with an order, at any time. What is missing stays; `null` removes it. */
export interface OrderEdit {
  readonly reference?: string | null | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | null | undefined;
}
