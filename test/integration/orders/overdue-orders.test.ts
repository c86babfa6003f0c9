/** Which of many overdue orders one call of the expiry takes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expireOrders } from '../../../src/orders/expire-orders.ts';
import { rows } from '../../../src/postgres/database.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
});

afterAll(() => shop[Symbol.asyncDispose]());

/** @param overdueS seconds since its deadline; below 0: it is not due yet */
async function insertOrder(orderId: number, saleId: string, overdueS: number, status = 'unpaid') {
  await shop.db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, status, expires_at)
     VALUES (?, ?, ?, 1, true, ?, now() - ? * interval '1 second')`,
    [orderId, saleId, `buyer-${orderId}`, status, overdueS],
  );
}

test('the longest overdue ones expire first, and none that is paid, not due, or of a sale that is being deleted', async () => {
  const [{ id }, gone] = [await shop.sell({ stock: 10 }), await shop.sell({ stock: 10 })];
  await insertOrder(1, id, 5);
  await insertOrder(2, id, -60);
  await insertOrder(3, id, 30);
  await insertOrder(4, gone.id, 50);
  await insertOrder(5, id, 40, 'paid');
  await insertOrder(6, id, 20);
  await shop.db.raw('UPDATE sales SET deleting_since = now() WHERE id = ?', [gone.id]);
  const deadlines = await rows<{ id: string; at: Date }>(
    shop.db,
    'SELECT order_id::text AS id, expires_at AS at FROM orders',
  );
  const deadlineOf = (orderId: string) => deadlines.find((order) => order.id === orderId)!.at;

  const first = await expireOrders(shop.db, 2);
  expect([...first.orderIds].sort()).toEqual(['3', '6']);
  expect(first.dueSince).toEqual(deadlineOf('3'));
  expect((await expireOrders(shop.db, 2)).orderIds).toEqual(['1']);
  expect(await expireOrders(shop.db, 2)).toMatchObject({ orderIds: [] });
  const { rows: stored } = await shop.db.raw(
    "SELECT order_id::text AS id FROM orders WHERE status = 'expired' AND expired_at IS NOT NULL ORDER BY order_id",
  );
  expect(stored.map((order: { id: string }) => order.id)).toEqual(['1', '3', '6']);
  expect((await shop.service.show(id)).stock).toBe(10);
});
