/** TLS to both stores: all traffic uses it, and a server that can't prove its identity gets nothing. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callCli } from '../../support/cli/cli.ts';
import { freshPrefix, until } from '../../support/fixtures.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { expectSold, makeSale } from '../../support/nodes/stores.ts';
import { APP_ROLE, asUser, createMigratedDatabase } from '../../support/postgres/least-rights.ts';
import { Authority } from '../../support/servers/certificates.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';
import { inTier, isRelease } from '../../support/tier.ts';

let ours: Authority;
let another: Authority;
let redis: RedisServer;
let postgres: PostgresServer;
/** A url without TLS, for a role that must not connect that way. */
let plainDatabase: string;

beforeAll(async () => {
  [ours, another] = await Promise.all([Authority.create(), Authority.create()]);
  const certificate = await ours.sign('server', 'IP:127.0.0.1');
  [redis, postgres] = await Promise.all([
    RedisServer.start({ certificate }),
    PostgresServer.start({ certificate }),
  ]);
  const url = new URL(postgres.url);
  url.pathname = `/${await createMigratedDatabase(postgres.url, { encrypted: withAuthority(ours) })}`;
  plainDatabase = asUser(url.href, APP_ROLE);
});

afterAll(async () => {
  for (const part of [redis, postgres, ours, another]) await part?.[Symbol.asyncDispose]();
});

function withAuthority({ certificate }: Authority) {
  return (url: string) => `${url}?sslmode=verify-full&sslrootcert=${certificate}`;
}

const secure = (url: string, authority = ours) => withAuthority(authority)(url);
const trusting = (url: string, { certificate }: Authority) =>
  url.replace(/sslrootcert=.*/, `sslrootcert=${certificate}`);
/** The servers listen on one address of `localhost`, so attempts at others would only cost time. */
const NODE_OPTIONS = '--dns-result-order=ipv4first --no-network-family-autoselection';
const atName = (url: string, name: string) => url.replace('127.0.0.1', name);

/** A sale with segments on all servers of the cluster is sold to its last unit. */
async function expectSells(redis: string): Promise<void> {
  await using shop = await Shop.open({ redis });
  const sale = await shop.sell({ stock: 60, segments: 12 });
  const sync = await shop.startSync();
  await sync.ready;
  const till = await shop.startEngine();
  const outcomes = await till.buyAll(sale.id, buyers(61));
  expect(outcomes.filter(({ code }) => code === 'committed')).toHaveLength(60);
  expect(await shop.service.verify(sale.id)).toMatchObject({ ok: true });
}

describe('a node', () => {
  // One shop: a database belongs to one prefix.
  const keyPrefix = freshPrefix();

  test.each(inTier({ test: ['script'], release: ['script', 'lock'] }))(
    'does all its work over TLS, with STRATEGY=%s',
    async (STRATEGY) => {
      const env = { WORKERS: '2', STRATEGY };
      const stores = { redisUrl: redis.tlsUrl, databaseUrl: secure(plainDatabase), keyPrefix };
      await using node = await startTestNode({ ...stores, env });
      const sale = await makeSale(node);
      const bought = await Promise.all(buyers(8).map((buyer) => node.buy(sale, buyer)));
      expect(new Set(bought.map(({ code }) => code))).toEqual(new Set(['committed']));
      const { orderId } = bought[0]!.body;
      const headers = { 'x-buyer-id': 'buyer-0' };
      expect((await node.request(`/v1/orders/${orderId}/cancel`, { method: 'POST', headers })).status).toBe(
        200,
      );
      await expectSold(node, sale, 7);

      await using admin = disposable(new Redis(redis.url));
      const clients = String(await admin.client('LIST')).split('\n');
      const product = clients.filter((line) => line.includes(' user=stockade '));
      const port = new URL(redis.tlsUrl).port;
      expect(product.length).toBeGreaterThan(2);
      expect(product.filter((line) => !line.includes(` laddr=127.0.0.1:${port} `))).toEqual([]);
      const sessions = await query<{ ssl: boolean }>(
        postgres.url,
        'SELECT s.ssl FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) WHERE a.usename = $1',
        [APP_ROLE],
      );
      expect(sessions.length).toBeGreaterThan(2);
      expect(sessions.filter(({ ssl }) => !ssl)).toEqual([]);
      await node.stop();
    },
  );

  if (isRelease) {
    test('finds every server of a cluster over TLS', async () => {
      const certificate = await ours.sign('cluster', 'IP:127.0.0.1');
      await using cluster = await RedisCluster.start({ certificate });
      await expectSells(cluster.tlsUrl);
    });
  }

  test('finds every server of a cluster by its name, if the certificates contain no address', async () => {
    const certificate = await ours.sign('named', 'DNS:localhost');
    const extraArgs = ['--cluster-announce-hostname', 'localhost'];
    await using cluster = await RedisCluster.start({ certificate, extraArgs });
    const url = cluster.tlsUrl.replaceAll('127.0.0.1', 'localhost');
    const primaries = async () =>
      (await doctor({ NODE_OPTIONS, REDIS_URL: url })).find(({ name }) => name.endsWith(' primaries'));
    expect(await primaries()).toMatchObject({
      status: 'fail',
      found: expect.stringMatching(
        /^Redis at 127\.0\.0\.1:\d+ can't be reached: .*does not match certificate/,
      ),
      advice: expect.stringContaining('cluster-preferred-endpoint-type hostname'),
    });

    for (const server of cluster.primaries) {
      await using admin = disposable(new Redis(server.url));
      await admin.config('SET', 'cluster-preferred-endpoint-type', 'hostname');
    }
    expect(await primaries()).toMatchObject({ status: 'ok' });
    await expectSells(url);
  });

  test('names in its log the certificate that has expired while it ran, and sells when Redis has another one', async () => {
    const names = 'IP:127.0.0.1';
    const [valid, expired] = await Promise.all([ours.sign('valid', names), ours.sign('expired', names, -1)]);
    await using server = await RedisServer.start({ certificate: valid });
    await using admin = disposable(new Redis(server.url));
    const databaseUrl = secure(
      asUser(
        new URL(`/${await createMigratedDatabase(postgres.url, { encrypted: secure })}`, postgres.url).href,
        APP_ROLE,
      ),
    );
    await using node = await startTestNode({
      redisUrl: server.tlsUrl,
      databaseUrl,
      keyPrefix: freshPrefix(),
      env: { WORKERS: '1' },
    });
    const sale = await makeSale(node);
    const show = async ({ cert, key }: { cert: string; key: string }) => {
      await admin.call('CONFIG', 'SET', 'tls-cert-file', cert, 'tls-key-file', key);
      for (const type of ['NORMAL', 'PUBSUB'])
        await admin.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
    };
    const lines = async (msg: string) =>
      (await node.log()).split('\n').filter((line) => line.includes(`"msg":"${msg}`));

    await show(expired);
    await until(async () => (await lines('Redis can’t be reached')).length > 0, { what: 'the log says it' });
    const [line] = await lines('Redis can’t be reached');
    expect(JSON.parse(line!)).toMatchObject({
      level: 40,
      server: new URL(server.tlsUrl).host,
      err: { message: 'certificate has expired' },
    });
    await show(valid);
    await until(async () => (await node.buy(sale, 'late')).code === 'committed', { what: 'a purchase' });
    expect(await lines('Redis can’t be reached')).toHaveLength(1);
    expect(await lines('Redis is reached again')).toHaveLength(1);
  });

  test('shows its own certificate to a Redis that asks for one', async () => {
    const { cert, key } = await ours.sign('client', 'DNS:client');
    const url = `${redis.tlsUrl}&sslcert=${cert}&sslkey=${key}`;
    await using admin = disposable(new Redis(redis.url));
    await admin.config('SET', 'tls-auth-clients', 'yes');
    const [without, shown] = [await doctor({ REDIS_URL: redis.tlsUrl }), await doctor({ REDIS_URL: url })];
    await admin.config('SET', 'tls-auth-clients', 'no');
    expect(without.find((check) => check.name === 'reachable')).toMatchObject({ status: 'fail' });
    expect(shown.find((check) => check.name === 'reachable')).toMatchObject({ status: 'ok' });
  });
});

describe('a connection that does not meet the settings is refused, and the command says what to do', () => {
  const cases: [string, () => NodeJS.ProcessEnv, RegExp, RegExp][] = [
    [
      'Redis, signed by no trusted authority',
      () => ({ REDIS_URL: redis.tlsUrl.split('?')[0]! }),
      /self-signed certificate|unable to verify/,
      /sslrootcert/,
    ],
    [
      'Redis, signed by another authority',
      () => ({ REDIS_URL: trusting(redis.tlsUrl, another) }),
      /certificate/,
      /sslrootcert/,
    ],
    [
      'Redis, at another name than the certificate’s',
      () => ({ REDIS_URL: atName(redis.tlsUrl, 'localhost') }),
      /does not match certificate/,
      /another name/,
    ],
    [
      'Redis, without TLS at the port for TLS',
      () => ({ REDIS_URL: redis.tlsUrl.replace('rediss:', 'redis:').split('?')[0]! }),
      /Redis at 127\.0\.0\.1:\d+ can't be reached/,
      /rediss:\/\//,
    ],
    [
      'Redis, with TLS at the port without',
      () => ({ REDIS_URL: redis.productUrl.replace('redis:', 'rediss:') }),
      /Redis at 127\.0\.0\.1:\d+ can't be reached/,
      /does the server speak TLS/,
    ],
    [
      'Postgres, signed by no trusted authority',
      () => ({ DATABASE_URL: `${plainDatabase}?sslmode=require` }),
      /postgres:\/\/\S+:\d+\/\S+ can't be reached: .*certificate/,
      /sslrootcert/,
    ],
    [
      'Postgres, signed by another authority',
      () => ({ DATABASE_URL: secure(plainDatabase, another) }),
      /postgres:\/\/\S+:\d+\/\S+ can't be reached: .*certificate/,
      /sslrootcert/,
    ],
    [
      'Postgres, at another name than the certificate’s',
      () => ({ DATABASE_URL: atName(secure(plainDatabase), 'localhost') }),
      /postgres:\/\/\S+:\d+\/\S+ can't be reached: .*does not match certificate/,
      /another name/,
    ],
    [
      'Postgres, without TLS where it is required',
      () => ({ DATABASE_URL: plainDatabase }),
      /no encryption/,
      /sslmode=verify-full/,
    ],
  ];

  test.each(cases)('%s', async (_, env, said, advice) => {
    // With a database url, because otherwise the program starts one of its own.
    const stores = { NODE_OPTIONS, DATABASE_URL: secure(plainDatabase), ...env() };
    const command = 'REDIS_URL' in stores ? ['sale', 'list'] : ['migrate'];
    const { exitCode, stdout, stderr } = await callCli(command, { env: stores });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    const [error, ...more] = stderr.trimEnd().split('\n');
    expect(error).toMatch(/^error: /);
    expect(error).toMatch(said);
    expect(more.join('\n')).toMatch(advice);
  });
});

describe('doctor', () => {
  test('says how each connection is protected', async () => {
    const env = { REDIS_URL: redis.tlsUrl, DATABASE_URL: secure(plainDatabase) };
    const found = await doctor(env);
    expect(found.filter(({ name }) => name === 'encryption')).toEqual([
      { group: 'redis', name: 'encryption', status: 'ok', found: 'TLS, and the certificate is checked' },
      { group: 'postgres', name: 'encryption', status: 'ok', found: 'TLS, and the certificate is checked' },
    ]);
  });
});

async function doctor(env: NodeJS.ProcessEnv): Promise<{ group: string; name: string; status: string }[]> {
  return JSON.parse((await callCli(['doctor', '--json'], { env })).stdout).checks;
}

function disposable(redis: Redis): Redis & AsyncDisposable {
  return Object.assign(redis, { [Symbol.asyncDispose]: async () => redis.disconnect() });
}
