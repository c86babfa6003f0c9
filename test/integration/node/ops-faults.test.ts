/** The answers to operators while a store is away: from the ops port, and from commands that work on the stores directly. */
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { callCli, RunningCli } from '../../support/cli/cli.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { type Answer, type RequestSpec, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { isRelease } from '../../support/tier.ts';

interface OwnStores {
  readonly databaseUrl: string;
  readonly keyPrefix: string;
}

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

/** Operations that need no Redis, or not at once. */
const ORDER_CALLS: typeof CALLS = [
  ['/v1/orders/1'],
  ['/v1/orders/1/pay', { method: 'POST', body: '{"payType":"card"}' }],
  ['/v1/orders/1/refund', { method: 'POST' }],
  ['/v1/refunds-due'],
];

const askAll = (node: TestNode, calls = CALLS): Promise<Answer[]> =>
  Promise.all(calls.map(([path, spec]) => node.opsRequest(path, spec)));

async function createSale({ databaseUrl, keyPrefix }: OwnStores, redis: string): Promise<void> {
  const env = { REDIS_URL: redis, DATABASE_URL: databaseUrl, KEY_PREFIX: keyPrefix };
  const { exitCode } = await callCli(['sale', 'create', SALE, '--stock', '5'], { env });
  expect(exitCode).toBe(0);
}

/** Without a sync, only a worker's connection for takes has called a script and then published a message. */
async function killConnectionsThatTook(url: string): Promise<number> {
  const client = new Redis(url);
  try {
    const list = String(await client.client('LIST'));
    const taking = [...list.matchAll(/^id=(\d+) .* cmd=(?:evalsha|publish) /gm)].map(([, id]) => id!);
    for (const id of taking) await client.client('KILL', 'ID', id);
    return taking.length;
  } finally {
    client.disconnect();
  }
}

function expectAway(answers: readonly Answer[], detail: string): void {
  for (const answer of answers) {
    expect(answer).toMatchObject({
      status: 503,
      code: 'unavailable',
      body: { detail: expect.stringContaining(detail) },
    });
  }
}

test('Redis is frozen: every operation ends with an error in time, and works again afterwards', async () => {
  await using redis = await RedisServer.start();
  const stores = { redisUrl: redis.productUrl, databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
  await using node = await startTestNode({ ...stores, env: { WORKERS: '1' } });
  await node.ops.create({ id: SALE, stock: 5 }, BY.actor);
  const { orderId } = (await node.buy(SALE, 'anna')).body;
  await redis.pause();
  try {
    const cancel = { method: 'POST', headers: { 'x-buyer-id': 'anna' } } as const;
    const cancelled = await node.request(`/v1/orders/${orderId}/cancel`, cancel);
    expect(cancelled).toMatchObject({ status: 200, code: 'cancelled' });
    const began = performance.now();
    expectAway(await askAll(node), 'Redis does not answer');
    expect(performance.now() - began).toBeLessThan(GIVEN_UP_MS);
    expect((await node.opsRequest('/metrics')).status).toBe(200);
    expect((await node.opsRequest('/healthz')).status).toBe(200);
    expect(await node.opsRequest('/readyz')).toMatchObject({
      status: 503,
      body: { status: 'not ready', reason: 'Redis does not answer' },
    });
  } finally {
    redis.resume();
  }
  const verified = async () => (await node.ops.verify(SALE)).ok;
  await until(verified, { what: 'operators are served again', timeoutMs: 30_000 });
  await until(async () => (await node.ops.show(SALE)).remaining === 5, {
    what: 'the cancelled unit is back',
  });
});

if (isRelease) {
  test('a worker alone has lost Redis: the node is not ready until it is back', async () => {
    await using redis = await RedisServer.start();
    await using proxy = await TcpProxy.start(redis.port);
    const stores = { databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
    const env = { WORKERS: '1', SYNC: 'off' };
    await using node = await startTestNode({ ...stores, redisUrl: proxy.through(redis.url), env });
    await createSale(stores, redis.url);
    expect((await node.buy(SALE, 'anna', { prefer: 'respond-async' })).status).toBe(202);
    const readiness = async () => (await node.opsRequest('/readyz')).body;
    expect(await readiness()).toEqual({ status: 'ready' });
    proxy.refuse(true);
    expect(await killConnectionsThatTook(redis.url)).toBe(1);
    const lost = async () => /^worker \d+ has no connection to Redis$/.test((await readiness()).reason);
    await until(lost, { what: 'the node is not ready' });
    proxy.refuse(false);
    await until(async () => (await readiness()).status === 'ready', { what: 'the node is ready again' });
  });
}

test('Postgres is gone: every operation fails at once, with the reason', async () => {
  await using postgres = await PostgresServer.start();
  const stores = {
    redisUrl: redisUrl(),
    databaseUrl: await postgres.createDatabase(),
    keyPrefix: freshPrefix(),
  };
  await using node = await startTestNode({ ...stores, env: { WORKERS: '1', PUBLIC_PAYMENT: '1' } });
  await node.ops.create({ id: SALE, stock: 5 }, BY.actor);
  const { redisUrl: REDIS_URL, databaseUrl: DATABASE_URL, keyPrefix: KEY_PREFIX } = stores;
  await using sync = new RunningCli(['sync', '--ops-port', '0', '--json'], {
    env: { REDIS_URL, DATABASE_URL, KEY_PREFIX, OPS_TOKEN: node.opsToken },
  });
  const { opsUrl } = JSON.parse((await sync.said(/^.*"syncing":true.*$/m))[0]);
  await postgres.stop();
  expectAway(await askAll(node, [...CALLS, ...ORDER_CALLS]), 'Postgres does not answer');
  const pay = { method: 'POST', headers: { 'x-buyer-id': 'anna' }, body: '{"payType":"card"}' } as const;
  expect(await node.request('/v1/orders/1/pay', pay)).toMatchObject({ status: 503, code: 'unknown' });
  // A node can still sell; a sync has nothing to do.
  expect((await node.opsRequest('/readyz')).status).toBe(200);
  const readiness = await fetch(`${opsUrl}/readyz`);
  expect(readiness.status).toBe(503);
  expect(await readiness.json()).toMatchObject({ reason: 'Postgres does not answer' });
  await postgres.restart();
});

test('a command that works on the stores directly does not wait for a frozen Redis', async () => {
  await using redis = await RedisServer.start();
  const env = { REDIS_URL: redis.productUrl, DATABASE_URL: await freshDatabase(), KEY_PREFIX: freshPrefix() };
  expect((await callCli(['migrate'], { env })).exitCode).toBe(0);
  await redis.pause();
  const { exitCode, stdout, stderr } = await callCli(['sale', 'list'], { env });
  redis.resume();
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr).toMatch(/^error: Redis at 127\.0\.0\.1:\d+ can't be reached/);
});

if (isRelease) {
  test('a reply of Postgres is lost: the answer says that the change may have been made', async () => {
    const databaseUrl = await freshDatabase();
    await using proxy = await TcpProxy.start(Number(new URL(databaseUrl).port));
    const stores = {
      redisUrl: redisUrl(),
      databaseUrl: proxy.through(databaseUrl),
      keyPrefix: freshPrefix(),
    };
    await using node = await startTestNode({ ...stores, env: { WORKERS: '1' } });
    await node.ops.create({ id: SALE, stock: 5 }, BY.actor);
    const { orderId } = (await node.buy(SALE, 'anna')).body;
    proxy.loseReplies((request) => request.includes('stockade_change_order_by'));
    const pay = [`/v1/orders/${orderId}/pay`, { method: 'POST', body: '{"payType":"card"}' }] as const;
    expectAway([await node.opsRequest(...pay)], 'the change may have been made');
    expect(await node.opsRequest(`/v1/orders/${orderId}`)).toMatchObject({ body: { status: 'paid' } });
  });
}
