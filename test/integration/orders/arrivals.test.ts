/** An order that its caller asks for is still in the log of its segment. */
import { expect, test } from 'vitest';
import { intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { Shop } from '../../support/shop/shop.ts';

test('the order arrives while the log of another sale is not drained: it is found', async () => {
  await using shop = await Shop.open();
  const [arriving, stuck] = [await shop.sell({ stock: 5 }), await shop.sell({ stock: 5 })];
  const till = await shop.startEngine();
  const bought = await till.buy(arriving.id, 'anna', { awaitCommit: false });
  expect((await till.buy(stuck.id, 'ben', { awaitCommit: false })).code).toBe('accepted');
  // Another process works on that sale, and hangs.
  expect(await shop.locks.tryLock(stuck.id)).toBe(true);
  const row = await shop.lockRow(arriving.id);
  await shop.startSync();
  await until(() => shop.isBlocked(), { what: 'sync is about to drain the log' });
  let looked = false;
  const backend = intercept(shop.backend, (call) => {
    if (call === 'sales.snapshot') looked = true;
  });
  const orders = shop.orders(till.take, backend);
  const asked = orders.showOrder('orderId' in bought ? bought.orderId : '');
  await until(() => looked, { what: 'the order is not in Postgres yet' });
  await row.unlock();
  expect(await asked).toMatchObject({ code: 'done', order: { buyerId: 'anna' } });
});

test('a closed sale that was never built has no log that could hold the order', async () => {
  await using shop = await Shop.open();
  const { id } = await shop.sell({ stock: 5 });
  await shop.startSync();
  const till = await shop.startEngine();
  const bought = await till.buy(id, 'anna');
  await shop.db.raw(
    `INSERT INTO sales SELECT (jsonb_populate_record(s, '{"id": "unbuilt", "generation": 0, "state": "closed"}')).*
     FROM sales s WHERE id = ?`,
    [id],
  );
  const unknown = String(BigInt('orderId' in bought ? bought.orderId : 0) + 1n);
  expect(await shop.orders(till.take).showOrder(unknown)).toEqual({ code: 'unknown_order' });
});
