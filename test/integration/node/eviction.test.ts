/** A Redis that may evict keys: no process starts on it, and one that already runs reports it until the setting is corrected. */
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { lookForEviction } from '../../../src/redis/eviction.ts';
import { callCli, runCli } from '../../support/cli/cli.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';

const GAUGE = 'stockade_redis_evicting_servers';

async function setPolicy(server: RedisServer, policy: string): Promise<void> {
  const redis = new Redis(server.url);
  await redis.config('SET', 'maxmemory-policy', policy);
  redis.disconnect();
}

test('serve and sync do not start on it, doctor fails: each says what to do', async () => {
  // Without a memory limit, which may be set at any time.
  await using redis = await RedisServer.start({ extraArgs: ['--maxmemory-policy', 'volatile-lru'] });
  const env = { REDIS_URL: redis.url, DATABASE_URL: await freshDatabase(), KEY_PREFIX: freshPrefix() };
  for (const command of ['serve --port 0', 'sync']) {
    const ended = await runCli([...command.split(' '), '--ops-port', '0', '--json'], { env });
    expect(ended.exitCode).toBe(2);
    expect(ended.stderr).toMatch(
      /^error: REDIS_URL leads to the Redis at 127.0.0.1:\d+, whose maxmemory-policy is volatile-lru: set it to noeviction/m,
    );
    expect(JSON.parse(ended.stdout)).toMatchObject({ error: { code: 'invalid_config' } });
  }
  const doctor = await callCli(['doctor', '--port', '0', '--ops-port', '0', '--json'], { env });
  expect(doctor.exitCode).toBe(1);
  expect(JSON.parse(doctor.stdout).checks).toContainEqual(
    expect.objectContaining({ name: 'maxmemory-policy', status: 'fail', found: 'volatile-lru' }),
  );
});

test('a running node continues, and reports it in its metrics and its log until the setting is corrected', async () => {
  await using redis = await RedisServer.start();
  await using node = await startTestNode({ redisUrl: redis.url, databaseUrl: await freshDatabase() });
  expect(await metric(node, GAUGE)).toBe(0);
  await setPolicy(redis, 'allkeys-lru');
  await until(async () => (await metric(node, GAUGE)) === 1, { what: 'the alarm', timeoutMs: 30_000 });
  const alarm = 'whose maxmemory-policy is allkeys-lru: set it to noeviction';
  await until(async () => (await node.log()).includes(alarm), { what: 'the log tells of it' });
  expect((await node.opsRequest('/readyz')).status).toBe(200);
  await setPolicy(redis, 'noeviction');
  await until(async () => (await metric(node, GAUGE)) === 0, { what: 'its end', timeoutMs: 30_000 });
  await until(async () => (await node.log()).includes('Redis keeps all keys again'), { what: 'the log' });
});

test('one server of a cluster is found by any address of it, also while another does not answer', async () => {
  await using servers = await RedisCluster.start();
  expect(await lookForEviction(servers.urls)).toEqual({ evicting: [], silent: [] });
  const [first, second, third] = servers.primaries;
  await setPolicy(second!, 'allkeys-lfu');
  const evicting = [{ server: `127.0.0.1:${second!.port}`, policy: 'allkeys-lfu' }];
  expect(await lookForEviction([first!.url])).toEqual({ evicting, silent: [] });
  await third!.pause();
  try {
    const silent = [`127.0.0.1:${third!.port}`];
    expect(await lookForEviction([first!.url])).toEqual({ evicting, silent });
  } finally {
    third!.resume();
  }
});

test('a Redis that can’t be reached does not count as one that keeps its keys', async () => {
  expect(await lookForEviction([redisUrl()])).toEqual({ evicting: [], silent: [] });
  await expect(lookForEviction(['redis://127.0.0.1:1'])).rejects.toMatchObject({ code: 'not_executed' });
});
