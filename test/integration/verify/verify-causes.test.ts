/** Verify names the cause of each difference; a repair corrects those that are proven, and nothing else. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import type { Cause, Repair, VerifyReport } from '../../../src/operations/sale-operations.ts';
import { applyReturns } from '../../../src/orders/returns.ts';
import { rows } from '../../../src/postgres/database.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { verifySale } from '../../../src/verify/verify.ts';
import { BY } from '../../support/author.ts';
import { breaker, deathAt, intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { cutOffAt } from '../../support/shop/cut-off.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { acceptFour, soldSix } from '../../support/shop/sold-sales.ts';
import { query } from '../../support/shop/truth.ts';

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

const causes = ({ differences }: VerifyReport) => differences.map(({ cause }) => cause);
const repair = (saleId: string) => shop.service.verify(saleId, { repair: true });
const repaired = (cause: Cause, what: RegExp): Repair => ({
  ...{ cause, done: true },
  what: expect.stringMatching(what) as unknown as string,
});
const leftAlone = (cause: Cause, what: RegExp): Repair => ({ ...repaired(cause, what), done: false });

async function orders(saleId: string): Promise<{ id: string; buyer: string }[]> {
  return rows(
    shop.db,
    'SELECT order_id::text AS id, buyer_id AS buyer FROM orders WHERE sale_id = ? ORDER BY orders.order_id',
    [saleId],
  );
}

/** Whether the whole stock is sold to new buyers, and not a unit more. */
async function sellsOut(saleId: string, unsold: number): Promise<void> {
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  const outcomes = await till.buyAll(saleId, buyers(unsold + 5, 'late'));
  expect(outcomes.filter(({ code }) => code === 'committed')).toHaveLength(unsold);
  await sync.stop();
  expect(await shop.service.verify(saleId)).toMatchObject({ ok: true, differences: [], rejectedOrders: 0 });
}

describe('work under way is no fault', () => {
  test('orders that are only in the logs are in flight', async () => {
    const id = await soldSix(shop);
    await acceptFour(shop, id);
    const report = await repair(id);
    expect(report).toMatchObject({ ok: true, findings: [], repairs: [] });
    expect(report.differences).toEqual([
      { cause: 'in_flight', units: 4, isFault: false, what: '4 units are taken and not in Postgres yet' },
    ]);
  });

  test('a return that died before the segment had it: a repair applies it', async () => {
    const id = await soldSix(shop);
    await cancelAndDie(id);
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({ ok: true, findings: [], differences: [{ units: 1 }] });
    expect(causes(report)).toEqual(['return_pending']);
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [] },
      repairs: [repaired('return_pending', /^applied the pending returns$/)],
    });
    await sellsOut(id, 15);
  });

  test('a return that died before it was marked: its unit counts once', async () => {
    const id = await soldSix(shop);
    await cancelOrder(id);
    await shop.db.raw('UPDATE stock_returns SET applied_at = NULL');
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({ ok: true, differences: [{ cause: 'return_pending', units: 0 }] });
    expect(report.identities.map(({ difference }) => difference)).toEqual([0, 0]);
    expect(await repair(id)).toMatchObject({ ok: true, differences: [] });
    await sellsOut(id, 15);
  });

  test.each([0, 1])('a top-up that died after %i credits: a repair credits the rest', async (credits) => {
    const id = await soldSix(shop);
    let made = 0;
    const { before, death } = deathAt((call) => call === 'sales.credit' && made++ === credits);
    const dying = new SaleService(shop.db, intercept(shop.backend, before), shop.locks);
    void dying.change(id, { action: 'top-up', units: 8 }, BY);
    await death;
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({ ok: true, findings: [] });
    expect(causes(report)).toEqual(['top_up_pending']);
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [] },
      repairs: [repaired('top_up_pending', /^applied the sale.s changes/)],
    });
    await sellsOut(id, 22);
  });

  test('a withdrawal that died is left alone while its process may live, and undone later', async () => {
    const id = await soldSix(shop);
    let made = 0;
    const { before, death } = deathAt((call) => call === 'sales.withdraw' && made++ === 1);
    const dying = new SaleService(shop.db, intercept(shop.backend, before), shop.locks);
    void dying.change(id, { action: 'withdraw', units: 6 }, BY);
    await death;
    const report = await repair(id);
    expect(report).toMatchObject({ ok: true, repairs: [leftAlone('withdrawal_pending', /under way/)] });
    expect(causes(report)).toEqual(['withdrawal_pending']);
    await shop.db.raw("UPDATE stock_movements SET moved_at = now() - interval '1 minute'");
    expect((await shop.service.verify(id)).differences[0]!.what).toMatch(/, for 6\d s$/);
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [] },
      repairs: [repaired('withdrawal_pending', /^undid the withdrawal/)],
    });
    await sellsOut(id, 14);
  });

  test('a pause that has not reached the segments is applied', async () => {
    const id = await soldSix(shop);
    const { before } = breaker('sales.setState');
    const failing = new SaleService(shop.db, intercept(shop.backend, before), shop.locks);
    await expect(failing.change(id, { action: 'pause' }, BY)).rejects.toThrow('as the test wants it');
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({ ok: true, findings: [] });
    expect(causes(report)).toEqual(['change_pending']);
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [] },
      repairs: [repaired('change_pending', /^applied the sale.s changes/)],
    });
    expect(await shop.backend.sales.read(id)).toMatchObject({ state: 'paused' });
  });

  test('a rebuild that died is reported without missing units, and finished', async () => {
    const id = await soldSix(shop);
    await acceptFour(shop, id);
    await shop.backend.sales.freeze(id, 2, 1);
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({ ok: false });
    expect(causes(report)).toEqual(['rebuild_pending']);
    expect(report.identities).toHaveLength(1);
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [], committedOrders: 10 },
      repairs: [
        repaired('rebuild_pending', /^built generation 2 from Postgres, 4 orders saved from the logs$/),
      ],
    });
    await sellsOut(id, 10);
  });
});

describe('a foreign write in Redis', () => {
  test.each([
    { write: 'HINCRBY left 5', off: 5, by: (key: string) => keys.redis.hincrby(key, 'left', 5) },
    { write: 'HINCRBY left -3', off: 3, by: (key: string) => keys.redis.hincrby(key, 'left', -3) },
    { write: 'HSET left 999', by: (key: string) => keys.redis.hset(key, 'left', 999) },
    { write: 'HSET left -4', by: (key: string) => keys.redis.hset(key, 'left', -4) },
    { write: 'HSET left many', by: (key: string) => keys.redis.hset(key, 'left', 'many') },
    { write: 'HDEL left', by: (key: string) => keys.redis.hdel(key, 'left') },
  ])('$write: corrected from the other counters and Postgres', async ({ by, off }) => {
    const id = await soldSix(shop);
    await acceptFour(shop, id);
    const { segment } = keys.of(id, 1);
    const before = await keys.redis.hget(segment, 'left');
    await by(segment);
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({ ok: false });
    expect(causes(report)).toEqual(['foreign_redis', 'in_flight']);
    if (off) expect(report.differences[0]!.units).toBe(off);
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, findings: [] },
      repairs: [
        repaired('foreign_redis', /^set units left of segment 1 to the value that the other counters give$/),
      ],
    });
    expect(await keys.redis.hget(segment, 'left')).toBe(before);
    await sellsOut(id, 10);
  });

  test('a repair that died before any board learned of the units is completed by the next one', async () => {
    const { id } = await shop.sell({ stock: 2, segments: 1 });
    await shop.startSync();
    const till = await shop.startEngine();
    expect((await till.buy(id, 'anna')).code).toBe('committed');
    await keys.redis.hincrby(keys.of(id, 0).segment, 'left', -1);
    expect((await till.buy(id, 'ben')).code).toBe('sold_out');
    // While a board is not confirmed in time, it gives no answer. So the epoch shows whether it learns of the units.
    const epoch = async () => (await shop.backend.sales.versions([id]))[0]!.epoch;
    const before = await epoch();
    const broken = breaker('sales.reopen');
    const dying = new SaleService(shop.db, intercept(shop.backend, broken.before), shop.locks);
    await expect(dying.verify(id, { repair: true })).rejects.toThrow(/sales.reopen fails/);
    expect(await epoch()).toBe(before);
    expect(await repair(id)).toMatchObject({ ok: true, repairs: [] });
    expect(await epoch()).toBeGreaterThan(before);
    await until(async () => (await till.buy(id, 'ben', { key: 'until-sold' })).code === 'committed', {
      what: 'ben can buy',
    });
  });

  test('units that were moved by hand from one segment to the other', async () => {
    const id = await soldSix(shop);
    await keys.redis.hincrby(keys.of(id, 0).segment, 'left', 4);
    await keys.redis.hincrby(keys.of(id, 1).segment, 'left', -4);
    const report = await repair(id);
    expect(report).toMatchObject({ ok: true, differences: [] });
    expect(report.repairs).toHaveLength(2);
    await sellsOut(id, 14);
  });

  test('units that version 0.1.0 has moved, and the receiver has sold', async () => {
    const { id } = await shop.sell({ stock: 4, segments: 2 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    await keys.redis.hincrby(keys.of(id, 0).segment, 'left', 2);
    await keys.redis.hincrby(keys.of(id, 1).segment, 'left', -2);
    const ofFirst = buyers(200).filter((buyer) => homeSegment(buyer, 2) === 0);
    for (const buyer of ofFirst.slice(0, 4)) expect((await till.buy(id, buyer)).code).toBe('committed');
    const supplied = repaired('foreign_redis', /^set units supplied of segment/);
    expect(await repair(id)).toMatchObject({ ok: true, differences: [], repairs: [supplied, supplied] });
    expect((await till.buy(id, ofFirst[4]!)).code).toBe('sold_out');
    await sync.stop();
  });

  test('units that version 0.1.0 has moved, and a unit that another program has added: no segment gets units that are sold', async () => {
    const { id } = await shop.sell({ stock: 4, segments: 2 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    await keys.redis.hincrby(keys.of(id, 0).segment, 'left', 2);
    await keys.redis.hincrby(keys.of(id, 1).segment, 'left', -2);
    const ofFirst = buyers(200).filter((buyer) => homeSegment(buyer, 2) === 0);
    for (const buyer of ofFirst.slice(0, 4)) expect((await till.buy(id, buyer)).code).toBe('committed');
    await sync.stop();
    const { segment } = keys.of(id, 1);
    await keys.redis.hincrby(segment, 'left', 1);
    const report = await repair(id);
    expect(report.repairs).toEqual([
      leftAlone('foreign_redis', /^left alone: segment 0: 0 units left, 4 taken, but 2 supplied/),
      leftAlone('foreign_redis', /^left alone: segment 1: 1 unit left, 0 taken, but 2 supplied/),
    ]);
    expect(await keys.redis.hget(segment, 'left')).toBe('1');
  });

  test('units left in two segments: a segment gets none if those of the other one have been sold meanwhile', async () => {
    const id = await soldSix(shop);
    const [more, fewer] = [keys.of(id, 0).segment, keys.of(id, 1).segment];
    await keys.redis.hincrby(more, 'left', 5);
    await keys.redis.hincrby(fewer, 'left', -2);
    const before = await keys.redis.hget(fewer, 'left');
    let corrections = 0;
    const isSold = async () => {
      const { left } = (await keys.redis.hgetall(more)) as { left: string };
      await keys.redis.hset(more, 'left', 0);
      await keys.redis.hincrby(more, 'taken', Number(left));
    };
    const late = (call: string) => (call === 'audits.correct' && corrections++ === 0 ? isSold() : undefined);
    const service = new SaleService(shop.db, intercept(shop.backend, late), shop.locks);
    const report = await service.verify(id, { repair: true });
    expect(report.repairs).toEqual([
      leftAlone('foreign_redis', /^left alone: the counters of segment 0 have changed meanwhile/),
      leftAlone(
        'foreign_redis',
        /^left alone, because another segment was not corrected: segment 1: .*: left was changed$/,
      ),
    ]);
    expect(await keys.redis.hget(fewer, 'left')).toBe(before);
  });

  test('supplied, proven by left and taken', async () => {
    const id = await soldSix(shop);
    await keys.redis.hincrby(keys.of(id, 0).segment, 'supplied', 4);
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [] },
      repairs: [repaired('foreign_redis', /^set units supplied of segment 0/)],
    });
    await sellsOut(id, 14);
  });

  test('left and taken together: nothing proves which is wrong, and neither is changed', async () => {
    const id = await soldSix(shop);
    const { segment } = keys.of(id, 0);
    await keys.redis.hincrby(segment, 'left', 4);
    await keys.redis.hincrby(segment, 'taken', 1);
    const before = await keys.redis.hgetall(segment);
    const report = await repair(id);
    expect(report).toMatchObject({ ok: false });
    expect(report.repairs!.every(({ done }) => !done)).toBe(true);
    expect(await keys.redis.hgetall(segment)).toEqual(before);
  });

  test('left and supplied together: no counter contradicts another, and the cause is unexplained', async () => {
    const id = await soldSix(shop);
    const { segment } = keys.of(id, 0);
    await keys.redis.hincrby(segment, 'left', 4);
    await keys.redis.hincrby(segment, 'supplied', 4);
    const report = await repair(id);
    expect(causes(report)).toEqual(['unexplained']);
    expect(report.differences[0]!.units).toBe(4);
    expect(report.repairs).toEqual([
      {
        ...{ cause: 'unexplained', done: false },
        what: `left alone: the segments were supplied with 4 units more than Postgres gave them, and no counter contradicts another. Nothing proves which store is right. Pause the sale, and find out which program writes to this Redis. If Postgres is right, \`stockade recover ${id}\` rebuilds the segments from it`,
      },
    ]);
  });

  test('sold units that never existed: the stock does not go below zero, and Postgres refuses them', async () => {
    const { id } = await shop.sell({ stock: 4, segments: 1 });
    await keys.redis.hincrby(keys.of(id, 0).segment, 'left', 2);
    const till = await shop.startEngine();
    await till.buyAll(id, buyers(6), { awaitCommit: false });
    const report = await repair(id);
    expect(causes(report)).toEqual(['foreign_redis', 'in_flight']);
    expect(report.repairs).toEqual([
      {
        ...{ cause: 'foreign_redis', done: false },
        what: `left alone: segment 0: 0 units left, 6 taken, but 4 supplied. The right value is not proven. \`stockade recover ${id}\` rebuilds the segments from Postgres and their logs; remove a key of another type before`,
      },
    ]);
    const sync = await shop.startSync();
    await until(() => sync.seen.rejections.length === 2, { what: 'Postgres refuses two' });
    await until(async () => (await shop.service.show(id)).committedOrders === 4, {
      what: 'and has the others',
    });
    await sync.stop();
    expect(await repair(id)).toMatchObject({ ok: true, differences: [], rejectedOrders: 2 });
  });

  test('HDEL of a buyer’s record: restored, so that the buyer can’t buy again', async () => {
    const id = await soldSix(shop);
    const [order] = await orders(id);
    await keys.forgetBuyer(id, 2, order!.buyer);
    const report = await shop.service.verify(id);
    expect(causes(report)).toEqual(['foreign_redis']);
    expect(report.findings[0]).toMatch(`order ${order!.id} of buyer ${order!.buyer}`);
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [] },
      repairs: [repaired('foreign_redis', /^restored 1 order in buyers' records$/)],
    });
    const till = await shop.startEngine();
    expect(await till.buy(id, order!.buyer)).toMatchObject({ code: 'limit_reached', orderIds: [order!.id] });
    await cancelOrder(id);
    await sellsOut(id, 15);
  });

  test('a record that is restored late, by a process whose session Postgres has ended, gets no order that was returned', async () => {
    const id = await soldSix(shop);
    const [order] = await orders(id);
    await keys.forgetBuyer(id, 2, order!.buyer);
    const late = cutOffAt(shop, 'audits.remember');
    const outcome = late.service.verify(id, { repair: true }).catch(() => 'failed');
    await late.losesSession('%FOR SHARE OF o%');
    expect(await repair(id)).toMatchObject({ ok: true });
    await cancelOrder(id);
    late.goOn();
    expect(await outcome).toBe('failed');
    const { generation } = await shop.service.show(id);
    const ref = { saleId: id, segment: homeSegment(order!.buyer, 2), generation };
    const { holdings } = await shop.backend.sales.recall(ref, [order!.buyer]);
    expect(holdings).toEqual([{ buyerId: order!.buyer, orders: [] }]);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, differences: [] });
  });

  test('a record missing when its order was returned: the unit is missing, and a rebuild restores it', async () => {
    const id = await soldSix(shop);
    const [order] = await orders(id);
    await keys.forgetBuyer(id, 2, order!.buyer);
    await cancelOrder(id);
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({ ok: false, differences: [{ cause: 'foreign_redis', units: 1 }] });
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [] },
      repairs: [repaired('foreign_redis', /^built generation 2 from Postgres/)],
    });
    await sellsOut(id, 15);
  });

  test('Redis loses a return, without purchases since: no take notices it, a repair restores it', async () => {
    const id = await soldSix(shop);
    const all = [0, 1].flatMap((segment) => Object.values(keys.of(id, segment)));
    const copy = await keys.dump(all);
    await cancelOrder(id);
    await keys.restore(all, copy);
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({
      ok: false,
      differences: [
        { cause: 'foreign_redis', units: 1 },
        { cause: 'foreign_redis', units: 0, what: expect.stringMatching(/although it has ended/) },
      ],
    });
    // It was marked as applied, so its unit does not explain the difference.
    expect(report.identities[1]!.right).toContainEqual({ name: 'returns not yet applied', units: 0 });
    expect(report.identities[1]!.difference).toBe(1);
    expect(await repair(id)).toMatchObject({ ok: true, differences: [] });
    await sellsOut(id, 15);
  });

  // The same number of units comes back while the stores are read.
  test.each([1, 2])(
    'Redis loses a return, and another one arrives before read %i of the segments',
    async (nth) => {
      const id = await soldSix(shop);
      const all = [0, 1].flatMap((segment) => Object.values(keys.of(id, segment)));
      const copy = await keys.dump(all);
      await cancelOrder(id);
      await keys.restore(all, copy);
      await cancelAndDie(id, 1);
      let reads = 0;
      const backend = intercept(shop.backend, async (call) => {
        if (call === 'audits.audit' && ++reads === nth) await applyReturns(shop.db, shop.backend, id);
      });
      const report = await verifySale(shop.db, backend, id);
      expect(reads).toBeGreaterThan(nth);
      expect(report).toMatchObject({
        ok: false,
        findings: [expect.stringMatching(/^1 returned unit is/), expect.anything()],
      });
      expect(await repair(id)).toMatchObject({ ok: true, differences: [] });
      await sellsOut(id, 16);
    },
  );

  test('all records of a segment: it is rebuilt if there are many, else they are restored', async () => {
    const id = await soldSix(shop);
    await keys.redis.del(keys.of(id, 0).buyers);
    expect(await repair(id)).toMatchObject({ ok: true, differences: [] });
    await sellsOut(id, 14);
  });

  test.each(['open', 'closed'])('a state of its own, %s, in one segment', async (state) => {
    const id = await soldSix(shop);
    await shop.service.change(id, { action: 'pause' }, BY);
    await keys.redis.hset(keys.of(id, 1).segment, 'state', state);
    const report = await repair(id);
    expect(report).toMatchObject({ ok: true, repairs: [repaired('foreign_redis', /the sale's state$/)] });
    expect(await keys.redis.hget(keys.of(id, 1).segment, 'state')).toBe('paused');
  });

  test.each([
    { key: 'segment', of: (id: string) => keys.of(id, 0).segment },
    { key: 'buyers', of: (id: string) => keys.of(id, homeSegment('buyer-0', 2)).buyers },
    { key: 'log', of: (id: string) => keys.of(id, 0).log },
    { key: 'sale', of: (id: string) => keys.sale(id) },
  ])('another type at the key of the $key: reported, and left alone', async ({ of }) => {
    const id = await soldSix(shop);
    const key = of(id);
    await keys.redis.multi().del(key).set(key, 'mine').exec();
    const report = await repair(id);
    expect(report).toMatchObject({ ok: false });
    expect(report.findings.join()).toMatch(/WRONGTYPE/);
    expect(report.repairs!.every(({ done }) => !done)).toBe(true);
    expect(await keys.redis.get(key)).toBe('mine');
    await keys.redis.del(key);
    expect(await repair(id)).toMatchObject({ ok: true, findings: [] });
    await sellsOut(id, 14);
  });
});

describe('Redis has lost writes', () => {
  test.each([
    { key: 'a segment', of: (id: string) => [keys.of(id, 0).segment] },
    { key: 'the sale', of: (id: string) => [keys.sale(id)] },
    {
      key: 'all of it',
      of: (id: string) => [0, 1].flatMap((n) => Object.values(keys.of(id, n))).concat(keys.sale(id)),
    },
  ])('$key is missing: rebuilt', async ({ of }) => {
    const id = await soldSix(shop);
    await keys.redis.del(...of(id));
    const report = await shop.service.verify(id);
    expect(new Set(causes(report))).toEqual(new Set(['lost_entries']));
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [] },
      repairs: [repaired('lost_entries', /^built generation 2 from Postgres, 0 orders saved from the logs$/)],
    });
    await sellsOut(id, 14);
  });

  test('XDEL in a log: rebuilt with the orders of the other entries, and the loss is counted', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 1 });
    const till = await shop.startEngine();
    for (const buyer of buyers(4)) await till.buy(id, buyer, { awaitCommit: false });
    await keys.redis.xdel(keys.of(id, 0).log, '1-2');
    const report = await repair(id);
    expect(report).toMatchObject({
      ...{ ok: true, differences: [], committedOrders: 3 },
      repairs: [
        repaired(
          'lost_entries',
          /^built .*, 3 orders saved from the logs; at least 1 order is lost for good$/,
        ),
      ],
    });
    await sellsOut(id, 17);
  });
});

describe('Redis loses a withdrawal', () => {
  const what = /^the segments have lost a withdrawal: 5 withdrawn units are there again, or sold/;
  const rebuilt = repaired('lost_entries', /^built generation 2 from Postgres/);

  /** 5 of the 14 units left are withdrawn, and are in the segments again. */
  async function withdrawnInVain(): Promise<string> {
    const id = await soldSix(shop);
    const segments = [0, 1].map((n) => keys.of(id, n).segment);
    const before = await Promise.all(segments.map((key) => keys.redis.hgetall(key)));
    await shop.service.change(id, { action: 'withdraw', units: 5 }, BY);
    for (const [n, key] of segments.entries()) await keys.redis.multi().del(key).hset(key, before[n]!).exec();
    return id;
  }

  test('reported, and rebuilt', async () => {
    const id = await withdrawnInVain();
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({
      ...{ ok: false, findings: [expect.stringMatching(what)] },
      differences: [{ cause: 'lost_entries', units: 5 }],
    });
    expect(await repair(id)).toMatchObject({ ok: true, differences: [], repairs: [rebuilt] });
    await sellsOut(id, 9);
  });

  test('when all is sold, refusals by Postgres are not a second fault', async () => {
    const id = await withdrawnInVain();
    // Of a backend that loses nothing, sync does not look for lost units. Otherwise it could mend the sale before `verify` sees it.
    const sync = await shop.startSync({ backend: { ...intercept(shop.backend, () => {}), durable: false } });
    const till = await shop.startEngine();
    const outcomes = await till.buyAll(id, buyers(14, 'late'));
    expect(outcomes.filter(({ code }) => code === 'committed')).toHaveLength(9);
    await sync.stop();
    const report = await shop.service.verify(id);
    expect(report).toMatchObject({
      ...{ ok: false, findings: [expect.stringMatching(what)], rejectedOrders: 5 },
    });
    expect(await repair(id)).toMatchObject({ ok: true, differences: [], repairs: [rebuilt] });
  });
});

describe('a foreign write in Postgres is reported, and never repaired', () => {
  const untouched = async (saleId: string, what: RegExp): Promise<VerifyReport> => {
    const report = await repair(saleId);
    expect(report).toMatchObject({ ok: false });
    expect(new Set(causes(report))).toEqual(new Set(['foreign_postgres']));
    expect(report.findings.join('\n')).toMatch(what);
    expect(report.repairs!.map(({ done }) => done)).toEqual(report.findings.map(() => false));
    return report;
  };

  test.each([-3, 3])('UPDATE sales.stock by %i', async (units) => {
    const id = await soldSix(shop);
    await shop.db.raw('UPDATE sales SET stock = stock + ? WHERE id = ?', [units, id]);
    const what = `stock is ${14 + units} in Postgres; ledger and orders say 14, and so do the segments`;
    const { repairs } = await untouched(id, new RegExp(`^${what}$`));
    expect(repairs).toEqual([
      {
        ...{ cause: 'foreign_postgres', done: false },
        what: `left alone: ${what}. Postgres is never repaired: undo there what other programs have written`,
      },
    ]);
  });

  test('a changed stock does not keep a segment from being repaired', async () => {
    const id = await soldSix(shop);
    await shop.db.raw('UPDATE sales SET stock = stock - 3 WHERE id = ?', [id]);
    await keys.redis.hincrby(keys.of(id, 0).segment, 'left', 5);
    const report = await repair(id);
    expect(causes(report)).toEqual(['foreign_postgres']);
    expect(report.repairs!.map(({ done }) => done).sort()).toEqual([false, true]);
    await shop.db.raw('UPDATE sales SET stock = stock + 3 WHERE id = ?', [id]);
    await sellsOut(id, 14);
  });

  test('a changed stock is not loaded because an order of the log has no record', async () => {
    const id = await soldSix(shop);
    await acceptFour(shop, id);
    await shop.db.raw('UPDATE sales SET stock = stock + 3 WHERE id = ?', [id]);
    await keys.forgetBuyer(id, 2, buyers(4, 'accepted')[0]!);
    const report = await repair(id);
    expect(report.repairs).toEqual([
      leftAlone('foreign_postgres', /^left alone: stock is 17 in Postgres; ledger and orders say 14/),
      leftAlone(
        'foreign_redis',
        /^left alone: no buyer's record holds order .*, accepted and not in Postgres yet/,
      ),
    ]);
    await shop.db.raw('UPDATE sales SET stock = stock - 3 WHERE id = ?', [id]);
    expect(await repair(id)).toMatchObject({
      ...{ ok: true, differences: [] },
      repairs: [
        repaired('foreign_redis', /^built generation 2 from Postgres, 4 orders saved from the logs$/),
      ],
    });
    await sellsOut(id, 10);
  });

  test('DELETE of an order: its record still names it', async () => {
    const id = await soldSix(shop);
    const [order] = await orders(id);
    await query(asAdmin(shop.databaseUrl), 'DELETE FROM orders WHERE order_id = $1', [order!.id]);
    await untouched(id, new RegExp(`order ${order!.id} of buyer ${order!.buyer} .* deleted or changed`));
  });

  test('an order that another program has cancelled', async () => {
    const id = await soldSix(shop);
    const [order] = await orders(id);
    await shop.db.raw("UPDATE orders SET status = 'cancelled' WHERE order_id = ?", [order!.id]);
    await untouched(id, new RegExp(`order ${order!.id} of buyer ${order!.buyer} `));
  });

  test('INSERT of an order', async () => {
    const id = await soldSix(shop);
    await shop.db.raw(
      "INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer) VALUES (1, ?, 'thief', 1, true)",
      [id],
    );
    await untouched(id, /order 1 of buyer thief: written to Postgres by others/);
  });

  test('a top-up that was marked as applied', async () => {
    const id = await soldSix(shop);
    const { before, death } = deathAt((call) => call === 'sales.credit');
    const dying = new SaleService(shop.db, intercept(shop.backend, before), shop.locks);
    void dying.change(id, { action: 'top-up', units: 8 }, BY);
    await death;
    await shop.db.raw('UPDATE stock_movements SET applied_at = now()');
    await untouched(id, /never got 8 units of top-ups that the ledger calls applied/);
  });
});

/** @param nth of the sale's orders, the oldest is 0 */
async function cancelOrder(saleId: string, backend = shop.backend, nth = 0): Promise<void> {
  const order = (await orders(saleId))[nth];
  const till = await shop.startEngine();
  await shop.orders(till.take, backend).changeOrder(order!.id, { kind: 'cancel' }, BY);
}

/** The order is cancelled in Postgres, and its unit is nowhere in the segments. */
async function cancelAndDie(saleId: string, nth = 0): Promise<void> {
  const { before, death } = deathAt((call) => call === 'log.compensate');
  void cancelOrder(saleId, intercept(shop.backend, before), nth);
  await death;
}
