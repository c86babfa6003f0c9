/** Orders of a log, looked up by the entries that buyers' records name. */
import { expect, it } from 'vitest';
import type { Backend, HeldOrder, LogPosition } from '../../../src/engine/contract.ts';
import { MemoryBackend } from '../../../src/engine/memory/memory-backend.ts';
import { LogOrders } from '../../../src/verify/log-orders.ts';
import { aSale, loadSale } from '../../support/shop/sales.ts';

const held = (orderId: string, seq: number): HeldOrder => ({ orderId, quantity: 1, key: '', seq });

/** A log of `entries` entries of one order each; the first has the order 1001. */
async function sold(entries: number) {
  const backend = new MemoryBackend({ maxLogOrders: 1_000 });
  const sale = await loadSale(backend, aSale({ stock: entries }));
  await sale.sellEach(entries);
  const reads: number[] = [];
  const log = {
    readLog: (positions: readonly LogPosition[], most: number) => {
      reads.push(...positions.map(({ seq }) => seq));
      return backend.log.readLog(positions, most);
    },
  };
  return { sale, reads, orders: new LogOrders({ log } as unknown as Backend, sale.ref()) };
}

it('finds the orders whose entries the log has, and reads each part of it once', async () => {
  const { reads, orders } = await sold(40);
  const [first, last, other, loaded] = [held('1001', 1), held('1040', 40), held('1002', 40), held('1003', 0)];
  const found = await orders.find([last, first, other, loaded]);
  expect([...found]).toEqual([
    [first, expect.objectContaining({ orderId: '1001' })],
    [last, expect.objectContaining({ orderId: '1040' })],
  ]);
  expect(reads).toEqual([0, 39]);
  expect((await orders.find([held('1016', 16), last])).size).toBe(2);
  expect(reads).toEqual([0, 39]);
  expect((await orders.find([held('1017', 17)])).size).toBe(1);
  expect(reads).toEqual([0, 39, 16]);
});

it('reads a log once, however many records name entries that were trimmed', async () => {
  const { sale, reads, orders } = await sold(40);
  await sale.backend.log.advance([sale.watermark(30, 30)]);
  const all = Array.from({ length: 40 }, (_, i) => held(String(1_001 + i), i + 1));
  const found = await orders.find(all);
  expect([...found.keys()]).toEqual(all.slice(30));
  expect(reads).toEqual([0]);
});
