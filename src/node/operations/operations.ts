import type { BuyerOperations } from '../../operations/buyer-operations.ts';
import type { EventOperations } from '../../operations/event-operations.ts';
import type { OrderOperations } from '../../operations/order-operations.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import type { Buy } from '../../orders/late-payment.ts';
import type { Stores } from '../stores/stores.ts';
import { boundedBuyers } from './bounded-buyers.ts';
import { boundedEvents } from './bounded-events.ts';
import { boundedOperations } from './bounded-operations.ts';
import { boundedOrders } from './bounded-orders.ts';

/** What operators do, in bounded time. Each also throws StoresAway and OperationTimedOut. */
export interface Operations {
  readonly sales: SaleOperations;
  readonly orders: OrderOperations;
  readonly buyers: BuyerOperations;
  readonly events: EventOperations;
}

/** @param buy makes the purchase that a late payment needs */
export function operationsOn(stores: Stores, buy: Buy): Operations {
  return {
    sales: boundedOperations(stores),
    orders: boundedOrders(stores, buy),
    buyers: boundedBuyers(stores),
    events: boundedEvents(stores),
  };
}
