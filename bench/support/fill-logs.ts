/** Fills the order logs of a sale as lanes would, with no sync running. */
import { randomBytes } from 'node:crypto';
import { type Backend, NO_ENTRY, type TakeOrder } from '../../src/engine/contract.ts';
import { OrderIds } from '../../src/engine/order-id.ts';
import { homeSegment } from '../../src/engine/sale/home-segment.ts';
import { BenchFailure } from './failure.ts';

/** About what a lane sends in one take at full load. */
const BATCH_ORDERS = 64;
const WORKER = 1;
const ORDER_ID_KEY_BYTES = 32;
/** One for all sales: under another key, the same id could come again. */
const ids = new OrderIds({ key: randomBytes(ORDER_ID_KEY_BYTES), worker: WORKER });

export interface FilledSale {
  readonly id: string;
  readonly segments: number;
  readonly generation: number;
}

/** Takes one unit for each of `count` buyers. @returns the orders that are in the logs now */
export async function fillLogs(backend: Backend, sale: FilledSale, count: number): Promise<TakeOrder[]> {
  const orders = someOrders(count);
  const bySegment = Array.from({ length: sale.segments }, (): TakeOrder[] => []);
  for (const order of orders) bySegment[homeSegment(order.buyerId, sale.segments)]!.push(order);
  await Promise.all(bySegment.map((own, segment) => fillSegment(backend, sale, segment, own)));
  return orders;
}

function someOrders(count: number): TakeOrder[] {
  return Array.from({ length: count }, (_, i) => ({
    orderId: ids.next(),
    buyerId: `buyer-${i + 1}`,
    quantity: 1,
    key: '',
  }));
}

async function fillSegment(
  backend: Backend,
  { id: saleId, generation }: FilledSale,
  segment: number,
  orders: readonly TakeOrder[],
): Promise<void> {
  for (let from = 0; from < orders.length; from += BATCH_ORDERS) {
    const batch = orders.slice(from, from + BATCH_ORDERS);
    const ref = { saleId, segment, generation };
    const reply = await backend.takes.take({
      ...ref,
      lane: WORKER,
      ticket: from + 1,
      answeredTicket: 0,
      newest: NO_ENTRY,
      orders: batch,
    });
    const taken = reply.status === 'served' && reply.results.every(({ kind }) => kind === 'taken');
    if (!taken) throw new BenchFailure(`a take that fills the logs was answered ${JSON.stringify(reply)}`);
  }
}
