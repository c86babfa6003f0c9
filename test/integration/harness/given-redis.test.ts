import { Redis } from 'ioredis';
import { beforeEach, expect, test } from 'vitest';
import { GivenRedis } from '../../support/servers/given-redis.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';

let server: RedisServer;
let redis: Redis;

beforeEach(async () => {
  server = await RedisServer.start();
  redis = new Redis(server.url);
  return async () => {
    redis.disconnect();
    await server[Symbol.asyncDispose]();
  };
});

test('a Redis with any key is refused, and the key stays', async () => {
  await redis.set('of-somebody', 'else');
  await expect(GivenRedis.claim(server.url)).rejects.toThrow(
    'TEST_REDIS_URL is refused: it holds 1 keys: tests only use an empty one',
  );
  expect(await redis.get('of-somebody')).toBe('else');
});

test('a Redis that can’t be reached is refused', async () => {
  await server.stop();
  await expect(GivenRedis.claim(server.url)).rejects.toThrow('TEST_REDIS_URL is refused');
});

test('keys that tests leave are removed in the end, and no others', async () => {
  {
    await using given = await GivenRedis.claim(server.url);
    expect(given.productUrl).toBe(server.url);
    await redis.mset('stockade:t0123:sale', '1', 'of-somebody', 'else');
  }
  expect(await redis.keys('*')).toEqual(['of-somebody']);
});
