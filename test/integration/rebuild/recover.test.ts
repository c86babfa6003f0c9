/**
 * Rebuilds that an operator starts: of a sale as it is, with another number of segments, and from where another
 * rebuild has stopped.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Backend, HoldingsPart, Outcome } from '../../../src/engine/contract.ts';
import type { RebuildProgress, Recovery } from '../../../src/operations/recover-operations.ts';
import { nameLostOrders, readLosses } from '../../../src/rebuild/lost-orders.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { ifFreeToRebuild } from '../../../src/rebuild/rebuild-lock.ts';
import { makeChange } from '../../../src/sales/sale-changes.ts';
import { BY } from '../../support/author.ts';
import { callCli, RunningCli } from '../../support/cli/cli.ts';
import { deathAt, intercept, part, stallAt } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { sellInPostgres } from '../../support/shop/sell-in-postgres.ts';
import { buyers, Shop, type WatchedSync } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';
import { expectKept, ordersOf, promisesOf, unitsSold } from '../../support/shop/truth.ts';

const MAX_HELD = 15_000;

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

async function recovered(saleId: string): Promise<Extract<Recovery, { state: 'done' }>> {
  await shop.service.recover(saleId);
  let now = await shop.service.recovery(saleId);
  const hasEnded = async () => {
    now = await shop.service.recovery(saleId);
    return now.state !== 'running';
  };
  await until(hasEnded, { what: 'it is built' });
  if (now.state !== 'done') throw new Error(`the recovery is ${JSON.stringify(now)}`);
  return now;
}

async function sellsAgain(till: Till, saleId: string, buyerId: string): Promise<Outcome> {
  let outcome: Outcome = { code: 'unknown' };
  const isSold = async () => {
    outcome = await till.buy(saleId, buyerId);
    return outcome.code === 'committed';
  };
  await until(isSold, { what: 'the sale sells again' });
  return outcome;
}

describe('a recovery', () => {
  /** A rebuild of another process, which stops before this call. */
  async function rebuildUpTo(saleId: string, call: string) {
    const { stalled, goOn, before } = stallAt(call);
    const rebuilt = ifFreeToRebuild(shop.locks, saleId, () =>
      rebuildSale(shop.db, intercept(shop.backend, before), saleId),
    );
    await stalled;
    const end = async () => {
      goOn();
      await rebuilt;
    };
    return { end };
  }

  test('saves the orders in the logs, rebuilds the sale, and sync continues', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 4 });
    const till = await shop.startEngine();
    const accepted = await till.buyAll(id, buyers(8), { awaitCommit: false });
    expect(await shop.service.recovery(id)).toEqual({ saleId: id, state: 'none' });
    expect(await recovered(id)).toMatchObject({
      generation: 2,
      salvagedOrders: 8,
      rejectedOrders: 0,
      loadedBuyers: 8,
      losses: [],
    });
    const sync = await shop.startSync();
    await sellsAgain(till, id, 'late');
    expectKept(promisesOf(accepted, buyers(8)), await ordersOf(shop.databaseUrl, id));
    expect(sync.seen.rebuilds).toEqual([]);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 9 });
  });

  test('reports each log that it has saved, then the load and the publication', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 4 });
    const till = await shop.startEngine();
    await till.buyAll(id, buyers(8), { awaitCommit: false });
    const progress: RebuildProgress[] = [];
    await rebuildSale(shop.db, shop.backend, id, undefined, { progress: (now) => progress.push(now) });
    const of = (wanted: string) => progress.filter(({ step }) => step === wanted);
    expect(of('salvage')).toEqual([1, 2, 3, 4].map((done) => ({ step: 'salvage', done, total: 4 })));
    expect(of('load').at(-1)).toEqual({ step: 'load', done: 8, total: 8 });
    expect(of('publish').map(({ done }) => done)).toEqual([0, 1]);
  });

  test('of a sale that a sync works on runs once: sync waits for it and continues', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 4 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    await till.buyAll(id, buyers(8));
    expect(await recovered(id)).toMatchObject({ generation: 2, loadedBuyers: 8 });
    await sellsAgain(till, id, 'late');
    expect(sync.seen).toMatchObject({ rebuilds: [], breaks: [], failures: [], crashes: [] });
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 9 });
  });

  test('runs once for many requests, and waits while another process rebuilds the sale', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 4 });
    const done = await ifFreeToRebuild(shop.locks, id, async () => {
      const begun = await Promise.all([shop.service.recover(id), shop.service.recover(id)]);
      expect(begun).toMatchObject([{ state: 'running' }, { state: 'running' }]);
      const step = async () => {
        const now = await shop.service.recovery(id);
        return now.state === 'running' && now.step;
      };
      await until(async () => (await step()) === 'wait', { what: 'it has found the other one' });
      return rebuildSale(shop.db, shop.backend, id);
    });
    expect(done?.value).toMatchObject({ generation: 2 });
    await until(async () => (await shop.service.recovery(id)).state === 'done', { what: 'it has seen that' });
    const seen = await shop.service.recovery(id);
    expect(seen).toMatchObject({ generation: 2, losses: [] });
    expect(seen).not.toHaveProperty('loadedBuyers');
  });

  test('joins a rebuild that loads already: buyers do not wait for a second one', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 4 });
    const other = await rebuildUpTo(id, 'sales.publish');
    await shop.service.recover(id);
    const waits = async () => (await shop.service.recovery(id)) as Recovery & { step?: string };
    await until(async () => (await waits()).step === 'wait', { what: 'the recovery waits' });
    await other.end();
    await until(async () => (await shop.service.recovery(id)).state === 'done', { what: 'it has seen that' });
    expect(await shop.service.recovery(id)).toMatchObject({ generation: 2 });
  });

  async function expectBuiltOnce(saleId: string, sync: WatchedSync): Promise<void> {
    await sync.ready;
    await sellsAgain(await shop.startEngine(), saleId, 'late');
    expect(sync.seen).toMatchObject({ rebuilds: [], breaks: [], failures: [], crashes: [] });
    expect(await shop.service.show(saleId)).toMatchObject({ generation: 2 });
  }

  test.each([
    ['the segments are loaded', 'sales.loadSegment'],
    ['the sale is published', 'sales.publish'],
  ])('is not repeated by a sync that finds the new generation before %s', async (_, call) => {
    const { id } = await shop.sell({ stock: 20, segments: 4 });
    const other = await rebuildUpTo(id, call);
    let waits = 0;
    const locks = part(shop.locks, 'locks', (_call, [name]) => {
      if (name === `rebuild:${id}`) waits++;
    });
    const starting = shop.startSync({ locks });
    await until(() => waits > 0, { what: 'the sync wants to rebuild the sale' });
    await other.end();
    await expectBuiltOnce(id, await starting);
  });

  test('that fails reports why, and can be requested again', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 1 });
    const till = await shop.startEngine();
    await till.buyAll(id, buyers(3), { awaitCommit: false });
    const { log } = keys.of(id, 0);
    const copy = await keys.dump([log]);
    await keys.redis.del(log);
    await keys.redis.set(log, 'no log');
    await shop.service.recover(id);
    await until(async () => (await shop.service.recovery(id)).state === 'failed', { what: 'it has failed' });
    expect(await shop.service.recovery(id)).toMatchObject({
      problem: expect.stringMatching(/log of segment 0/),
    });
    await keys.restore([log], copy);
    expect(await recovered(id)).toMatchObject({ salvagedOrders: 3 });
  });
});

describe('a rebuild whose process died while it loaded', () => {
  /** Another process, which dies before its `count`th page. */
  async function dieWhileLoading(saleId: string, pages: number): Promise<void> {
    const { segments } = await shop.service.show(saleId);
    let loads = 0;
    const { death, before } = deathAt((call) => call === 'sales.loadHoldings' && ++loads > pages * segments);
    void rebuildSale(shop.db, intercept(await shop.anotherBackend(), before), saleId);
    await death;
  }

  /** Counts the buyers that are loaded from now on. */
  function counting(backend: Backend): { backend: Backend; buyers: () => number } {
    let loaded = 0;
    const counted = intercept(backend, (call, [, part]) => {
      if (call === 'sales.loadHoldings') loaded += (part as HoldingsPart).holdings.length;
    });
    return { backend: counted, buyers: () => loaded };
  }

  test('is continued where it stopped: no buyer is loaded twice, none is forgotten', async () => {
    const { id } = await shop.sell({ stock: MAX_HELD + 10, segments: 4 });
    await sellInPostgres(shop.db, id, MAX_HELD);
    await dieWhileLoading(id, 1);
    const { backend, buyers: loaded } = counting(shop.backend);
    const progress: RebuildProgress[] = [];
    const report = await rebuildSale(shop.db, backend, id, undefined, {
      progress: (now) => progress.push(now),
    });
    expect(report).toMatchObject({ generation: 2 });
    expect(loaded()).toBeGreaterThan(0);
    // All but the one page of 10,000 that the first one had finished.
    expect(loaded()).toBeLessThanOrEqual(MAX_HELD - 9_999);
    expect(progress.at(0)).toMatchObject({ step: 'load', total: MAX_HELD });
    expect(progress.at(0)!.done).toBeGreaterThanOrEqual(9_999);
    let held = 0;
    for (let segment = 0; segment < 4; segment++) held += await keys.redis.hlen(keys.of(id, segment).buyers);
    expect(held).toBe(MAX_HELD);
    await shop.startSync();
    const till = await shop.startEngine();
    expect((await till.buy(id, 'holder-1')).code).toBe('limit_reached');
    expect((await till.buy(id, `holder-${MAX_HELD}`)).code).toBe('limit_reached');
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, findings: [] });
  });

  test('is continued when the command is run again: the lock of the killed one is free', async () => {
    const held = 100_000;
    const { id } = await shop.sell({ stock: held + 10, segments: 4 });
    await sellInPostgres(shop.db, id, held);
    const env = { REDIS_URL: shop.redisUrl, DATABASE_URL: shop.databaseUrl, KEY_PREFIX: shop.keyPrefix };
    // It loads only some pages, however fast it is.
    await using proxy = await TcpProxy.start(Number(new URL(shop.redisUrl).port));
    let pages = 0;
    const { held: stuck } = proxy.hold((request) => request.includes('holder-') && ++pages > 16);
    const slow = { ...env, REDIS_URL: proxy.through(shop.redisUrl) };
    await using first = new RunningCli(['recover', id, '--yes', '--json'], { env: slow });
    await stuck;
    const { segment } = keys.of(id, 3);
    await until(() => keys.redis.hget(segment, 'loadedUpTo'), { what: 'a page is loaded' });
    first.signal('SIGKILL');
    expect(await first.ended).toMatchObject({ signal: 'SIGKILL', stdout: '' });
    expect(await keys.redis.hmget(segment, 'generation', 'state')).toEqual(['2', 'loaded']);

    const again = await callCli(['recover', id, '--yes', '--json'], { env });
    expect(again).toMatchObject({ exitCode: 0, stderr: '' });
    const done = JSON.parse(again.stdout);
    expect(done).toMatchObject({ state: 'done', generation: 2, losses: [] });
    expect(done.loadedBuyers).toBeLessThan(held);
    expect((await shop.service.show(id)).remaining).toBe(10);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: held });
  });

  test('starts again if a segment was lost since', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 4 });
    await sellInPostgres(shop.db, id, 10);
    await dieWhileLoading(id, 0);
    await keys.redis.del(...Object.values(keys.of(id, 2)));
    expect(await rebuildSale(shop.db, shop.backend, id)).toMatchObject({ generation: 3, loadedBuyers: 10 });
  });
});

describe('a rebuild with another number of segments', () => {
  async function resized(saleId: string, segments: number, backend = shop.backend) {
    await makeChange(shop.db, saleId, { action: 'resize', segments }, BY);
    return rebuildSale(shop.db, backend, saleId);
  }

  test.each([
    [8, 3],
    [3, 8],
    [1, 100],
    [100, 1],
  ])('from %i to %i keeps all orders and units, and leaves no old keys', async (from, to) => {
    const { id } = await shop.sell({ stock: 40, segments: from });
    const till = await shop.startEngine();
    const accepted = await till.buyAll(id, buyers(20), { awaitCommit: false });
    const report = await resized(id, to);
    expect(report).toMatchObject({ generation: 2, salvagedOrders: 20, loadedBuyers: 20 });
    expect(await shop.service.show(id)).toMatchObject({ segments: to, remaining: 20 });
    const held = await keys.redis.keys(`${shop.keyPrefix}{${id}:*}:segment`);
    expect(held).toHaveLength(to);
    await shop.startSync();
    const late = await sellsAgain(till, id, 'late');
    expectKept(
      promisesOf([...accepted, late], [...buyers(20), 'late']),
      await ordersOf(shop.databaseUrl, id),
    );
    const again = await till.buyAll(id, buyers(20));
    expect([...new Set(again.map(({ code }) => code))]).toEqual(['limit_reached']);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 21 });
  });

  test.each([
    'sales.freeze',
    'log.readLog',
    'sales.loadSegment',
    'sales.loadHoldings',
    'sales.removeSegments',
    'sales.publish',
  ])(
    'that dies before %s is finished by the next sweep: accepted orders are kept, the old segments are gone',
    async (step) => {
      const { id } = await shop.sell({ stock: 40, segments: 4 });
      const till = await shop.startEngine();
      const accepted = await till.buyAll(id, buyers(20), { awaitCommit: false });
      const { death, before } = deathAt((call) => call === step);
      void resized(id, 2, intercept(await shop.anotherBackend(), before));
      await death;
      await shop.startSync();
      const late = await sellsAgain(till, id, 'late');
      const orders = await ordersOf(shop.databaseUrl, id);
      expectKept(promisesOf([...accepted, late], [...buyers(20), 'late']), orders);
      expect(unitsSold(orders)).toBe(21);
      const { segments } = await shop.service.show(id);
      expect(await keys.redis.keys(`${shop.keyPrefix}{${id}:*}:segment`)).toHaveLength(segments);
      expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 21 });
    },
  );
});

test('orders named by a node are lost if Postgres does not have them, and are recorded once', async () => {
  const { id } = await shop.sell({ stock: 20, segments: 2 });
  await sellInPostgres(shop.db, id, 2);
  const accepted = [1, 2, 3, 4].map((n) => ({
    segment: n % 2,
    orderId: String(n),
    buyerId: `holder-${n}`,
    quantity: 1,
  }));
  const named = await nameLostOrders(shop.db, id, accepted);
  expect(named.map(({ orderId }) => orderId)).toEqual(['3', '4']);
  expect(await nameLostOrders(shop.db, id, accepted)).toEqual([]);
  expect(await readLosses(shop.db, id)).toEqual([
    { segment: 0, orders: 1, named: [accepted[3]] },
    { segment: 1, orders: 1, named: [accepted[2]] },
  ]);
});
