import type { BuyerOperations } from '../../operations/buyer-operations.ts';
import type { EventOperations } from '../../operations/event-operations.ts';
import type { OrderOperations } from '../../operations/order-operations.ts';
import type { QueueOperations } from '../../operations/queue/queue-operations.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import type { Buy } from '../../orders/late-payment.ts';
import type { Stores } from '../stores/stores.ts';
import { boundedBuyers } from './bounded-buyers.ts';
import { boundedEvents } from './bounded-events.ts';
import { boundedOperations } from './bounded-operations.ts';
import { boundedOrders } from './bounded-orders.ts';
import { boundedQueues } from './bounded-queues.ts';

/** What operators do, in bounded time. Each also throws StoresAway and OperationTimedOut. */
export interface Operations {
  readonly sales: SaleOperations;
  readonly queues: QueueOperations;
  readonly orders: OrderOperations;
  readonly buyers: BuyerOperations;
  readonly events: EventOperations;
}

/** @param buy makes the purchase that a late payment needs */
export function operationsOn(stores: Stores, buy: Buy): Operations {
  return {
    sales: boundedOperations(stores),
    queues: boundedQueues(stores),
    orders: boundedOrders(stores, buy),
    buyers: boundedBuyers(stores),
    events: boundedEvents(stores),
  };
}
