/** Each change of an order or a place that gets the lock of its row after its latest time is refused, and changes nothing. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expireOrders } from '../../../src/orders/expire-orders.ts';
import { changeOrder, settleLatePayment } from '../../../src/orders/order-changes.ts';
import { editOrder } from '../../../src/orders/order-edits.ts';
import { type Database, rows } from '../../../src/postgres/database.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import { leaveQueue } from '../../../src/queue/places.ts';
import { BY } from '../../support/author.ts';
import { expectRefusedIfLate } from '../../support/shop/late-change.ts';
import { QUEUE, queued } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

const ORDER = '1001';
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
  await expectRefusedIfLate(shop, {
    locked: ['orders', 'places'],
    // Each tells what it has made.
    change: async (latestMs) => expect(await change(shop.db, latestMs)).toBeDefined(),
    everything,
  });
});
