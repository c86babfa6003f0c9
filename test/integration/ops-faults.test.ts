/** What operators are told while a store is away: by the ops port and by commands that work on the stores themselves. */
import { expect, test } from 'vitest';
import { runCli } from '../support/cli.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../support/fixtures.ts';
import { type Answer, type RequestSpec, startTestNode, type TestNode } from '../support/node.ts';
import { PostgresServer } from '../support/servers/postgres-server.ts';
import { RedisServer } from '../support/servers/redis-server.ts';

const SALE = 'tickets';
/** A look after five seconds and two for the answer that does not come, with some air. */
const GIVEN_UP_MS = 15_000;

const CALLS: readonly (readonly [string, RequestSpec?])[] = [
  ['/v1/sales'],
  ['/v1/sales', { method: 'POST', body: '{"id":"more","stock":1}' }],
  [`/v1/sales/${SALE}`],
  [`/v1/sales/${SALE}`, { method: 'PATCH', body: '{"action":"pause"}' }],
  [`/v1/sales/${SALE}/verify`, { method: 'POST' }],
];

const askAll = (node: TestNode): Promise<Answer[]> =>
  Promise.all(CALLS.map(([path, spec]) => node.opsRequest(path, spec)));

function expectAway(answers: readonly Answer[], title: string): void {
  for (const answer of answers) {
    expect(answer).toMatchObject({ status: 503, code: 'unavailable', body: { title } });
  }
}

test('Redis stands still: every operation is given up and says so, and all goes on afterwards', async () => {
  await using redis = await RedisServer.start();
  const stores = { redisUrl: redis.url, databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
  await using node = await startTestNode({ ...stores, env: { WORKERS: '1' } });
  await node.ops.create({ id: SALE, stock: 5 });
  await redis.pause();
  try {
    const began = performance.now();
    expectAway(await askAll(node), 'Redis does not answer');
    expect(performance.now() - began).toBeLessThan(GIVEN_UP_MS);
    expect((await node.opsRequest('/metrics')).status).toBe(200);
    expect((await node.opsRequest('/healthz')).status).toBe(200);
  } finally {
    redis.resume();
  }
  const verified = async () => (await node.ops.verify(SALE)).ok;
  await until(verified, { what: 'operators are served again', timeoutMs: 30_000 });
});

test('Postgres is gone: every operation fails at once and says so', async () => {
  await using postgres = await PostgresServer.start();
  const stores = { redisUrl: redisUrl(), databaseUrl: await postgres.createDatabase() };
  await using node = await startTestNode({ ...stores, keyPrefix: freshPrefix(), env: { WORKERS: '1' } });
  await node.ops.create({ id: SALE, stock: 5 });
  await postgres.stop();
  expectAway(await askAll(node), 'Postgres does not answer');
  await postgres.restart();
});

test('a command that works on the stores themselves does not wait for a Redis that stands still', async () => {
  await using redis = await RedisServer.start();
  const env = { REDIS_URL: redis.url, DATABASE_URL: await freshDatabase(), KEY_PREFIX: freshPrefix() };
  expect((await runCli(['migrate'], { env })).exitCode).toBe(0);
  await redis.pause();
  const { exitCode, stdout, stderr } = await runCli(['sale', 'list'], { env });
  redis.resume();
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(/^error: Redis at 127\.0\.0\.1:\d+ can't be reached/);
});
