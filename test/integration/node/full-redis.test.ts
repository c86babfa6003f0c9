/**
 * A Redis without free memory, or without room for its file: takes are refused as a whole, commands that free memory
 * still work, and the sale sells again when there is room.
 */
import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { expectKept, expectWithinLimit, ordersOf, promisesOf, unitsSold } from '../../support/shop/truth.ts';

const STOCK = 60;
const SEGMENTS = 4;
/** Ignores the signal by which Linux ends a process that writes beyond its file limit: Redis gets an error instead. */
const SURVIVES_FILE_LIMITS = ['/bin/sh', '-c', 'trap "" XFSZ; exec "$0" "$@"'] as const;

let redis: RedisServer;
let shop: Shop;
let keys: RedisKeys;

beforeEach(async () => {
  redis = await RedisServer.start({ appendonly: true, launcher: SURVIVES_FILE_LIMITS });
  shop = await Shop.open({ redis: redis.url });
  keys = new RedisKeys({ redisUrl: redis.url, keyPrefix: shop.keyPrefix });
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
  await redis[Symbol.asyncDispose]();
});

const hasPrlimit = (() => {
  try {
    return execFileSync('prlimit', ['--version']).length > 0;
  } catch {
    return false;
  }
})();

const limitFiles = (bytes: string) =>
  execFileSync('prlimit', ['--pid', String(redis.pid), `--fsize=${bytes}:`]);

/** The content of all segments of a sale. */
async function segmentsOf(saleId: string) {
  const places = Array.from({ length: SEGMENTS }, (_, segment) => keys.of(saleId, segment));
  return Promise.all(
    places.map(async ({ segment, buyers, log }) => ({
      segment: await keys.redis.hgetall(segment),
      buyers: await keys.redis.hgetall(buyers),
      log: await keys.redis.xrange(log, '-', '+'),
    })),
  );
}

/** Every way in which Redis can be full: how to bring it about, and how to end it. */
const FULL = [
  {
    name: 'no memory',
    isPossible: true,
    fill: () => keys.redis.config('SET', 'maxmemory', '1mb'),
    clear: () => keys.redis.config('SET', 'maxmemory', '0'),
  },
  {
    name: 'no room for its file',
    isPossible: hasPrlimit,
    fill: () => limitFiles('1'),
    clear: () => limitFiles('unlimited'),
  },
];

describe.each(FULL)('$name', ({ isPossible, fill, clear }) => {
  test.runIf(isPossible)(
    'takes and refills are refused as a whole; with room again, the sale sells out',
    async () => {
      const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS, perBuyerLimit: 2 });
      const till = await shop.startEngine();
      const early = await till.buyAll(id, buyers(12, 'early'), { awaitCommit: false });
      expect(new Set(early.map(({ code }) => code))).toEqual(new Set(['accepted']));

      await fill();
      // Redis notices at a write that its file can't grow. It keeps that write in memory.
      await until(
        () =>
          keys.redis.set('probe', '').then(
            () => false,
            () => true,
          ),
        { what: 'Redis refuses writes' },
      );
      const before = await segmentsOf(id);
      const during = await till.buyAll(id, buyers(30, 'during'), { key: 'once' });
      expect(new Set(during.map(({ code }) => code))).toEqual(new Set(['unavailable']));
      expect(await segmentsOf(id)).toEqual(before);

      await clear();
      await until(() => keys.redis.set('probe', ''), { what: 'Redis takes writes' });
      await shop.startSync();
      const late = await till.buyAll(id, buyers(30, 'during'), { key: 'once' });
      expect(new Set(late.map(({ code }) => code))).toEqual(new Set(['committed']));
      const rest = await till.buyAll(id, buyers(40, 'rest'));
      expect(rest.filter(({ code }) => code === 'committed')).toHaveLength(STOCK - 42);
      const orders = await ordersOf(shop.databaseUrl, id);
      expect(unitsSold(orders)).toBe(STOCK);
      expectWithinLimit(orders, 2);
      expectKept(promisesOf([...early, ...late], [...buyers(12, 'early'), ...buyers(30, 'during')]), orders);
      expect(await shop.service.verify(id)).toMatchObject({ ok: true, rejectedOrders: 0 });
    },
  );
});

test('sync works without free memory: it trims committed entries from the logs, which makes room', async () => {
  const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
  const till = await shop.startEngine();
  const accepted = await till.buyAll(id, buyers(20), { awaitCommit: false });
  expect(await keys.entries(id, SEGMENTS)).not.toEqual([]);
  await keys.redis.config('SET', 'maxmemory', '1mb');
  await shop.startSync();
  await until(async () => (await keys.entries(id, SEGMENTS)).length === 0, { what: 'the logs are trimmed' });
  expectKept(promisesOf(accepted, buyers(20)), await ordersOf(shop.databaseUrl, id));
  await keys.redis.config('SET', 'maxmemory', '0');
  await until(async () => (await till.buy(id, 'late', { key: 'until-sold' })).code === 'committed', {
    what: 'the sale sells',
  });
});
