/**
 * The life of an order after its purchase: its states, and the changes that buyers and operators may request. OrderService
 * makes them on the stores, OpsClient (cli/command/ops-client.ts) through a node's ops port.
 */
import type { Author } from '../engine/sale/author.ts';
import type { Order, OrderChange, OrderEdit, OrderStatus } from './order.ts';
import type { OrderPage, OrderQuery, RefundPage, RefundQuery } from './order-list.ts';

export {
  type NotedChange,
  ORDER_STATUSES,
  type Order,
  type OrderChange,
  type OrderEdit,
  type OrderStatus,
  PAY_TYPES,
  type PayType,
} from './order.ts';

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
  /** Notes the shop's reference or metadata with the order. @param by as for `changeOrder` */
  editOrder(orderId: string, edit: OrderEdit, by: Author): Promise<OrderOutcome>;
  /** A page of the sale's orders. @throws UnknownSale */
  listOrders(saleId: string, query?: OrderQuery): Promise<OrderPage>;
  /** A page of the orders that were paid too late and are not refunded yet. @throws UnknownSale, InvalidInput */
  refundsDue(query?: RefundQuery): Promise<RefundPage>;
}
