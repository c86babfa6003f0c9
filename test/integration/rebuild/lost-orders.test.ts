/**
 * Redis loses orders that were answered `202`: all of it is emptied, the tail of its file is cut off, a replica takes over
 * that had not got them. What was committed is kept, nothing is oversold, and each lost order is known by its name as long
 * as the node that accepted it lives.
 */
import { readdir, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { recoveryText } from '../../../src/cli/recover.ts';
import type { Outcome } from '../../../src/engine/contract.ts';
import { rows } from '../../../src/postgres/database.ts';
import { readLosses } from '../../../src/rebuild/lost-orders.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { Load } from '../../support/http/load.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';
import {
  expectKept,
  expectWithinLimit,
  ordersOf,
  type Promised,
  promisesOf,
  unitsSold,
} from '../../support/shop/truth.ts';

const STOCK = 40;

let redis: RedisServer;
let shop: Shop;
let keys: RedisKeys;

async function begin(server: RedisServer, url = server.url): Promise<void> {
  redis = server;
  shop = await Shop.open({ redis: url });
  keys = new RedisKeys({ redisUrl: server.url, keyPrefix: shop.keyPrefix });
}

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

const idsOf = (outcomes: readonly Outcome[]) =>
  outcomes.map((outcome) => ('orderId' in outcome ? outcome.orderId : '')).sort();

/** The orders of a sale that are known by name to be lost. */
/** All of them: operators are shown a thousand at most. On a slow machine more are lost. */
async function namedLost(saleId: string): Promise<string[]> {
  const lost = await rows<{ id: string }>(
    shop.db,
    'SELECT order_id::text AS id FROM lost_orders WHERE sale_id = ?',
    [saleId],
  );
  return lost.map(({ id }) => id).sort();
}

async function accept(till: Till, saleId: string, names: readonly string[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  // An entry each.
  for (const name of names) outcomes.push(await till.buy(saleId, name, { awaitCommit: false }));
  expect(new Set(outcomes.map(({ code }) => code))).toEqual(new Set(['accepted']));
  return outcomes;
}

/** A sale in which some are committed, and no sync is running. */
async function begun(till: Till, segments: number) {
  const { id } = await shop.sell({ stock: STOCK, segments });
  const sync = await shop.startSync();
  const early = await till.buyAll(id, buyers(10, 'early'));
  expect(new Set(early.map(({ code }) => code))).toEqual(new Set(['committed']));
  await until(async () => (await keys.entries(id, segments)).length === 0, { what: 'the logs are trimmed' });
  await sync.stop();
  return { id, committed: promisesOf(early, buyers(10, 'early')) };
}

/** The sale continues to its end: no unit is sold twice, and each promised order that was not lost is kept. */
async function expectSoldOut(till: Till, saleId: string, kept: readonly Promised[]): Promise<void> {
  const codes = new Map<string, number>();
  for (let n = 0; !codes.has('sold_out'); n++) {
    const { code } = await till.buy(saleId, `last-${n}`);
    codes.set(code, (codes.get(code) ?? 0) + 1);
    expect(n).toBeLessThan(1_000);
  }
  const orders = await ordersOf(shop.databaseUrl, saleId);
  expect(unitsSold(orders)).toBe(STOCK);
  expectWithinLimit(orders, 1);
  expectKept(kept, orders);
  expect(await shop.service.verify(saleId)).toMatchObject({ ok: true, rejectedOrders: 0 });
}

describe('a server that is emptied', () => {
  beforeEach(async () => begin(await RedisServer.start()));

  test('in the middle of a sale: each accepted order is kept, or reported as lost', async () => {
    const { id } = await shop.sell({ stock: 3_000, segments: 8 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    await using running = new Load(till, id, { lines: 40, awaitCommit: false });
    for (const sold of [500, 1_500]) {
      await until(() => running.promised.length > sold, { what: `${sold} are sold` });
      const { length } = sync.seen.rebuilds;
      await keys.redis.flushall();
      await until(() => sync.seen.rebuilds.length > length, { what: 'the sale is rebuilt' });
    }
    await until(() => running.codes.has('sold_out'), { what: 'the end of the sale', timeoutMs: 60_000 });
    const promised = await running.stop();
    await until(async () => (await shop.service.show(id)).committedUnits === 3_000, {
      what: 'all are committed',
    });
    const orders = await ordersOf(shop.databaseUrl, id);
    expect(unitsSold(orders)).toBe(3_000);
    expectWithinLimit(orders, 1);
    const missing = promised.filter(({ orderId }) => !orders.has(orderId)).map(({ orderId }) => orderId);
    const allNamed = async () => {
      const named = new Set(await namedLost(id));
      return missing.every((orderId) => named.has(orderId));
    };
    await until(allNamed, { what: 'all that are missing are named' });
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, rejectedOrders: 0 });
  });

  test('without a sync: a manual recovery names the lost orders and their buyers', async () => {
    const till = await shop.startEngine();
    const { id, committed } = await begun(till, 4);
    const lost = await accept(till, id, buyers(6, 'lost'));
    await keys.redis.flushall();
    await shop.service.recover(id);
    const done = await until(
      async () => {
        const recovery = await shop.service.recovery(id);
        if (recovery.state !== 'done') return undefined;
        // A node names its lost orders in its own time, which may be after the end of the recovery.
        const named = recovery.losses.reduce((sum, loss) => sum + loss.named.length, 0);
        return named >= lost.length && recovery;
      },
      { what: 'the recovery is done, and the lost orders are named' },
    );
    if (!done) throw new Error('no recovery');
    const named = done.losses.flatMap((loss) => loss.named);
    expect(named.map(({ orderId }) => orderId).sort()).toEqual(idsOf(lost));
    expect(named.map(({ buyerId }) => buyerId).sort()).toEqual(buyers(6, 'lost'));
    expect(recoveryText(done)).toMatch(
      /Lost: at least 6 accepted orders, 6 of them known by name\.\norder +buyer/,
    );
    await shop.startSync();
    await expectSoldOut(till, id, committed);
  });
});

/** A server whose file has lost its end: four accepted orders are kept, and five are not. */
async function tailLost(till: Till, id: string) {
  const kept = await accept(till, id, buyers(4, 'kept'));
  const folder = join(redis.directory, 'appendonlydir');
  const file = join(folder, (await readdir(folder)).find((name) => name.endsWith('.incr.aof'))!);
  const { size } = await stat(file);
  const lost = await accept(till, id, buyers(5, 'lost'));
  await redis.kill();
  // Cuts the file in the middle of a command, as a power failure does.
  await truncate(file, size + 40);
  await redis.restart();
  return { kept, lost };
}

async function expectNamed(id: string, lost: Parameters<typeof idsOf>[0]): Promise<void> {
  await until(async () => (await namedLost(id)).length === 5, { what: 'the node has named them' });
  expect(await namedLost(id)).toEqual(idsOf(lost));
}

describe('a server that restarts without the end of its file', () => {
  beforeEach(async () => begin(await RedisServer.start({ appendonly: true })));

  test('and keeps selling', async () => {
    const till = await shop.startEngine();
    const { id, committed } = await begun(till, 1);
    const { kept, lost } = await tailLost(till, id);
    await shop.startSync();
    await until(async () => (await till.buy(id, 'late', { key: 'until-sold' })).code === 'committed', {
      what: 'the sale sells again',
    });
    await expectNamed(id, lost);
    expect(await readLosses(shop.db, id)).toMatchObject([{ segment: 0, orders: 5 }]);
    await expectSoldOut(till, id, [...committed, ...promisesOf(kept, buyers(4, 'kept'))]);
  });

  test('and gets no more purchases: its lane checks without them', async () => {
    const till = await shop.startEngine();
    const { id, committed } = await begun(till, 1);
    const { kept, lost } = await tailLost(till, id);
    const sync = await shop.startSync();
    await expectNamed(id, lost);
    expect(sync.seen.losses).toEqual([{ saleId: id, segment: 0, orders: 5 }]);
    await expectSoldOut(till, id, [...committed, ...promisesOf(kept, buyers(4, 'kept'))]);
  });
});

test('a replica that takes over without the latest writes', async () => {
  const primary = await RedisServer.start();
  await using replica = await RedisServer.start();
  await using proxy = await TcpProxy.start(primary.port);
  await begin(primary, proxy.through(primary.url));
  await using copy = new RedisKeys({ redisUrl: replica.url, keyPrefix: shop.keyPrefix });
  await copy.redis.replicaof('127.0.0.1', primary.port);
  const till = await shop.startEngine();
  const { id, committed } = await begun(till, 1);
  const kept = await accept(till, id, buyers(4, 'kept'));
  await until(async () => (await copy.left(id, 1)) === STOCK - 14, { what: 'the replica has these' });
  await copy.redis.replicaof('NO', 'ONE');
  const lost = await accept(till, id, buyers(5, 'lost'));
  keys.redis.disconnect();
  await primary.kill();
  proxy.failOver(replica.port);

  await shop.startSync();
  await until(async () => (await till.buy(id, 'late', { key: 'until-sold' })).code === 'committed', {
    what: 'the sale sells again',
  });
  await expectNamed(id, lost);
  expect(await readLosses(shop.db, id)).toMatchObject([{ segment: 0, orders: 5 }]);
  await expectSoldOut(till, id, [...committed, ...promisesOf(kept, buyers(4, 'kept'))]);
});
