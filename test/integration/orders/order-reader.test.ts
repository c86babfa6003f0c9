/** Orders and sales as Postgres has them: which are listed, and in which order. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { RefundQuery } from '../../../src/operations/order-list.ts';
import { readNotedOrder, readOrder, readRefundsDue } from '../../../src/orders/order-reader.ts';
import { readRecentSales } from '../../../src/orders/recent-sales.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
});

afterAll(() => shop[Symbol.asyncDispose]());

beforeEach(() => query(asAdmin(shop.databaseUrl), 'TRUNCATE sales, orders, order_changes CASCADE'));

interface SaleRow {
  readonly state?: 'open' | 'paused' | 'closed';
  readonly generation?: number;
  /** Hours since it was created. */
  readonly age?: number;
  readonly archived?: boolean;
  readonly deleting?: boolean;
}

async function insertSale(id: string, spec: SaleRow = {}): Promise<void> {
  const { state = 'open', generation = 1, age = 0, archived = false, deleting = false } = spec;
  await shop.db.raw(
    `INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, metadata, state, generation,
       created_at, archived_at, deleting_since)
     SELECT ?, '', 1, 1, 2, 1, now(), '{}', ?, ?, date_trunc('day', now()) - make_interval(hours => ?),
       CASE WHEN ? THEN now() END, CASE WHEN ? THEN now() END`,
    [id, state, generation, age, archived, deleting],
  );
}

/** @param dueAt seconds after a fixed time; `undefined`: no refund is due */
async function insertOrder(orderId: number, saleId: string, dueAt?: number, refunded = false): Promise<void> {
  await shop.db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer, refund_due_at, refunded_at)
     VALUES (?, ?, 'ann', 1, 'expired', false, timestamptz '2026-11-27Z' + make_interval(secs => ?),
       CASE WHEN ? THEN now() END)`,
    [orderId, saleId, dueAt ?? null, refunded],
  );
}

const ids = (orders: readonly { readonly orderId: string }[]) => orders.map(({ orderId }) => orderId);

test('sales whose logs may hold orders: those that still sell first, the newest first, none that has no log', async () => {
  await insertSale('closed-old', { state: 'closed', age: 9 });
  await insertSale('closed-new', { state: 'closed', age: 1 });
  await insertSale('paused', { state: 'paused', age: 6, generation: 4 });
  await insertSale('open-b', { age: 7 });
  await insertSale('open-a', { age: 7 });
  await insertSale('open-new', { age: 3 });
  await insertSale('never-built', { generation: 0 });
  await insertSale('never-built-and-closed', { generation: 0, state: 'closed' });
  await insertSale('archived', { state: 'closed', archived: true });
  const found = await readRecentSales(shop.db);
  expect(found.map(({ id }) => id)).toEqual([
    ...['open-new', 'paused', 'open-a', 'open-b'],
    ...['closed-new', 'closed-old'],
  ]);
  expect(found[1]).toEqual({ id: 'paused', segments: 2, generation: 4 });
});

test('sales whose logs may hold orders are a bounded number, and the newest', async () => {
  await shop.db.raw(
    `INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, metadata, state, generation, created_at)
     SELECT state || '-' || n, '', 1, 1, 1, 1, now(), '{}', state, 1, now() - make_interval(mins => n)
     FROM generate_series(1, 1001) AS n, unnest(ARRAY['open', 'closed']) AS state`,
  );
  const open = await readRecentSales(shop.db);
  expect([open.length, open[0]!.id, open.at(-1)!.id]).toEqual([1_000, 'open-1', 'open-1000']);
  await shop.db.raw("UPDATE sales SET generation = 0 WHERE state = 'open'");
  const closed = await readRecentSales(shop.db);
  expect([closed.length, closed[0]!.id, closed.at(-1)!.id]).toEqual([1_000, 'closed-1', 'closed-1000']);
});

test('refunds that are due: the longest due first, of one sale or of all, none of a sale that is being deleted', async () => {
  for (const id of ['one', 'two']) await insertSale(id);
  await insertSale('leaving', { deleting: true });
  await insertOrder(1, 'one', 30);
  await insertOrder(2, 'two', 10);
  await insertOrder(4, 'one', 20);
  await insertOrder(3, 'one', 20);
  await insertOrder(5, 'one', 5, true);
  await insertOrder(6, 'one');
  await insertOrder(7, 'leaving', 1);
  const page = async (query: RefundQuery) => {
    const { orders, next } = await readRefundsDue(shop.db, query);
    return [...ids(orders), ...(next === undefined ? [] : [`after ${next}`])];
  };
  expect(await page({})).toEqual(['2', '3', '4', '1']);
  expect(await page({ saleId: 'one' })).toEqual(['3', '4', '1']);
  expect(await page({ saleId: 'leaving' })).toEqual([]);
  const { orders } = await readRefundsDue(shop.db, { saleId: 'two' });
  expect(orders).toMatchObject([{ refundDue: true, refundedAt: undefined }]);
  expect(await page({ limit: 2 })).toEqual(['2', '3', 'after 3']);
  expect(await page({ limit: 2, after: '3' })).toEqual(['4', '1']);
  expect(await page({ saleId: 'one', limit: 1, after: '3' })).toEqual(['4', 'after 4']);
  // The order that ends a page may be refunded before the next page is read.
  expect(await page({ after: '5' })).toEqual(['2', '3', '4', '1']);
  expect(await page({ after: '1' })).toEqual([]);
  for (const after of ['6', '99']) await expect(page({ after })).rejects.toThrow(/after is not an order/);
  expect(await readOrder(shop.db, '6')).toMatchObject({ orderId: '6', refundDue: undefined });
});

test('an order has the changes that operators have made to it, the oldest first', async () => {
  await insertSale('one');
  await insertOrder(1, 'one');
  await insertOrder(2, 'one');
  await insertOrder(3, 'one');
  await shop.db.raw(
    `INSERT INTO order_changes (order_id, changed_at, change, actor, reason)
     VALUES (1, '2026-11-27T12:00:02Z', 'redeem', 'eva', ''), (1, '2026-11-27T12:00:01Z', 'pay', 'ed', 'cash'),
       (1, '2026-11-27T12:00:03Z', 'refund', 'eva', 'torn'), (2, now(), 'cancel', 'eva', '')`,
  );
  expect((await readNotedOrder(shop.db, '1'))!.changes).toEqual([
    { change: 'pay', at: '2026-11-27T12:00:01.000Z', actor: 'ed', reason: 'cash' },
    { change: 'redeem', at: '2026-11-27T12:00:02.000Z', actor: 'eva', reason: '' },
    { change: 'refund', at: '2026-11-27T12:00:03.000Z', actor: 'eva', reason: 'torn' },
  ]);
  expect((await readNotedOrder(shop.db, '2'))!.changes).toHaveLength(1);
  expect((await readNotedOrder(shop.db, '3'))!.changes).toEqual([]);
});

test('an order is unknown without its row, and while its sale is being deleted', async () => {
  await insertSale('one');
  await insertOrder(1, 'one');
  await insertOrder(2, 'one');
  for (const read of [readOrder, readNotedOrder]) {
    expect(await read(shop.db, '1')).toMatchObject({ orderId: '1', saleId: 'one' });
    expect(await read(shop.db, '3')).toBeUndefined();
  }
  await shop.db.raw('UPDATE sales SET deleting_since = now()');
  for (const read of [readOrder, readNotedOrder]) expect(await read(shop.db, '1')).toBeUndefined();
});
