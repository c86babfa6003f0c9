/** Which sales the timer looks at: an operator's rebalance looks at any. */
import { beforeEach, expect, test } from 'vitest';
import { type KnownEntry, NO_ENTRY } from '../../../src/engine/contract.ts';
import { MemoryBackend } from '../../../src/engine/memory/memory-backend.ts';
import type { SaleLog } from '../../../src/sync/apply/sale-log.ts';
import { Rebalancer } from '../../../src/sync/rebalancer.ts';
import type { SyncStores } from '../../../src/sync/sync-stores.ts';
import { aSale, type LoadedSale, loadSale } from '../../support/sales.ts';

let sale: LoadedSale;
let newest: KnownEntry[];
let rebalancer: Rebalancer;

beforeEach(async () => {
  const backend = new MemoryBackend({ maxLogOrders: 1_000 });
  sale = await loadSale(backend, aSale({ stock: 12, segments: 2 }), { split: [0, 12] });
  newest = [NO_ENTRY, NO_ENTRY];
  const log = {
    saleId: sale.sale.id,
    generation: 1,
    positions: [0, 1].map((segment) => ({ ...sale.ref(segment), seq: 0, tail: '' })),
    get newest() {
      return newest;
    },
  };
  const events = {
    transferred() {},
    saleFailed: ({ error }: { error: unknown }) => expect.fail(String(error)),
  };
  const stores = { backend, events } as unknown as SyncStores;
  rebalancer = new Rebalancer(stores, { logs: [log as unknown as SaleLog] }, 0);
});

const unevenAgain = () => sale.backend.transfers.transfer(sale.ref(), { from: 0, to: 1, units: 6 });

test('a sale that is new to the rebalancer is checked', async () => {
  await rebalancer.run();
  expect(await sale.left()).toEqual([6, 6]);
});

test('an uneven sale is left alone until it sells again', async () => {
  await rebalancer.run();
  await unevenAgain();
  await rebalancer.run();
  expect(await sale.left()).toEqual([0, 12]);
  newest = [NO_ENTRY, { seq: 1, tail: '7', orders: 1 }];
  await rebalancer.run();
  expect(await sale.left()).toEqual([6, 6]);
});
