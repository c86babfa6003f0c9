/** Changes of one order run one after the other: the second is decided by the result of the first. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expireOrders } from '../../../src/orders/expire-orders.ts';
import { changeOrder, settleLatePayment } from '../../../src/orders/order-changes.ts';
import { rows } from '../../../src/postgres/database.ts';
import { until } from '../../support/fixtures.ts';
import { Shop } from '../../support/shop/shop.ts';

const ORDER = '1001';

let shop: Shop;
let saleId: string;

beforeEach(async () => {
  shop = await Shop.open({ backend: 'memory' });
  ({ id: saleId } = await shop.sell({ stock: 10, payWithinSeconds: 60 }));
  await order(ORDER, 'anna');
});

afterEach(() => shop[Symbol.asyncDispose]());

/** An order that only Postgres has. */
async function order(orderId: string, buyerId: string): Promise<void> {
  await shop.db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, expires_at)
     VALUES (?, ?, ?, 1, true, now() + interval '1 minute')`,
    [orderId, saleId, buyerId],
  );
  await shop.db.raw('UPDATE sales SET stock = stock - 1 WHERE id = ?', [saleId]);
}

type Kind = 'pay' | 'cancel' | 'redeem' | 'refund';

const request = (orderId: string, kind: Kind) => ({
  ...{ orderId, kind, by: 'anna' },
  payType: kind === 'pay' ? ('card' as const) : undefined,
});

const change = async (kind: Kind) => (await changeOrder(shop.db, request(ORDER, kind)))!.verdict;

async function standing() {
  const [found] = await rows<{ status: string; stamps: number }>(
    shop.db,
    `SELECT status, num_nonnulls(paid_at, cancelled_at, refunded_at, redeemed_at, expired_at) AS stamps
     FROM orders WHERE order_id = ?`,
    [ORDER],
  );
  const [sale] = await rows<{ stock: string }>(shop.db, 'SELECT stock FROM sales WHERE id = ?', [saleId]);
  return { ...found!, stock: Number(sale!.stock) };
}

/** `first` is done and not committed; `second` begins and has to wait; then the first one commits. */
async function oneInTheOther<T>(first: Kind, second: () => Promise<T>): Promise<T> {
  const trx = await shop.db.transaction();
  await trx.raw('SELECT stockade_change_order(?, ?, ?, NULL)', [
    ORDER,
    first,
    first === 'pay' ? 'card' : null,
  ]);
  let isOver = false;
  const end = second().finally(() => {
    isOver = true;
  });
  await until(async () => isOver || (await shop.isBlocked()), {
    what: 'the second one waits, or is through',
  });
  await trx.commit();
  return end;
}

describe('while one change of an order is not committed, another one waits', () => {
  test('a cancellation behind a payment finds the order paid', async () => {
    expect(await oneInTheOther('pay', () => change('cancel'))).toBe('wrong_status');
    expect(await standing()).toEqual({ status: 'paid', stamps: 1, stock: 9 });
  });

  test('a payment behind a cancellation finds the order cancelled', async () => {
    expect(await oneInTheOther('cancel', () => change('pay'))).toBe('wrong_status');
    expect(await standing()).toEqual({ status: 'cancelled', stamps: 1, stock: 10 });
  });

  test('two refunds: the second is answered as done, and the units return once', async () => {
    await change('pay');
    expect(await oneInTheOther('refund', () => change('refund'))).toBe('done');
    expect(await standing()).toEqual({ status: 'refunded', stamps: 2, stock: 10 });
  });

  test('a refund behind a redemption is refused', async () => {
    await change('pay');
    expect(await oneInTheOther('redeem', () => change('refund'))).toBe('wrong_status');
    expect(await standing()).toEqual({ status: 'redeemed', stamps: 2, stock: 9 });
  });

  test('expiry does not change the order', async () => {
    await shop.db.raw("UPDATE orders SET expires_at = now() + interval '1 second' WHERE order_id = ?", [
      ORDER,
    ]);
    const trx = await shop.db.transaction();
    await trx.raw("SELECT stockade_change_order(?, 'pay', 'card', NULL)", [ORDER]);
    await until(
      async () => (await rows(shop.db, 'SELECT 1 FROM orders WHERE expires_at <= now()')).length === 1,
      { what: 'its time is over' },
    );
    expect((await expireOrders(shop.db, 10)).orderIds).toEqual([]);
    await trx.commit();
    expect((await expireOrders(shop.db, 10)).orderIds).toEqual([]);
    expect(await standing()).toEqual({ status: 'paid', stamps: 1, stock: 9 });
  });
});

test('two settlements of a late payment at once: the first decides, and surplus units are returned', async () => {
  await shop.db.raw('UPDATE orders SET expires_at = now() WHERE order_id = ?', [ORDER]);
  await expireOrders(shop.db, 10);
  await order('1002', 'anna');
  const trx = await shop.db.transaction();
  await trx.raw("SELECT stockade_settle_late_payment(?, NULL, 'card')", [ORDER]);
  let isOver = false;
  const payment = { late: ORDER, payType: 'card', by: 'anna' } as const;
  const second = settleLatePayment(shop.db, payment, '1002').finally(() => {
    isOver = true;
  });
  await until(async () => isOver || (await shop.isBlocked()), {
    what: 'the second one waits, or is through',
  });
  await trx.commit();
  expect((await second)?.verdict).toBe('refund_due');
  const [taken] = await rows<{ status: string }>(
    shop.db,
    "SELECT status FROM orders WHERE order_id = '1002'",
  );
  expect(taken!.status).toBe('cancelled');
  expect(await standing()).toMatchObject({ status: 'expired', stock: 10 });
});
