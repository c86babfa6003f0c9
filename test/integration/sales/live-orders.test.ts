/** The number of live orders in a sale's row: counted once, kept by what commits and ends orders, in every order of events. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { countLiveOrders } from '../../../src/sales/live-orders.ts';
import { seed } from '../../support/fixtures.ts';
import { untilBlocked } from '../../support/postgres/blocked.ts';
import { random } from '../../support/random.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;
let saleId: string;
let orderIds = 0;

beforeEach(async () => {
  shop = await Shop.open();
  ({ id: saleId } = await shop.sell({ stock: 10_000, perBuyerLimit: 3 }));
});

afterEach(() => shop[Symbol.asyncDispose]());

/** Commits orders as sync does, with no cursor to move. @returns their ids */
async function commit(orders: number): Promise<number[]> {
  const ids = Array.from({ length: orders }, () => ++orderIds);
  await shop.db.raw(
    `SELECT stockade_apply_batch(ARRAY[?], ARRAY[?::bigint], '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
       ?::bigint[], array_fill(1, ARRAY[?::integer]), ?::text[], array_fill(1, ARRAY[?::integer]), NULL)`,
    [saleId, orders, `{${ids}}`, orders, `{${ids.map((id) => `buyer-${id}`)}}`, orders],
  );
  return ids;
}

const cancel = (id: number) => shop.db.raw("SELECT stockade_change_order(?, 'cancel', NULL, NULL)", [id]);
const forget = () => shop.db.raw('UPDATE sales SET live_orders = NULL WHERE id = ?', [saleId]);

async function numbers(): Promise<{ row: string | null; orders: string }> {
  const [found] = await rows<{ row: string | null; orders: string }>(
    shop.db,
    `SELECT live_orders AS row, (SELECT count(*) FROM orders o WHERE o.sale_id = s.id
       AND o.status IN ('unpaid', 'paid', 'redeemed')) AS orders FROM sales s WHERE id = ?`,
    [saleId],
  );
  return found!;
}

test('commits and returns keep the number of a counted sale, and count no other sale', async () => {
  const [first] = await commit(3);
  await cancel(first!);
  expect(await numbers()).toEqual({ row: '2', orders: '2' });
  await forget();
  const [another] = await commit(2);
  await cancel(another!);
  expect(await numbers()).toEqual({ row: null, orders: '3' });
  expect(await countLiveOrders(shop.db, saleId)).toBe(3);
  expect(await numbers()).toEqual({ row: '3', orders: '3' });
});

test('a status counts a sale that was not counted; the next status does not count again', async () => {
  await commit(4);
  await forget();
  expect(await shop.service.show(saleId)).toMatchObject({ committedOrders: 4, committedUnits: 4 });
  expect((await numbers()).row).toBe('4');
});

const changes: [string, () => Promise<unknown>][] = [
  ['a commit', () => commit(5)],
  ['a return', async () => cancel(orderIds)],
];
for (const [what, change] of changes) {
  test.each(['count', 'change'])(
    `${what} beside the count, which both wait for the row; first in line: %s`,
    async (first) => {
      await commit(7);
      await forget();
      const row = await shop.lockRow(saleId);
      const works = [() => countLiveOrders(shop.db, saleId), change];
      const ends: Promise<unknown>[] = [];
      for (const work of first === 'count' ? works : works.reverse()) {
        ends.push(work());
        await untilBlocked(shop.db, ends.length);
      }
      await row.unlock();
      await Promise.all(ends);
      const { row: counted, orders } = await numbers();
      expect(counted).toBe(orders);
    },
  );
}

test('a count that begins when orders are written and the row is not locked yet', async () => {
  await commit(2);
  await forget();
  const batch = await shop.db.transaction();
  await batch.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer) VALUES (?, ?, 'late', 1, false)`,
    [++orderIds, saleId],
  );
  await countLiveOrders(shop.db, saleId);
  await batch.raw('UPDATE sales SET stock = stock - 1, live_orders = live_orders + 1 WHERE id = ?', [saleId]);
  await batch.commit();
  expect(await numbers()).toEqual({ row: '3', orders: '3' });
});

test('counts, commits and returns at random end with the right number', async () => {
  const dice = random(seed());
  await commit(20);
  const live = [...Array(20).keys()].map((i) => orderIds - i);
  await forget();
  const works = Array.from({ length: 120 }, () => {
    const kind = dice.whole(0, 3);
    if (kind === 0) return countLiveOrders(shop.db, saleId);
    if (kind === 1) return cancel(dice.pick(live));
    if (kind === 2) return forget();
    return commit(dice.whole(1, 5));
  });
  await Promise.all(works);
  const { row, orders } = await numbers();
  expect([null, orders]).toContain(row);
  await countLiveOrders(shop.db, saleId);
  expect(await numbers()).toEqual({ row: orders, orders });
});

test('verify compares the number with the orders, and a repair counts again', async () => {
  await commit(3);
  await shop.db.raw('UPDATE sales SET live_orders = 5 WHERE id = ?', [saleId]);
  const report = await shop.service.verify(saleId);
  expect(report.findings.filter((text) => text.includes('its row says 5'))).toHaveLength(1);
  await shop.service.verify(saleId, { repair: true });
  expect(await numbers()).toEqual({ row: '3', orders: '3' });
});
