/** Each change of an order or a place that gets the lock of its row after its latest time is refused, and changes nothing. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { changeOrder, expireOrders, settleLatePayment } from '../../../src/orders/order-changes.ts';
import { editOrder } from '../../../src/orders/order-edits.ts';
import { type Database, rows } from '../../../src/postgres/database.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import { leaveQueue } from '../../../src/queue/places.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { QUEUE, queued } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

const ORDER = '1001';
/** Long enough that a change is in Postgres by then, and waits. */
const IN_TIME_MS = 2_000;

let shop: Shop;
let saleId: string;

beforeEach(async () => {
  shop = await Shop.open({ backend: 'memory' });
  ({ id: saleId } = await shop.sell({ stock: 10, payWithinSeconds: 60, ...QUEUE }));
  const [number] = await queued(shop, saleId, ['anna']);
  await shop.db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, expires_at, offer_of)
     VALUES (?, ?, 'anna', 1, true, now() + interval '1 minute', ?)`,
    [ORDER, saleId, number!],
  );
  await shop.db.raw('UPDATE sales SET stock = stock - 1 WHERE id = ?', [saleId]);
});

afterEach(() => shop[Symbol.asyncDispose]());

/** It is no offer any more. */
const plain = () => shop.db.raw('UPDATE orders SET offer_of = NULL');
const offered = () => shop.db.raw("UPDATE places SET state = 'offered', order_id = ?", [ORDER]);
const expired = async () => {
  await plain();
  await shop.db.raw('UPDATE orders SET expires_at = now()');
  await expireOrders(shop.db, 10);
};

const pay = { orderId: ORDER, kind: 'pay', payType: 'card' } as const;
const late = { late: ORDER, payType: 'card' } as const;

type Change = (db: Database, latestMs: number) => Promise<unknown>;

const CHANGES: [string, () => Promise<unknown>, Change][] = [
  ['a payment', plain, (db, latestMs) => changeOrder(db, { ...pay, by: 'anna', latestMs })],
  ['a payment by an operator', plain, (db, latestMs) => changeOrder(db, { ...pay, by: BY, latestMs })],
  [
    'a late payment',
    expired,
    (db, latestMs) => settleLatePayment(db, { ...late, by: 'anna', latestMs }, undefined),
  ],
  [
    'a late payment by an operator',
    expired,
    (db, latestMs) => settleLatePayment(db, { ...late, by: BY, latestMs }, undefined),
  ],
  ['an edit', plain, (db, latestMs) => editOrder(db, ORDER, { reference: 'new' }, { ...BY, latestMs })],
  [
    'an acceptance',
    offered,
    (db, latestMs) => acceptOffer(db, { orderId: ORDER, buyerId: 'anna', quantity: 1 }, latestMs),
  ],
  ['a leave', async () => {}, (db, latestMs) => leaveQueue(db, saleId, 'anna', { latestMs })],
  ['a leave with an offer', offered, (db, latestMs) => leaveQueue(db, saleId, 'anna', { latestMs })],
];

const everything = () =>
  rows(
    shop.db,
    `SELECT to_jsonb(o) AS found FROM orders o UNION ALL SELECT to_jsonb(p) FROM places p
     UNION ALL SELECT to_jsonb(s) FROM sales s UNION ALL SELECT to_jsonb(c) FROM order_changes c
     UNION ALL SELECT to_jsonb(e) FROM order_events e`,
  );

test.each(CHANGES)('%s', async (_, prepare, change) => {
  await prepare();
  const before = await everything();
  const lock = await shop.db.transaction();
  await lock.raw('SELECT 1 FROM orders FOR UPDATE');
  await lock.raw('SELECT 1 FROM places FOR UPDATE');
  const latestMs = monotonicMs() + IN_TIME_MS;
  const made = change(shop.db, latestMs).catch((error: unknown) => error);
  await until(() => shop.isBlocked(), { what: 'it waits for the lock' });
  await until(() => monotonicMs() > latestMs, { what: 'it is late' });
  await lock.rollback();
  expect(await made).toMatchObject({ code: 'timed_out' });
  expect(await everything()).toEqual(before);
  // In time it is made.
  expect(await change(shop.db, monotonicMs() + 60_000)).toBeDefined();
  expect(await everything()).not.toEqual(before);
});
