import type { LogHint } from '../../engine/contract.ts';
import { EventService } from '../../events/event-service.ts';
import type { BuyerOperations } from '../../operations/buyer-operations.ts';
import type { EventOperations } from '../../operations/event-operations.ts';
import type { OrderOperations } from '../../operations/order-operations.ts';
import type { QueueOperations } from '../../operations/queue/queue-operations.ts';
import type { SaleOperations } from '../../operations/sale-operations.ts';
import type { Buy } from '../../orders/late-payment.ts';
import { OrderService } from '../../orders/order-service.ts';
import { QueueService } from '../../queue/operators/queue-service.ts';
import { BuyerService } from '../../shop/buyer-service.ts';
import { SaleService } from '../../shop/sale-service.ts';
import { StoreWatch } from '../stores/store-watch.ts';
import type { Stores } from '../stores/stores.ts';
import { BoundedBuyers } from './bounded-buyers.ts';
import { BoundedEvents } from './bounded-events.ts';
import { BoundedOrders } from './bounded-orders.ts';
import { BoundedQueues } from './bounded-queues.ts';
import { BoundedSales } from './bounded-sales.ts';
import { BoundedWork } from './bounded-work.ts';

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
  const { db, backend, locks, ownership } = stores;
  const hint = (grown: LogHint) => backend.takes.hint(grown);
  const bounded = new BoundedWork(new StoreWatch(stores));
  return {
    sales: new BoundedSales(new SaleService(db, backend, locks, ownership), bounded),
    queues: new BoundedQueues(new QueueService(db), bounded),
    orders: new BoundedOrders(new OrderService({ db, backend, buy, hint }), bounded),
    buyers: new BoundedBuyers(new BuyerService({ db, backend, hint }), bounded),
    events: new BoundedEvents(new EventService(db), bounded),
  };
}
