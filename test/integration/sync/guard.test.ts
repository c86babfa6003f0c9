/** Orders that Postgres refuses are removed from the backend, counted, and answered to the waiting buyer. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogPosition } from '../../../src/engine/contract.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { openDatabase, rows } from '../../../src/postgres/database.ts';
import { BY } from '../../support/author.ts';
import { breaker, intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { gate } from '../../support/gate.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { expectKept, expectWithinLimit, ordersOf, promisesOf, unitsSold } from '../../support/shop/truth.ts';

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
  test('is not sold: fitting orders are committed in log order, the others get sold_out', async () => {
    const sale = await shop.sell({ stock: 50, segments: 1 });
    await shop.db.raw('UPDATE sales SET stock = 30');
    const till = await shop.startEngine();
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

  test('a thousand refused orders are removed, and each buyer gets an answer', async () => {
    const names = buyers(1_200);
    const sale = await shop.sell({ stock: names.length, segments: 4 });
    await shop.db.raw('UPDATE sales SET stock = 100');
    const till = await shop.startEngine({ requestDeadlineMs: 150_000 });
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

  test('of one sale does not delay the orders of another in the same transaction', async () => {
    const [tampered, sound] = [
      await shop.sell({ stock: 5, segments: 2 }),
      await shop.sell({ stock: 5, segments: 2 }),
    ];
    await shop.db.raw('UPDATE sales SET stock = 2 WHERE id = ?', [tampered.id]);
    const till = await shop.startEngine();
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

/** Verify finds only the record that was removed, and a repair restores it. */
async function expectOnlyForgotten(saleId: string, buyerId: string): Promise<void> {
  expect(await shop.service.verify(saleId)).toMatchObject({
    ok: false,
    rejectedOrders: 1,
    identities: [{ difference: 0 }, { difference: 0 }],
    differences: [
      { cause: 'foreign_redis', what: expect.stringContaining(`of buyer ${buyerId}: it was removed`) },
    ],
  });
  expect(await shop.service.verify(saleId, { repair: true })).toMatchObject({ ok: true, rejectedOrders: 1 });
}

describe('a buyer who is missing in the backend', () => {
  test.each([1, 5])(
    'gets nothing above the limit of %i, and the others of the batch get theirs',
    async (limit) => {
      const sale = await shop.sell({ stock: 100, segments: 2, perBuyerLimit: limit });
      const sync = await shop.startSync();
      const till = await shop.startEngine();
      const first = await till.buy(sale.id, 'anna', { quantity: limit });
      expect(first.code).toBe('committed');
      await sync.stop();
      await keys.forgetBuyer(sale.id, 2, 'anna');
      const [version] = await shop.backend.sales.versions([sale.id]);

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
      expect((await shop.backend.sales.versions([sale.id]))[0]!.epoch).toBeGreaterThan(version!.epoch);
      for (const segment of [0, 1]) expect(await recordOf(sale.id, segment, 'anna')).toEqual([]);
      await expectOnlyForgotten(sale.id, 'anna');
      expect(await rows(shop.db, 'SELECT units FROM stock_returns WHERE applied_at IS NOT NULL')).toEqual([
        { units: 1 },
      ]);
    },
  );

  test('gets nothing above a raised limit, counting orders from before and after it', async () => {
    const sale = await shop.sell({ stock: 20, segments: 1 });
    await shop.startSync();
    const till = await shop.startEngine();
    const first = await till.buy(sale.id, 'anna');
    await shop.service.change(sale.id, { action: 'edit', perBuyerLimit: 2 }, BY);
    await keys.forgetBuyer(sale.id, 1, 'anna');
    const second = await till.buy(sale.id, 'anna');
    expect([first.code, second.code]).toEqual(['committed', 'committed']);
    await keys.forgetBuyer(sale.id, 1, 'anna');
    const outcomes = await till.buyAll(sale.id, ['anna', 'ben']);
    expect(outcomes).toMatchObject([{ code: 'limit_reached', limit: 2 }, { code: 'committed' }]);
    const orders = await ordersOf(shop.databaseUrl, sale.id);
    expectKept(promisesOf([first, second, ...outcomes], ['anna', 'anna', 'anna', 'ben']), orders);
    expectWithinLimit(orders, 2);
  });

  test('and repeats the old key gets no second order', async () => {
    const sale = await shop.sell({ stock: 10, perBuyerLimit: 5, segments: 1 });
    await shop.startSync();
    const till = await shop.startEngine();
    expect((await till.buy(sale.id, 'anna', { key: 'k' })).code).toBe('committed');
    await keys.forgetBuyer(sale.id, 1, 'anna');
    expect((await till.buy(sale.id, 'anna', { key: 'k' })).code).toBe('limit_reached');
    expect(unitsSold(await ordersOf(shop.databaseUrl, sale.id))).toBe(1);
  });

  test('does not keep the last unit from buyers who got sold_out', async () => {
    const sale = await shop.sell({ stock: 2, segments: 4 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    expect((await till.buy(sale.id, 'anna')).code).toBe('committed');
    await sync.stop();
    await keys.forgetBuyer(sale.id, 4, 'anna');
    const again = till.buy(sale.id, 'anna');
    await until(async () => (await keys.left(sale.id, 4)) === 0, { what: 'the last unit is taken' });
    expect((await till.buy(sale.id, 'ben')).code).toBe('sold_out');
    await shop.startSync();
    expect((await again).code).toBe('limit_reached');
    await until(async () => (await till.buy(sale.id, 'ben', { key: 'until-sold' })).code === 'committed', {
      what: 'the unit is sold to another',
    });
    expect(unitsSold(await ordersOf(shop.databaseUrl, sale.id))).toBe(2);
    await expectOnlyForgotten(sale.id, 'anna');
  });
});

describe('a refused order, and the next batch', () => {
  /**
   * The second order of anna is refused. When her batch holds its locks, the next one, with cleo's order, comes and waits
   * for them; so it is committed right behind, while anna's order is still in the stock's record.
   */
  async function overtaken(compensate: (call: string) => unknown) {
    const sale = await shop.sell({ stock: 10, segments: 1 });
    const first = await shop.startSync();
    const till = await shop.startEngine();
    expect((await till.buy(sale.id, 'anna')).code).toBe('committed');
    await first.stop();
    await keys.forgetBuyer(sale.id, 1, 'anna');
    const refused = till.buyAll(sale.id, ['ben', 'anna']);
    await until(async () => (await keys.left(sale.id, 1)) === 7, { what: 'two units are taken' });
    const behind = till.buy(sale.id, 'cleo');
    await until(async () => (await keys.left(sale.id, 1)) === 6, { what: 'another unit is taken' });

    const proxy = await TcpProxy.start(Number(new URL(shop.databaseUrl).port));
    const db = openDatabase({ url: proxy.through(shop.databaseUrl), maxConnections: 8 });
    ends.push(
      () => db.destroy(),
      () => proxy.stop(),
    );
    const { held } = proxy.hold((request) => request.includes("'rejected', s.per_buyer_limit"));
    const backend = intercept(shop.backend, (call, [positions]) => {
      const isNext = call === 'log.readLog' && (positions as LogPosition[])[0]?.seq === 2;
      return isNext ? held : compensate(call);
    });
    const sync = await shop.startSync({ db, backend, batchRows: 2 });
    ends.unshift(() => sync.stop());
    await until(() => shop.isBlocked(), { what: 'the next batch waits for the locks' });
    await proxy.release();
    await until(async () => (await ordersOf(shop.databaseUrl, sale.id)).size === 4, {
      what: 'both batches are in Postgres',
    });
    return { sale, sync, refused, behind };
  }

  const ends: (() => Promise<unknown>)[] = [];

  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  test('its buyer gets no commit while the order is being removed', async () => {
    const { open, opened } = gate();
    const { sale, refused, behind } = await overtaken((call) =>
      call === 'log.compensate' ? opened : undefined,
    );
    const told = refused.then((outcomes) => outcomes.map(({ code }) => code));
    // Enough round trips for the next batch to be announced, if it did not wait.
    for (let i = 0; i < 50; i++) await keys.entries(sale.id, 1);
    open();
    expect(await told).toEqual(['committed', 'limit_reached']);
    expect((await behind).code).toBe('committed');
    await expectOnlyForgotten(sale.id, 'anna');
  });

  test('its buyer gets no commit if the loop restarts before the order is removed', async () => {
    const { before, repair } = breaker('log.compensate');
    const { sale, sync, refused, behind } = await overtaken(before);
    await until(() => sync.seen.crashes.length >= 2, { what: 'sync has tried again' });
    repair();
    expect((await refused).map(({ code }) => code)).toEqual(['committed', 'limit_reached']);
    expect((await behind).code).toBe('committed');
    await expectOnlyForgotten(sale.id, 'anna');
  });
});
