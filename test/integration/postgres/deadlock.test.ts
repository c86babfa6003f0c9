/**
 * Transactions that lock the same rows at the same time: each completes, even if Postgres rolls one back on the way.
 */
import type { Knex } from 'knex';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogRead } from '../../../src/engine/contract.ts';
import { expireOrders } from '../../../src/orders/expire-orders.ts';
import { changeOrder } from '../../../src/orders/order-changes.ts';
import { rows } from '../../../src/postgres/database.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { applyBatch } from '../../../src/sync/apply/apply.ts';
import { applyEach } from '../../../src/sync/apply/apply-each.ts';
import { batchOf } from '../../../src/sync/apply/batch.ts';
import { BY } from '../../support/author.ts';
import { emptyDatabase } from '../../support/fixtures.ts';
import { untilBlocked } from '../../support/postgres/blocked.ts';
import { offered, QUEUE, queued } from '../../support/shop/queue.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';

let shop: Shop;

beforeEach(async () => {
  // Only an administrator can have a transaction wait for longer than the others.
  shop = await Shop.open({ database: await emptyDatabase() });
});

afterEach(() => shop[Symbol.asyncDispose]());

/** The log of a sale of one segment, from its beginning. */
async function logOf(saleId: string): Promise<LogRead> {
  const position = { saleId, segment: 0, generation: 1, seq: 0, tail: '' };
  return (await shop.backend.log.readLog([position], 1_000))[0]!;
}

/** A transaction that is never the victim: the others notice the circle first. */
async function patient(): Promise<Knex.Transaction> {
  const trx = await shop.db.transaction();
  await trx.raw("SET LOCAL deadlock_timeout = '1min'");
  return trx;
}

async function commit(saleId: string, buyerIds: readonly string[]): Promise<string[]> {
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  const sold = await till.buyAll(saleId, buyerIds);
  await sync.stop();
  return sold.map((outcome) => ('orderId' in outcome ? outcome.orderId : outcome.code));
}

test('a rebuild waits for a sync that applies the same orders, and both complete', async () => {
  const [first, rebuilt] = [
    await shop.sell({ id: 'first', stock: 10, segments: 1 }),
    await shop.sell({ id: 'second', stock: 10, segments: 1 }),
  ];
  const till = await shop.startEngine();
  for (const { id } of [first, rebuilt]) await till.buyAll(id, buyers(5), { awaitCommit: false });
  const { slices, orders } = batchOf([await logOf(first.id), await logOf(rebuilt.id)], 1_000);
  const row = await shop.lockRow(first.id);
  // Its orders are inserted, and it waits for the row of the first sale.
  const applied = applyBatch(shop.db, { slices, orders });
  await untilBlocked(shop.db, 1);
  const report = rebuildSale(shop.db, shop.backend, rebuilt.id);
  await untilBlocked(shop.db, 2);
  await row.unlock();
  await applied;
  expect(await report).toMatchObject({ generation: 2, salvagedOrders: 0, loadedBuyers: 5 });
  expect(await shop.service.verify(rebuilt.id)).toMatchObject({ ok: true, committedOrders: 5 });
});

test('a batch locks its sales in the order of their ids, however they lie in the table', async () => {
  const ids = ['i', 'h', 'g', 'f', 'e', 'd', 'c', 'b', 'a'];
  for (const id of ids) await shop.sell({ id, stock: 10, segments: 1 });
  const reads = ids.map((saleId, i): LogRead => {
    const [orderId, position] = [String(i + 1), { saleId, segment: 0, generation: 1, seq: 0, tail: '' }];
    const orders = [{ orderId, buyerId: 'anna', quantity: 1, key: '' }];
    return {
      position,
      head: undefined,
      entries: [{ seq: 1, previous: '', tail: orderId, ordersSoFar: 1, orders }],
    };
  });
  const held = await shop.lockRow('b');
  const applied = applyBatch(shop.db, batchOf(reads, 1_000));
  await untilBlocked(shop.db, 1);
  const free = await rows<{ id: string }>(shop.db, 'SELECT id FROM sales ORDER BY id FOR UPDATE SKIP LOCKED');
  await held.unlock();
  await applied;
  expect(free.map(({ id }) => id)).toEqual(['c', 'd', 'e', 'f', 'g', 'h', 'i']);
  expect(await rows(shop.db, 'SELECT DISTINCT stock FROM sales')).toEqual([{ stock: '9' }]);
});

describe('the victim of a deadlock is repeated', () => {
  test('a cancellation', async () => {
    const sale = await shop.sell({ stock: 10, payWithinSeconds: 600 });
    const [orderId] = await commit(sale.id, ['anna']);
    const other = await patient();
    await other.raw('SELECT 1 FROM sales WHERE id = ? FOR UPDATE', [sale.id]);
    const changed = changeOrder(shop.db, { orderId: orderId!, kind: 'cancel', payType: undefined, by: BY });
    await untilBlocked(shop.db, 1);
    await other.raw('SELECT 1 FROM orders WHERE order_id = ? FOR UPDATE', [orderId!]);
    await other.commit();
    await changed;
    expect(await rows(shop.db, 'SELECT status FROM orders')).toEqual([{ status: 'cancelled' }]);
  });

  test('the expiry of an offer', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna']);
    await shop.startSync();
    shop.startHead((await shop.startEngine()).take);
    const orderId = await offered(shop, id, 'anna');
    await shop.db.raw("UPDATE orders SET expires_at = now() - interval '1 second'");
    const other = await patient();
    await other.raw('SELECT 1 FROM places WHERE sale_id = ? FOR UPDATE', [id]);
    const expired = expireOrders(shop.db, 10);
    await untilBlocked(shop.db, 1);
    await other.raw('SELECT 1 FROM orders WHERE order_id = ? FOR UPDATE', [orderId]);
    await other.commit();
    await expired;
    // The repetition leaves out what the other has still locked then.
    await expireOrders(shop.db, 10);
    expect(await rows(shop.db, 'SELECT status FROM orders')).toEqual([{ status: 'expired' }]);
  });

  test('the resume of a sale with a queue', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna']);
    await shop.startSync();
    shop.startHead((await shop.startEngine()).take);
    const orderId = await offered(shop, id, 'anna');
    await shop.service.change(id, { action: 'pause' }, BY);
    const other = await patient();
    await other.raw('SELECT 1 FROM orders WHERE order_id = ? FOR UPDATE', [orderId]);
    const resumed = shop.service.change(id, { action: 'resume' }, BY);
    await untilBlocked(shop.db, 1);
    await other.raw('SELECT 1 FROM sales WHERE id = ? FOR UPDATE', [id]);
    await other.commit();
    expect(await resumed).toMatchObject({ state: 'open' });
  });

  test('a batch that is applied in parts', async () => {
    const sale = await shop.sell({ stock: 10, segments: 1 });
    const [bens] = await commit(sale.id, ['ben']);
    const order = (orderId: string, buyerId: string) => ({ orderId, buyerId, quantity: 1, key: '' });
    const orders = [order('7', 'anna'), order('8', 'anna'), order('9', 'ben')];
    const entry = { seq: 2, previous: bens!, tail: '7', ordersSoFar: 4, orders };
    const position = { saleId: sale.id, segment: 0, generation: 1, seq: 1, tail: bens! };
    const other = await patient();
    await other.raw("UPDATE orders SET status = 'cancelled' WHERE order_id = ?", [bens!]);
    const applied = applyEach(shop.db, batchOf([{ position, head: undefined, entries: [entry] }], 1_000));
    await untilBlocked(shop.db, 1);
    await other.raw('UPDATE sales SET stock = stock + 1 WHERE id = ?', [sale.id]);
    await other.commit();
    expect([...(await applied).values()]).toEqual([{ orderId: '8', reason: 'limit' }]);
    expect(await rows(shop.db, 'SELECT stock FROM sales')).toEqual([{ stock: '8' }]);
  });
});
