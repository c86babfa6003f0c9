/** The guard of the truth: what Postgres refuses is taken back, counted, and told to the buyer who waits. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { homeSegment } from '../../src/engine/home-segment.ts';
import { rows } from '../../src/sync/database.ts';
import { until } from '../support/fixtures.ts';
import { RedisKeys } from '../support/redis-keys.ts';
import { buyers, Shop } from '../support/shop.ts';
import { expectKept, expectWithinLimit, ordersOf, promisesOf, unitsSold } from '../support/truth.ts';

let shop: Shop;
let keys: RedisKeys;

beforeEach(async () => {
  shop = await Shop.open();
  keys = new RedisKeys(shop);
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

const count = (codes: readonly { code: string }[], code: string) =>
  codes.filter((outcome) => outcome.code === code).length;

const recordOf = async (saleId: string, segment: number, buyerId: string) =>
  (await shop.backend.sales.recall({ saleId, segment, generation: 1 }, [buyerId])).holdings[0]!.orders;

describe('stock that Postgres does not have', () => {
  test('is not sold: those that fit are committed in log order, the others are told that it is sold out', async () => {
    const sale = await shop.sell({ stock: 50, segments: 1 });
    await shop.db.raw('UPDATE sales SET stock = 30');
    const till = await shop.startEngine({ requestDeadlineMs: 10_000 });
    const names = buyers(50);
    const waiting = till.buyAll(sale.id, names);
    await until(async () => (await keys.left(sale.id, 1)) === 0, { what: 'all units are taken' });
    const sync = await shop.startSync();
    const outcomes = await waiting;

    expect(count(outcomes, 'committed')).toBe(30);
    expect(outcomes.slice(0, 30).every(({ code }) => code === 'committed')).toBe(true);
    expect(count(outcomes, 'sold_out')).toBe(20);
    const orders = await ordersOf(shop.databaseUrl, sale.id);
    expectKept(promisesOf(outcomes, names), orders);
    expect(unitsSold(orders)).toBe(30);
    const rejected = [...orders.values()].filter(({ status }) => status === 'rejected');
    expect(rejected.map(({ buyerId }) => buyerId).sort()).toEqual(names.slice(30).sort());
    expect(sync.seen.rejections.map(({ reason }) => reason)).toEqual(Array(20).fill('stock'));

    for (const { buyerId } of rejected) expect(await recordOf(sale.id, 0, buyerId)).toEqual([]);
    expect(await keys.left(sale.id, 1)).toBe(0);
    expect((await till.buy(sale.id, 'late')).code).toBe('sold_out');
    expect(await shop.service.verify(sale.id)).toMatchObject({ ok: false, rejectedOrders: 20 });
  });

  test('a thousand refused orders are taken back, and each buyer is told', async () => {
    const names = buyers(1_200);
    const sale = await shop.sell({ stock: names.length, segments: 4 });
    await shop.db.raw('UPDATE sales SET stock = 100');
    const till = await shop.startEngine({ requestDeadlineMs: 30_000 });
    const waiting = till.buyAll(sale.id, names);
    await until(async () => (await keys.left(sale.id, 4)) === 0, { what: 'all units are taken' });
    const sync = await shop.startSync({ batchRows: names.length });
    const outcomes = await waiting;
    expect([count(outcomes, 'committed'), count(outcomes, 'sold_out')]).toEqual([100, 1_100]);
    expect(sync.seen.rejections).toHaveLength(1_100);
    const open = await rows(shop.db, 'SELECT order_id FROM stock_returns WHERE applied_at IS NULL');
    expect(open).toEqual([]);
    const orders = await ordersOf(shop.databaseUrl, sale.id);
    const rejected = [...orders.values()].filter(({ status }) => status === 'rejected');
    const records = await Promise.all(
      rejected.map(({ buyerId }) => recordOf(sale.id, homeSegment(buyerId, 4), buyerId)),
    );
    expect(records.flat()).toEqual([]);
  });

  test('of one sale does not hold up the orders of another in the same transaction', async () => {
    const [tampered, sound] = [
      await shop.sell({ stock: 5, segments: 2 }),
      await shop.sell({ stock: 5, segments: 2 }),
    ];
    await shop.db.raw('UPDATE sales SET stock = 2 WHERE id = ?', [tampered.id]);
    const till = await shop.startEngine({ requestDeadlineMs: 10_000 });
    const waiting = [tampered, sound].map(({ id }) => till.buyAll(id, buyers(5)));
    await until(async () => (await keys.left(tampered.id, 2)) === 0 && (await keys.left(sound.id, 2)) === 0, {
      what: 'all units are taken',
    });
    await shop.startSync();
    const [bad, good] = await Promise.all(waiting);
    expect([count(bad!, 'committed'), count(bad!, 'sold_out')]).toEqual([2, 3]);
    expect(count(good!, 'committed')).toBe(5);
    expect(await shop.service.verify(sound.id)).toMatchObject({ ok: true, rejectedOrders: 0 });
  });
});

describe('a buyer whom the stock has forgotten', () => {
  test.each([1, 5])(
    'gets nothing above the limit of %i, and the others of the batch get theirs',
    async (limit) => {
      const sale = await shop.sell({ stock: 100, segments: 2, perBuyerLimit: limit });
      const sync = await shop.startSync();
      const till = await shop.startEngine({ requestDeadlineMs: 10_000 });
      const first = await till.buy(sale.id, 'anna', { quantity: limit });
      expect(first.code).toBe('committed');
      await sync.stop();
      await keys.forgetBuyer(sale.id, 2, 'anna');
      const [pulse] = await shop.backend.sales.pulse([sale.id]);

      const names = [...buyers(10), 'anna', ...buyers(10, 'other')];
      const waiting = till.buyAll(sale.id, names);
      await until(async () => (await keys.left(sale.id, 2)) === 100 - limit - 21, { what: 'all have taken' });
      const second = await shop.startSync();
      const outcomes = await waiting;
      expect(outcomes[10]).toMatchObject({ code: 'limit_reached', limit });
      expect(count(outcomes, 'committed')).toBe(20);

      const orders = await ordersOf(shop.databaseUrl, sale.id);
      expectKept(promisesOf([first, ...outcomes], ['anna', ...names]), orders);
      expectWithinLimit(orders, limit);
      expect(second.seen.rejections).toMatchObject([{ saleId: sale.id, reason: 'limit' }]);
      // The unit was never sold, and is there for others.
      expect(await keys.left(sale.id, 2)).toBe(100 - limit - 20);
      expect((await shop.backend.sales.pulse([sale.id]))[0]!.epoch).toBeGreaterThan(pulse!.epoch);
      for (const segment of [0, 1]) expect(await recordOf(sale.id, segment, 'anna')).toEqual([]);
      expect(await shop.service.verify(sale.id)).toMatchObject({ ok: true, rejectedOrders: 1 });
      expect(await rows(shop.db, 'SELECT units FROM stock_returns WHERE applied_at IS NOT NULL')).toEqual([
        { units: 1 },
      ]);
    },
  );

  test('and who asks for it with his old key is told of no second order', async () => {
    const sale = await shop.sell({ stock: 10, perBuyerLimit: 5, segments: 1 });
    await shop.startSync();
    const till = await shop.startEngine();
    expect((await till.buy(sale.id, 'anna', { key: 'k' })).code).toBe('committed');
    await keys.forgetBuyer(sale.id, 1, 'anna');
    expect((await till.buy(sale.id, 'anna', { key: 'k' })).code).toBe('limit_reached');
    expect(unitsSold(await ordersOf(shop.databaseUrl, sale.id))).toBe(1);
  });

  test('does not keep the last unit from those who were told that it is sold out', async () => {
    const sale = await shop.sell({ stock: 2, segments: 4 });
    const sync = await shop.startSync();
    const till = await shop.startEngine({ requestDeadlineMs: 10_000 });
    expect((await till.buy(sale.id, 'anna')).code).toBe('committed');
    await sync.stop();
    await keys.forgetBuyer(sale.id, 4, 'anna');
    const again = till.buy(sale.id, 'anna');
    await until(async () => (await keys.left(sale.id, 4)) === 0, { what: 'the last unit is taken' });
    expect((await till.buy(sale.id, 'ben')).code).toBe('sold_out');
    await shop.startSync();
    expect((await again).code).toBe('limit_reached');
    await until(async () => (await till.buy(sale.id, 'ben')).code === 'committed', {
      what: 'the unit is sold to another',
    });
    expect(unitsSold(await ordersOf(shop.databaseUrl, sale.id))).toBe(2);
    expect(await shop.service.verify(sale.id)).toMatchObject({ ok: true, rejectedOrders: 1 });
  });
});
