/**
 * What a buyer's record in the home segment says of a purchase, where neither a take nor a watermark can tell: of a
 * repeated one that this node alone would refuse, and of one whose log entry is not the one that was committed.
 */
import type { HeldOrder, Outcome, SaleStore, TakeStore } from '../contract.ts';
import { BackendCorrupt, StaleGeneration } from '../errors.ts';
import type { LiveSale } from './live-sale.ts';
import type { Pending } from './pending.ts';
import { Recaller } from './record-lookup.ts';
import type { TakenOrder } from './uncommitted-orders.ts';

export interface RepeatsHost {
  readonly takes: Pick<TakeStore, 'ready'>;
  fault(error: unknown, saleId: string, segment: number): void;
  /** Whether these orders are committed or lost is not known here: Postgres is to be asked. */
  outlived(saleId: string, orders: readonly TakenOrder[]): void;
}

export class Repeats {
  readonly #recaller: Recaller;
  readonly #host: RepeatsHost;

  constructor(sales: SaleStore, host: RepeatsHost) {
    this.#recaller = new Recaller(sales);
    this.#host = host;
  }

  /** Answers with what the key's order became, if the buyer's record knows the key; else with the refusal. */
  async recall(sale: LiveSale, pending: Pending, refusal: Outcome): Promise<void> {
    const lane = sale.laneOf(pending.buyerId);
    if (!this.#host.takes.ready) return pending.settle({ code: 'unavailable' });
    try {
      const { committed, orders } = await this.#recaller.ask(lane.place, pending.buyerId);
      const order = orders.find((o) => o.key === pending.key);
      if (!order) pending.settle(refusal);
      else if (order.quantity !== pending.quantity) pending.settle(mismatch(order));
      else lane.replayed(pending, order, committed);
    } catch (error) {
      if (error instanceof StaleGeneration) sale.park([pending], lane.place.generation);
      else pending.settle({ code: 'unavailable' });
    }
  }

  /**
   * No watermark can settle the purchase: the sale was built anew from Postgres while it waited, or its log entry is not
   * the one that was committed. The buyer's record holds the order, if the backend has not lost it. One that does not hold it
   * says nothing: it may have lost an order that Postgres has, or was built from Postgres when the order had ended.
   */
  async confirm(sale: LiveSale, pending: Pending): Promise<void> {
    if (pending.settled) return;
    pending.phase = 'sent';
    const lane = sale.laneOf(pending.buyerId);
    const { segment, generation } = lane.place;
    try {
      const { committed, orders } = await this.#recaller.ask(lane.place, pending.buyerId);
      const order = orders.find((o) => o.orderId === pending.orderId);
      if (order) return lane.replayed(pending, order, committed);
      pending.settle({ code: 'unknown' });
      // The order of a repeated purchase may have been given back meanwhile. Of a loss, he is told who took it.
      if (pending.entry === '') return;
      // So may an order whose buyer has missed its commit: Postgres knows whether it is that, or was lost.
      if (committed >= pending.seq || pending.generation < generation)
        return this.#host.outlived(pending.saleId, [takenOrder(pending, segment)]);
      const lost = new BackendCorrupt(`order ${pending.orderId} was taken, and the backend has lost it`);
      this.#host.fault(lost, pending.saleId, segment);
    } catch {
      // The sale is being built anew, or the backend is away.
      if (sale.record.generation === generation) lane.waiters.doubt(pending);
      else void this.confirm(sale, pending);
    }
  }

  async orderOf(sale: LiveSale, buyerId: string, orderId: string): Promise<HeldOrder | undefined> {
    const { orders } = await this.#recaller.ask(sale.laneOf(buyerId).place, buyerId);
    return orders.find((order) => order.orderId === orderId);
  }
}

function takenOrder({ orderId, buyerId, quantity }: Pending, segment: number): TakenOrder {
  return { segment, orderId, buyerId, quantity };
}

function mismatch({ orderId, quantity }: HeldOrder): Outcome {
  return { code: 'idempotency_mismatch', orderId, quantity };
}
