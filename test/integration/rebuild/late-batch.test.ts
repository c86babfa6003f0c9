/**
 * A sync commits a batch while another process rebuilds the sale, and the backend has lost the batch's orders: each order is
 * either kept or counted as lost, whichever commits first.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryBackend } from '../../../src/engine/memory/memory-backend.ts';
import { rows } from '../../../src/postgres/database.ts';
import type { Loss } from '../../../src/rebuild/losses.ts';
import { readLosses } from '../../../src/rebuild/lost-orders.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { applySlices, CursorMoved } from '../../../src/sync/apply/apply.ts';
import { applyEach } from '../../../src/sync/apply/apply-each.ts';
import { batchOf } from '../../../src/sync/apply/batch.ts';
import { untilBlocked } from '../../support/postgres/blocked.ts';
import { Shop } from '../../support/shop/shop.ts';

const ORDER = { orderId: '7', buyerId: 'anna', quantity: 1, key: '' };
const ENTRY = { seq: 1, previous: '', tail: ORDER.orderId, ordersSoFar: 1, orders: [ORDER] };

let shop: Shop;
let saleId: string;

beforeEach(async () => {
  shop = await Shop.open();
  ({ id: saleId } = await shop.sell({ stock: 10, segments: 1 }));
});

afterEach(() => shop[Symbol.asyncDispose]());

/** The batch that a sync has read, before the backend lost it. */
function batch() {
  const position = { saleId, segment: 0, generation: 1, seq: 0, tail: '' };
  return batchOf([{ position, head: undefined, entries: [ENTRY] }], 1).slices;
}

/** Rebuilds the sale in a backend that has lost everything. */
async function rebuild(): Promise<Loss[]> {
  const losses: Loss[] = [];
  const newest = [{ seq: ENTRY.seq, tail: ENTRY.tail, orders: ENTRY.ordersSoFar }];
  await rebuildSale(shop.db, new MemoryBackend({ maxLogOrders: 1_000 }), saleId, {
    newest,
    rejected() {},
    ordersLost: (loss) => losses.push(loss),
  });
  return losses;
}

const kept = () => rows(shop.db, 'SELECT order_id FROM orders WHERE sale_id = ?', [saleId]);

test('the batch commits first: its order is kept, and not counted as lost', async () => {
  const slices = batch();
  const late = await shop.db.transaction();
  await applySlices(late, slices, slices);
  const rebuilt = rebuild();
  await untilBlocked(shop.db, 1);
  await late.commit();
  expect(await rebuilt).toEqual([]);
  expect(await readLosses(shop.db, saleId)).toEqual([]);
  expect(await kept()).toHaveLength(1);
});

test('the rebuild commits first: the order is counted as lost, and the batch changes nothing', async () => {
  const slices = batch();
  const other = await shop.db.transaction();
  await other.raw('SELECT 1 FROM segment_cursors WHERE sale_id = ? FOR UPDATE', [saleId]);
  const rebuilt = rebuild();
  await untilBlocked(shop.db, 1);
  const late = expect(applySlices(shop.db, slices, slices)).rejects.toThrow(CursorMoved);
  await untilBlocked(shop.db, 2);
  await other.rollback();
  expect(await rebuilt).toEqual([{ segment: 0, orders: 1 }]);
  await late;
  expect(await readLosses(shop.db, saleId)).toMatchObject([{ segment: 0, orders: 1 }]);
  expect(await kept()).toEqual([]);
});

test('the batch is refused as a whole, and its last step waits when the rebuild begins: its order is not counted as lost', async () => {
  await shop.db.raw('UPDATE sales SET stock = 0 WHERE id = ?', [saleId]);
  const other = await shop.db.transaction();
  await other.raw('SELECT 1 FROM segment_cursors WHERE sale_id = ? FOR UPDATE', [saleId]);
  const late = applyEach(shop.db, { slices: batch(), orders: 1 });
  await untilBlocked(shop.db, 1);
  const rebuilt = rebuild();
  await untilBlocked(shop.db, 2);
  await other.rollback();
  expect([...(await late).values()]).toEqual([{ orderId: ORDER.orderId, reason: 'stock' }]);
  expect(await rebuilt).toEqual([]);
  expect(await readLosses(shop.db, saleId)).toEqual([]);
});
