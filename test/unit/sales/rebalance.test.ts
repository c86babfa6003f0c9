import { beforeEach, expect, test } from 'vitest';
import { StaleGeneration } from '../../../src/engine/errors.ts';
import { MemoryBackend } from '../../../src/engine/memory/memory-backend.ts';
import { leftsOf, makeMoves } from '../../../src/sales/rebalance.ts';
import { aSale, type LoadedSale, loadSale } from '../../support/shop/sales.ts';

let sale: LoadedSale;

beforeEach(async () => {
  const backend = new MemoryBackend({ maxLogOrders: 1_000 });
  sale = await loadSale(backend, aSale({ stock: 3, segments: 2 }), { split: [0, 3] });
});

test('moves that found nothing are not told, and others with the units that were moved', async () => {
  const planned = [
    { from: 0, to: 1, units: 5 },
    { from: 1, to: 0, units: 5 },
  ];
  expect(await makeMoves(sale.backend, sale.ref(), planned)).toEqual([{ from: 1, to: 0, units: 3 }]);
  expect(await sale.left()).toEqual([3, 0]);
});

test('units left are told of all segments, or of none', async () => {
  expect(await leftsOf(sale.backend, sale.ref(), 2)).toEqual([0, 3]);
  await expect(leftsOf(sale.backend, sale.ref(), 3)).rejects.toThrow(StaleGeneration);
  await expect(leftsOf(sale.backend, { ...sale.ref(), generation: 2 }, 2)).rejects.toThrow(StaleGeneration);
});
