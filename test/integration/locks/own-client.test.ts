/** Locks on the connections of a client that their user has created, with its own options. */
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fenced, fenceKey } from '../../../src/locks/fenced.ts';
import { Locks } from '../../../src/locks/locks.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { until } from '../../support/until.ts';

let server: RedisServer;

beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server[Symbol.asyncDispose]());

/** Each of these options would break a lock that used it. */
function stubbornClient(): Redis {
  return new Redis(server.url, {
    keyPrefix: 'shop:',
    db: 3,
    stringNumbers: true,
    enableAutoPipelining: true,
    maxRetriesPerRequest: null,
    commandTimeout: 1,
    lazyConnect: true,
  });
}

test('they keep others out, wake waiters, and fence the writes of the client', async () => {
  const redis = stubbornClient();
  const [one, other] = await Promise.all([Locks.open({ redis }), Locks.open({ redis })]);
  const name = '{concert:3}:count';
  const held = await one.lock(name);
  expect(await other.tryLock(name)).toBeUndefined();
  const waiting = other.lock(name);
  const admin = new Redis(server.url, { db: 3 });
  await until(async () => (await admin.pubsub('NUMSUB', `${name}:released`))[1] === 1, {
    what: 'the other listens for the release',
  });
  await held.release();
  const next = await waiting;
  expect(next.token).toBeGreaterThan(held.token);
  expect((await admin.keys('*')).sort()).toEqual([`shop:${name}`, `shop:${name}:fence`]);

  const user = new Redis(server.url, { db: 3, keyPrefix: 'shop:' });
  const script = fenced("return redis.call('SET', KEYS[1], ARGV[1])");
  const write = (token: number) => user.eval(script, 2, fenceKey(name), `${name}:value`, token, 'written');
  await expect(write(held.token)).rejects.toThrow('FENCED');
  expect(await write(next.token)).toBe('OK');

  await next.release();
  await Promise.all([one.close(), other.close()]);
  expect(redis.status).toBe('wait');
  for (const client of [redis, admin, user]) client.disconnect();
});

test('the client stays open when the locks are closed', async () => {
  const redis = new Redis(server.url);
  const locks = await Locks.open({ redis });
  await locks.withLock('a', async () => {});
  await locks.close();
  expect(await redis.ping()).toBe('PONG');
  redis.disconnect();
});

test('a database that the server does not have is refused, and not taken for the first one', async () => {
  const redis = new Redis(server.url, { db: 99, lazyConnect: true });
  for (const options of [{ url: `${server.url}/99` }, { redis }]) {
    const opening = Locks.open(options);
    await expect(opening).rejects.toThrow(/^Redis at .* can't be reached: ERR DB index is out of range/);
  }
});

test.each([
  [{}, 'url or redis must be given, and not both'],
  [undefined as never, 'url or redis must be given, and not both'],
  [
    { url: 'redis://127.0.0.1:1', ttl: 5_000 } as never,
    'ttl is not an option: the options are url, redis, ttlMs',
  ],
  [{ url: 'redis://localhost', redis: new Redis({ lazyConnect: true }) }, 'url or redis must be given'],
  [{ url: 'localhost:6379' }, 'url must be a URL that begins with redis:// or rediss://'],
  [{ url: 'redis://:secret@:x' }, 'url must be a URL'],
  [{ url: 'redis://:secret@localhost/shop' }, 'url must have no path but the number of a database'],
  [{ redis: {} as Redis }, 'redis must be a client of ioredis'],
  [{ redis: null as unknown as Redis }, 'redis must be a client of ioredis'],
  // The package `redis` has such clients.
  [{ redis: { duplicate: () => expect.fail('it was used') } as never }, 'redis must be a client of ioredis'],
  [
    { redis: new Cluster([], { lazyConnect: true }) },
    'redis is a client of a cluster: locks need a single Redis',
  ],
])('%# are refused with a message', async (options, message) => {
  const error = await Locks.open(options).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ name: 'InvalidInput', message: expect.stringContaining(message) });
  expect(String(error)).not.toContain('secret');
});
