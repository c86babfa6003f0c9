/** Health checks from other machines: the probe port, and a node that says that it leaves before it stops. */
import { request } from 'undici';
import { expect, test } from 'vitest';
import { serveProbes } from '../../../src/http/ops/probe-server.ts';
import { BY } from '../../support/author.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { ANY_PORT, openHttpServer } from '../../support/http/http-server.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { redisAndPostgres } from '../../support/nodes/stores.ts';
import { SyncProgram } from '../../support/nodes/sync-program.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { isRelease } from '../../support/tier.ts';

const SALE = 'tickets';
const WITH_PROBES = { PROBE_PORT: '0' };
const DELAY_MS = 1_000;

async function ask(url: string, path: string, method: 'GET' | 'POST' = 'GET') {
  const { statusCode, body } = await request(`${url}${path}`, { method, reset: true });
  return { status: statusCode, body: (await body.json()) as object };
}

test('it serves two paths without a token and without details, and nothing else', async () => {
  await using redis = await RedisServer.start();
  await using node = await startTestNode({
    ...{ redisUrl: redis.productUrl, databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() },
    env: WITH_PROBES,
  });
  const { probeUrl } = node;
  expect(await ask(probeUrl, '/healthz')).toEqual({ status: 200, body: { status: 'ok' } });
  expect(await ask(probeUrl, '/readyz')).toEqual({ status: 200, body: { status: 'ready' } });
  for (const path of [
    '/',
    '/metrics',
    '/console',
    '/openapi.json',
    '/docs',
    '/v1/sales',
    '/readyz/',
    '/healthz/x',
  ])
    expect((await ask(probeUrl, path)).status, path).toBe(404);
  expect((await ask(probeUrl, '/readyz', 'POST')).status).toBe(405);

  await redis.kill();
  await until(async () => (await ask(probeUrl, '/readyz')).status === 503, { what: 'Redis is missed' });
  expect((await ask(probeUrl, '/readyz')).body).toEqual({ status: 'not ready' });
  expect((await ask(probeUrl, '/healthz')).status).toBe(200);
  expect((await node.opsRequest('/readyz')).body.reason).toMatch(/Redis/);
});

if (isRelease) {
  test('there is none unless it is asked for', async () => {
    await using node = await startTestNode(await redisAndPostgres());
    expect(() => node.probeUrl).toThrow('no probe port');
  });
}

test('`stockade sync` has one too', async () => {
  await using sync = await SyncProgram.start({
    ...{ REDIS_URL: redisUrl(), DATABASE_URL: await freshDatabase(), KEY_PREFIX: freshPrefix() },
    ...{ OPS_TOKEN: 'a-token-for-operators', ...WITH_PROBES },
  });
  const [, url] = /"probeUrl":"([^"]+)"/.exec(await sync.log())!;
  expect(await ask(url!, '/readyz')).toEqual({ status: 200, body: { status: 'ready' } });
});

test('the stores are asked once, however many ask', async () => {
  let asked = 0;
  const host = {
    isStopping: () => false,
    notReady: async () => {
      asked++;
      return undefined;
    },
    fault: (error: unknown) => {
      throw error;
    },
  };
  const listener = await serveProbes(host, openHttpServer, ANY_PORT);
  try {
    const url = `http://127.0.0.1:${listener.port}`;
    const began = performance.now();
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(url, '/readyz')));
    const seconds = (performance.now() - began) / 1_000;
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    // Twice a second at most.
    expect(asked).toBeLessThanOrEqual(1 + seconds * 2);
  } finally {
    listener.stopListening();
    await listener.drain(0);
  }
});

test('a node that leaves is not ready, and sells', async () => {
  await using node = await startTestNode({
    ...(await redisAndPostgres()),
    env: { ...WITH_PROBES, STOP_DELAY_MS: '600000' },
  });
  await node.ops.create({ id: SALE, stock: 5 }, BY.actor);
  expect((await ask(node.probeUrl, '/readyz')).status).toBe(200);
  node.signal('SIGTERM');
  await until(async () => (await ask(node.probeUrl, '/readyz')).status === 503, { what: 'it leaves' });
  expect(await node.opsRequest('/readyz')).toMatchObject({ status: 503, body: { reason: 'stopping' } });
  expect((await ask(node.probeUrl, '/healthz')).status).toBe(200);
  // A new connection, as of a buyer whom a load balancer still sends here.
  const headers = { connection: 'close' };
  expect((await node.buy(SALE, 'anna', { headers })).status).toBe(201);
  expect((await node.buy(SALE, 'bob', { headers })).status).toBe(201);
});

if (isRelease) {
  test('it stops after STOP_DELAY_MS', async () => {
    await using node = await startTestNode({
      ...(await redisAndPostgres()),
      env: { ...WITH_PROBES, STOP_DELAY_MS: String(DELAY_MS) },
    });
    const { probeUrl } = node;
    const began = performance.now();
    await node.stop();
    expect(performance.now() - began).toBeGreaterThan(DELAY_MS - 50);
    await expect(ask(probeUrl, '/healthz')).rejects.toThrow();
    const said = (await node.log()).split('\n');
    const at = (msg: string) => said.findIndex((line) => line.includes(`"msg":"${msg}"`));
    expect(at('not ready any more, but still selling')).toBeGreaterThan(0);
    expect(at('stopping')).toBeGreaterThan(at('not ready any more, but still selling'));
  });
}
