import type { Author } from '../../engine/sale/author.ts';
import type { OrderEdit } from '../../operations/order.ts';
import type { OrderPage, OrderQuery, RefundPage, RefundQuery } from '../../operations/order-list.ts';
import type { OrderChange, OrderOperations, OrderOutcome } from '../../operations/order-operations.ts';
import type { OrderService } from '../../orders/order-service.ts';
import type { BoundedWork } from './bounded-work.ts';

/** OrderOperations with the bounds of BoundedWork. Each also throws StoresAway and OperationTimedOut. */
export class BoundedOrders implements OrderOperations {
  readonly #work: OrderService;
  readonly #bounded: BoundedWork;

  constructor(work: OrderService, bounded: BoundedWork) {
    this.#work = work;
    this.#bounded = bounded;
  }

  showOrder(orderId: string): Promise<OrderOutcome> {
    return this.#bounded.run('show', () => this.#work.showOrder(orderId));
  }

  changeOrder(orderId: string, change: OrderChange, by: Author): Promise<OrderOutcome> {
    const work = (latestMs: number) => this.#work.changeOrder(orderId, change, by, latestMs);
    return this.#bounded.run(change.kind, work, { changes: true });
  }

  editOrder(orderId: string, edit: OrderEdit, by: Author): Promise<OrderOutcome> {
    const work = (latestMs: number) => this.#work.editOrder(orderId, edit, by, latestMs);
    return this.#bounded.run('edit', work, { changes: true });
  }

  listOrders(saleId: string, query?: OrderQuery): Promise<OrderPage> {
    return this.#bounded.run('orders', () => this.#work.listOrders(saleId, query));
  }

  refundsDue(query?: RefundQuery): Promise<RefundPage> {
    return this.#bounded.run('refunds due', () => this.#work.refundsDue(query));
  }
}
