/** Which Redis and which database belong together: each state that a process can find, forced. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeEach, describe, expect, test } from 'vitest';
import { openRedis } from '../../../src/engine/cluster/open-redis.ts';
import { slotOf } from '../../../src/engine/cluster/slot.ts';
import type { Backend, OwnerMark } from '../../../src/engine/contract.ts';
import { MemoryBackend } from '../../../src/engine/memory/memory-backend.ts';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { LocalLocks } from '../../../src/postgres/sale-locks.ts';
import { Ownership } from '../../../src/shop/ownership.ts';
import { ProcessList } from '../../../src/shop/process-list.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { part, stallAt } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { emptyDatabase, freshPrefix, redisUrl } from '../../support/fixtures.ts';
import { LONG_TIMEOUTS } from '../../support/long-timeouts.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';

const FOREIGN = { code: 'foreign_stores' };
const BY = { actor: 'tests', reason: '' };
const RUNNING = { version: '0.0.0', settings: {} };

interface House {
  readonly db: Database;
  readonly backend: Backend;
  readonly ownership: Ownership;
  readonly service: SaleService;
}

const ends: (() => Promise<unknown>)[] = [];
let keyPrefix: string;
let keys: RedisKeys;
let shop: House;

beforeEach(async () => {
  keyPrefix = freshPrefix();
  keys = new RedisKeys({ redisUrl: redisUrl(), keyPrefix });
  shop = await aHouse();
  return async () => {
    await keys[Symbol.asyncDispose]();
    for (const end of ends.splice(0).reverse()) await end();
  };
});

async function aDatabase(): Promise<Database> {
  const db = openDatabase({ url: await emptyDatabase(), maxConnections: 4 });
  ends.push(() => db.destroy());
  await migrate(db);
  return db;
}

async function aBackend(prefix = keyPrefix, urls = [redisUrl()]): Promise<Backend> {
  const options = {
    urls,
    keyPrefix: prefix,
    takeTimeoutMs: LONG_TIMEOUTS.takeTimeoutMs,
    maxLogOrders: 1_000,
  };
  const { backend } = await openRedis(options);
  ends.push(() => backend.close());
  return backend;
}

/** A process that was started with a database and a Redis. */
function start(db: Database, backend: Backend, prefix = keyPrefix, isShared = true): Ownership {
  const redis = backend.durable ? 'redis://here' : undefined;
  return new Ownership(db, backend, { redis, keyPrefix: prefix, database: 'a database', isShared });
}

async function aHouse(prefix = keyPrefix): Promise<House> {
  const [db, backend] = [await aDatabase(), await aBackend(prefix)];
  const ownership = start(db, backend, prefix);
  return { db, backend, ownership, service: new SaleService(db, backend, new LocalLocks(), ownership) };
}

/** Removes the mark, as if a version without marks had written the stores. */
const removeMark = () => keys.redis.del(new Keys(keyPrefix).owner);
/** Removes all keys under the prefix. */
const empty = async () => void (await keys.redis.del(...(await keys.redis.keys(`${keyPrefix}*`))));
const web = (stock: number) => ({ id: 'web', stock, segments: 2, startsAt: '2026-01-01T00:00:00Z' });

describe('a Redis without a mark', () => {
  test('belongs to the first of two databases that find it at the same time; the other is refused', async () => {
    const other = await aHouse();
    // Both have found it free before either sets its mark.
    let waiting = 0;
    let bothFound!: () => void;
    const found = new Promise<void>((resolve) => (bothFound = resolve));
    const slow = ({ db, backend }: House) => {
      const real = backend.owner!;
      const owner: OwnerMark = {
        read: () => real.read(),
        replace: (to) => real.replace(to),
        isUsed: () => real.isUsed(),
        newestGeneration: (saleId) => real.newestGeneration(saleId),
        discard: (saleId) => real.discard(saleId),
        claim: async (by) => {
          if (++waiting === 2) bothFound();
          await found;
          return real.claim(by);
        },
      };
      return start(db, { ...partsOf(backend), owner });
    };
    const claims = await Promise.allSettled([slow(shop).claim(), slow(other).claim()]);
    expect(claims.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const refused = claims.find((claim) => claim.status === 'rejected')!;
    expect(refused.reason).toMatchObject(FOREIGN);
    // The loser has noted nothing: it may start with a Redis of its own.
    const loser = claims[0]!.status === 'rejected' ? shop : other;
    const elsewhere = freshPrefix();
    await start(loser.db, await aBackend(elsewhere), elsewhere).claim();
  });

  test('is marked again after it was emptied, by a running process and by one that starts', async () => {
    await shop.ownership.claim();
    await shop.service.create(web(5), 'tests');
    await empty();
    await shop.ownership.claim();
    await empty();
    await start(shop.db, shop.backend).claim();
    expect((await shop.backend.owner!.read())!.label).toBe('a database');
  });

  test('from a version without marks: belongs to the database whose sales it holds', async () => {
    await shop.ownership.claim();
    await shop.service.create(web(88), 'tests');
    await removeMark();
    await shop.db.raw('UPDATE shop SET key_prefix = NULL');
    const [stranger, namesake] = [await aHouse(), await aHouse()];
    await expect(start(stranger.db, stranger.backend).claim()).rejects.toMatchObject(FOREIGN);
    // Another shop with a sale of that name, which it has built somewhere else.
    const elsewhere = freshPrefix();
    const own = start(namesake.db, await aBackend(elsewhere), elsewhere);
    await new SaleService(namesake.db, await aBackend(elsewhere), new LocalLocks(), own).create(
      web(7),
      'tests',
    );
    await namesake.db.raw('UPDATE shop SET key_prefix = NULL');
    await expect(start(namesake.db, namesake.backend).claim()).rejects.toThrow(
      /has no owner yet and holds sales, and none of them is of the database/,
    );
    await start(shop.db, shop.backend).claim();
    await expect(start(stranger.db, stranger.backend).claim()).rejects.toThrow(/belongs to the database/);
  });

  test('is marked by a running process although it holds nothing of that process any more', async () => {
    await shop.ownership.claim();
    await empty();
    await keys.redis.incr(new Keys(keyPrefix).changes);
    await expect(start(shop.db, shop.backend).claim()).rejects.toMatchObject(FOREIGN);
    await shop.ownership.claim();
    await start(shop.db, shop.backend).claim();
  });

  test('is refused if a process of this shop has just found its mark in another one', async () => {
    await shop.ownership.claim();
    const second = start(shop.db, await aBackend(keyPrefix, [`${redisUrl()}/1`]));
    const running = new ProcessList(shop.db, { process: 'first', ...RUNNING });
    await running.report();
    const refused = expect(second.claim()).rejects.toThrow(/the process first sells the stock/);
    // The first check that it reports may have begun before the second process's own.
    let isRefused = false;
    const telling = (async () => {
      for (; !isRefused; await delay(100)) await running.report();
    })();
    await refused.finally(() => {
      isRefused = true;
    });
    await telling;
  });

  test('is marked at a start if the listed processes do not report checks any more', async () => {
    await shop.ownership.claim();
    await new ProcessList(shop.db, { process: 'dead', ...RUNNING }).report();
    await empty();
    await start(shop.db, shop.backend).claim();
    expect(await shop.backend.owner!.read()).toBeDefined();
  });

  test('makes a process wait only for others that use its database, and not if it has a mark', async () => {
    await shop.ownership.claim();
    await new ProcessList(shop.db, { process: 'another', ...RUNNING }).report();
    let reads = 0;
    const owner = part(shop.backend.owner!, 'owner', (call) => {
      if (call === 'owner.read') reads++;
    });
    const claim = (isShared: boolean) =>
      start(shop.db, { ...partsOf(shop.backend), owner }, keyPrefix, isShared).claim();
    await claim(true);
    await empty();
    await claim(false);
    // Who waits reads the mark again and again.
    expect(reads).toBe(2);
  });

  test('is not changed by a command that only compares', async () => {
    await shop.ownership.check();
    expect(await keys.redis.keys(`${keyPrefix}*`)).toEqual([]);
    const { rows } = await shop.db.raw('SELECT key_prefix FROM shop');
    expect(rows).toEqual([{ key_prefix: null }]);
  });
});

describe('refused is', () => {
  test('another KEY_PREFIX than the stored one, and a stock in the process', async () => {
    await shop.ownership.claim();
    const other = freshPrefix();
    await expect(start(shop.db, await aBackend(other), other).claim()).rejects.toThrow(
      `under KEY_PREFIX ${keyPrefix}, and KEY_PREFIX is ${other}`,
    );
    const inProcess = start(shop.db, new MemoryBackend({ maxLogOrders: 1_000 }));
    await expect(inProcess.claim()).rejects.toThrow(/REDIS_URL is not set/);
  });

  test('another database behind the same address, once a process runs', async () => {
    await shop.ownership.claim();
    await shop.db.raw('UPDATE shop SET identity = ?', [randomUUID()]);
    await removeMark();
    await expect(shop.ownership.claim()).rejects.toThrow(/was shop \w{8} when this process began/);
  });

  test('a rebuild, and a new sale, in a Redis that has become another database’s', async () => {
    await shop.ownership.claim();
    await shop.service.create(web(5), 'tests');
    const other = await aHouse();
    await other.ownership.adopt();
    await expect(shop.service.create({ ...web(5), id: 'more' }, 'tests')).rejects.toMatchObject(FOREIGN);
    expect((await shop.service.list()).sales).toHaveLength(1);
    await shop.service.recover('web');
    await expect
      .poll(() => shop.service.recovery('web'), { timeout: 10_000 })
      .toMatchObject({ state: 'failed', problem: expect.stringMatching(/belongs to the database/) });
    expect(await keys.redis.hget(keys.sale('web'), 'generation')).toBe('1');
  });
});

describe('adopt', () => {
  test('keeps this database’s own sales with their logs, and removes those of another one', async () => {
    await shop.ownership.claim();
    await shop.service.create(web(5), 'tests');
    const other = await aHouse(freshPrefix());
    await other.service.create({ ...web(7), perBuyerLimit: 2 }, 'tests');
    const moved = start(other.db, shop.backend);
    await expect(moved.claim()).rejects.toMatchObject(FOREIGN);
    expect(await moved.adopt()).toMatchObject({
      discarded: ['web'],
      before: expect.stringMatching(/^a database/),
    });
    expect(await keys.redis.keys(`${keyPrefix}{web*`)).toEqual([]);
    await start(other.db, shop.backend).claim();
    // The one that it was taken from takes it back: what it finds there of its own would be kept.
    const back = await shop.ownership.adopt();
    expect(back).toMatchObject({ discarded: [] });
  });

  test('a sale that another database has left does not become part of a new sale with its id', async () => {
    await shop.ownership.claim();
    await shop.service.create(web(5), 'tests');
    const other = await aHouse();
    await other.ownership.adopt();
    await other.service.create(web(9), 'tests');
    expect(await other.service.show('web')).toMatchObject({ remaining: 9, generation: 3 });
    expect(await other.service.verify('web')).toMatchObject({ ok: true });
  });

  test('a new sale stays although the removal of the one before it arrives late, from a process that has lost its lock', async () => {
    await shop.ownership.claim();
    await shop.service.create(web(5), 'tests');
    const other = await aHouse();
    await other.ownership.adopt();
    const { stalled, goOn, before } = stallAt('sales.archive');
    const owner = other.backend.owner!;
    const slow = { ...partsOf(other.backend), sales: part(other.backend.sales, 'sales', before), owner };
    // Locks of its own: Postgres has ended the session that had them.
    const cutOff = new SaleService(other.db, slow, new LocalLocks(), start(other.db, slow));
    const late = cutOff.create(web(9), 'tests').then(
      () => 'created',
      () => 'failed',
    );
    await stalled;
    await other.service.create(web(9), 'tests');
    const { generation } = await other.service.show('web');
    const held = async () => (await keys.redis.keys(`${keyPrefix}{web*`)).sort();
    const whole = await held();
    goOn();
    expect(await late).toBe('failed');
    expect(await held()).toEqual(whole);
    expect(await other.backend.sales.read('web')).toMatchObject({ state: 'open', generation });
    expect(await other.service.verify('web')).toMatchObject({ ok: true });
  });

  test('a sale that another database has archived does not keep its id from a new sale', async () => {
    await shop.ownership.claim();
    await shop.service.create(web(5), 'tests');
    await shop.service.change('web', { action: 'close' }, BY);
    await shop.service.change('web', { action: 'archive' }, BY);
    const other = await aHouse();
    await other.ownership.adopt();
    await other.service.create(web(9), 'tests');
    expect(await other.service.verify('web')).toMatchObject({ ok: true });
    expect(await other.service.show('web')).toMatchObject({ remaining: 9, generation: 3 });
  });

  test('moves a shop to another KEY_PREFIX, and back into this process', async () => {
    await shop.ownership.claim();
    const other = freshPrefix();
    const backend = await aBackend(other);
    expect(await start(shop.db, backend, other).adopt()).toMatchObject({ keyPrefixBefore: keyPrefix });
    await start(shop.db, backend, other).claim();
    await expect(start(shop.db, shop.backend).claim()).rejects.toMatchObject(FOREIGN);
    const memory = new MemoryBackend({ maxLogOrders: 1_000 });
    await start(shop.db, memory).adopt();
    await start(shop.db, memory).claim();
  });
});

test('a cluster loses the mark and the change counter together, because they are in one slot', async () => {
  for (const prefix of ['stockade:', 'a', 'x|y~']) {
    const { owner, changes } = new Keys(prefix);
    expect(slotOf(owner)).toBe(slotOf(changes));
  }
  await using cluster = await RedisCluster.start();
  const backend = await aBackend(keyPrefix, cluster.urls);
  await start(shop.db, backend).claim();
  const stranger = await aDatabase();
  await expect(start(stranger, backend).claim()).rejects.toMatchObject(FOREIGN);
});

function partsOf(backend: Backend): Backend {
  const { durable, takes, sales, log, transfers, audits } = backend;
  return {
    ...{ durable, takes, sales, log, transfers, audits },
    subscribe: (events) => backend.subscribe(events),
    close: async () => {},
  };
}
