/** Lists of orders, page by page, in the order of their ids, which rise with the second of the purchase. */
import type { PageQuery } from './checked-input.ts';
import type { Order, OrderStatus } from './order.ts';

/** Orders in a page, unless the query asks for fewer or more. */
export const DEFAULT_PAGE_ORDERS = 100;
export const MAX_PAGE_ORDERS = 1_000;

export interface OrderFilter {
  /** Missing: every status. */
  readonly status?: readonly OrderStatus[] | undefined;
  /** Purchased at this time or later, in milliseconds since the Unix epoch, to the second. */
  readonly since?: number | undefined;
  /** Purchased before this time. */
  readonly until?: number | undefined;
  readonly buyerId?: string | undefined;
  /** The shop's own reference. Several orders may have the same one. */
  readonly reference?: string | undefined;
}

export type ListOrder = 'newest' | 'oldest';

export interface OrderQuery extends OrderFilter {
  /** The order to begin with. Default: `newest`. */
  readonly order?: ListOrder | undefined;
  /** The page begins after this order id: `next` of the page before. */
  readonly after?: string | undefined;
  /** 1 to MAX_PAGE_ORDERS. Default: DEFAULT_PAGE_ORDERS. */
  readonly limit?: number | undefined;
}

export interface OrderPage {
  /** At most `limit`. There may be fewer, or none, although more follow: a page reads a bounded number of orders to filter. */
  readonly orders: readonly Order[];
  /** The next page is after this order id. Missing: there are no more orders now. */
  readonly next?: string | undefined;
}

/** Which refunds that are due. By default 1,000 are in a page. */
export interface RefundQuery extends PageQuery {
  /** Missing: of all sales. */
  readonly saleId?: string | undefined;
}

export interface RefundPage {
  /** Those that are due longest come first. */
  readonly orders: readonly Order[];
  /** The next page is after this order id. Missing: there is none. */
  readonly next?: string | undefined;
}
