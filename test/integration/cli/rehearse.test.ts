/** `stockade rehearse` on real stores: it says go on good ones, no-go by name on bad ones, and leaves nothing behind. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { BY } from '../../support/author.ts';
import { callCli, RunningCli, runCli } from '../../support/cli/cli.ts';
import { gravest, namesIn, rehearsalsIn, reportIn, SMALL, stores } from '../../support/cli/rehearsals.ts';
import { freshDatabase, freshPrefix, redisAdminUrl, redisUrl, until } from '../../support/fixtures.ts';
import { LONG_TIMEOUTS_ENV } from '../../support/long-timeouts.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { query } from '../../support/shop/truth.ts';
import { isRelease } from '../../support/tier.ts';

/** What every node writes at its start and its end. */
const OF_PROCESSES = ['worker_leases', 'processes'];

/** That of the other tests runs without fsync. */
let postgres: PostgresServer;

beforeAll(async () => {
  postgres = await PostgresServer.start();
});

afterAll(() => postgres[Symbol.asyncDispose]());

afterEach(() => {
  vi.restoreAllMocks();
});

async function tablesOf(url: string): Promise<Record<string, unknown[]>> {
  const tables = await query<{ name: string }>(
    url,
    "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1",
  );
  const found: Record<string, unknown[]> = {};
  for (const { name } of tables) {
    if (OF_PROCESSES.includes(name)) continue;
    const rows = await query<{ row: unknown }>(
      url,
      `SELECT to_jsonb(t) AS row FROM ${name} t ORDER BY t::text`,
    );
    found[name] = rows.map(({ row }) => row);
  }
  return found;
}

async function keysOf(prefix: string): Promise<string[]> {
  const redis = new Redis(redisAdminUrl());
  const keys = await redis.keys(`${prefix}*`);
  redis.disconnect();
  return keys.sort();
}

test('on Redis and Postgres: go, and nothing is left but what every deleted sale leaves', async () => {
  const env = await stores(postgres);
  const node = await startTestNode({
    redisUrl: env.REDIS_URL,
    databaseUrl: env.DATABASE_URL,
    keyPrefix: env.KEY_PREFIX,
  });
  await node.ops.create({ id: 'tickets', stock: 5 }, BY.actor);
  expect((await node.buy('tickets', 'anna')).status).toBe(201);
  await until(async () => (await query(env.DATABASE_URL, 'SELECT 1 FROM order_events')).length === 0, {
    what: 'the events of the shop are sent',
  });
  await node.stop();
  await node[Symbol.asyncDispose]();
  const before = { tables: await tablesOf(env.DATABASE_URL), keys: await keysOf(env.KEY_PREFIX) };
  const folder = await mkdtemp(join(tmpdir(), 'report-'));
  const file = join(folder, 'friday.html');

  const refused = await runCli(['rehearse', ...SMALL], { env: { ...env } });
  expect(refused).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('1 sale of the shop is open on these stores (tickets)'),
  });
  expect({ tables: await tablesOf(env.DATABASE_URL), keys: await keysOf(env.KEY_PREFIX) }).toEqual(before);

  const { exitCode, stdout, stderr } = await runCli(['rehearse', ...SMALL, '--yes', '--report', file], {
    env: { ...LONG_TIMEOUTS_ENV, ...env },
  });
  const report = reportIn(stdout);
  expect(gravest(report), stderr).toEqual([]);
  expect(exitCode).toBe(report.go ? 0 : 3);
  expect(report.sold).toEqual({ orders: 20, left: 0, buyersAsked: 38 });
  expect(report.totals!.ended.committed).toBe(20);
  expect(report.totals!.nodeMicros).toBeGreaterThan(0);
  expect(report.totals!.redisMicros).toBeGreaterThan(0);
  expect(await readFile(file, 'utf8')).toContain(`<h1>${report.go ? 'GO' : 'NO-GO'}</h1>`);
  await rm(folder, { recursive: true });

  const { deleted_sales: deleted, ...tables } = await tablesOf(env.DATABASE_URL);
  const { deleted_sales: _, ...tablesBefore } = before.tables;
  expect(tables).toEqual(tablesBefore);
  expect(deleted).toMatchObject([{ id: report.saleId, orders: 20, done: 20 }]);
  const added = (await keysOf(env.KEY_PREFIX)).filter((key) => !before.keys.includes(key));
  expect(added).toEqual([`${env.KEY_PREFIX}{${report.saleId}}:sale`]);
});

const LONG = ['--rate', '40', '--for', '600', '--stock', '20'];

test('Ctrl-C removes the sale', async () => {
  const env = await stores(postgres);
  await using cli = new RunningCli(['rehearse', ...LONG], { env: { ...env } });
  await cli.said(/The crowd comes/);
  const [saleId] = (await rehearsalsIn(env)).there;
  cli.signal('SIGINT');
  expect(await cli.ended).toMatchObject({ exitCode: 130 });
  expect(await rehearsalsIn(env)).toEqual({ there: [], deleted: [saleId] });
});

if (isRelease) {
  test('a rehearsal that is killed ends its nodes, and --clean removes its sale', async () => {
    const env = await stores(postgres);
    await using cli = new RunningCli(['rehearse', ...LONG], { env: { ...env } });
    await cli.said(/The crowd comes/);
    const [saleId] = (await rehearsalsIn(env)).there;
    const beside = await runCli(['rehearse', ...SMALL], { env: { ...env } });
    expect(beside.stderr).toContain(`another rehearsal is under way on these stores (${saleId})`);
    cli.signal('SIGKILL');
    await cli.ended;
    await until(async () => (await query(env.DATABASE_URL, 'SELECT 1 FROM processes')).length === 0, {
      what: 'the node of the killed rehearsal has stopped',
    });
    const { stdout } = await runCli(['rehearse', '--clean', '--json'], { env: { ...env } });
    expect(JSON.parse(stdout)).toEqual({ removed: [saleId] });
    expect(await rehearsalsIn(env)).toEqual({ there: [], deleted: [saleId] });
  });
}

test('faults need stores that nodes share, and are refused beside open sales', async () => {
  expect(await callCli(['rehearse', '--kill-node'])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--kill-node: set REDIS_URL and DATABASE_URL'),
  });
  const tls = { REDIS_URL: 'rediss://127.0.0.1:1', DATABASE_URL: 'postgres://127.0.0.1:1/x' };
  expect(await callCli(['rehearse', '--cut-redis'], { env: tls })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('not through TLS'),
  });
  const env = await stores(postgres);
  const node = { redisUrl: env.REDIS_URL, databaseUrl: env.DATABASE_URL, keyPrefix: env.KEY_PREFIX };
  await using running = await startTestNode(node);
  await running.ops.create({ id: 'tickets', stock: 5 }, BY.actor);
  const given = ['--url', running.publicUrl, '--yes', '--kill-node'];
  const refused = await runCli(['rehearse', ...given], { env: { ...env } });
  expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('add --beside-open-sales') });
  expect(await running.ops.list()).toMatchObject({ sales: [{ id: 'tickets' }] });
});

test('tokens that only others can sign are refused', async () => {
  const alien = { BUYER_AUTH: 'jwt', JWT_JWKS_URL: 'https://keys.example/jwks' };
  expect(await callCli(['rehearse'], { env: alien })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('Set BUYER_AUTH=header to rehearse'),
  });
});

test('stores elsewhere need --yes; half of the stores, and bad values, are refused', async () => {
  const elsewhere = {
    REDIS_URL: 'redis://redis.shop.example',
    DATABASE_URL: 'postgres://db.shop.example/shop',
  };
  const byParameter = {
    REDIS_URL: 'redis://localhost',
    DATABASE_URL: 'postgres://localhost/shop?host=db.shop.example',
  };
  for (const [env, hosts] of [
    [elsewhere, 'redis.shop.example, db.shop.example'],
    [byParameter, 'db.shop.example'],
  ] as const)
    expect(await callCli(['rehearse'], { env })).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(`the crowd loads ${hosts}`),
    });
  const { DATABASE_URL: _, ...half } = elsewhere;
  expect(await callCli(['rehearse', '--yes'], { env: half })).toMatchObject({ exitCode: 2 });
  expect(await callCli(['rehearse', '--nodes', '2'])).toMatchObject({ exitCode: 2 });
  expect(await callCli(['rehearse', '--report', '/no/such/folder/a.html'])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--report /no/such/folder/a.html can'),
  });
  expect(await callCli(['rehearse', '--report', tmpdir()])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("can't be written: it is a folder"),
  });
  expect(await callCli(['rehearse', '--rate', 'fast'])).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('--rate is "fast"'),
  });
});

test('no-go: a user who may not delete the sale; nothing is created', async () => {
  const env = { REDIS_URL: redisUrl(), DATABASE_URL: await freshDatabase(), KEY_PREFIX: freshPrefix() };
  const { exitCode, stdout } = await callCli(['rehearse', ...SMALL], { env });
  expect(exitCode).toBe(3);
  expect(namesIn(stdout)).toContain('postgres deletion');
  expect(reportIn(stdout)).not.toHaveProperty('saleId');
  expect(reportIn(stdout).remarks).toContain('The crowd was not sent, because a check failed.');
  expect(await keysOf(env.KEY_PREFIX)).toEqual([]);
});

test('no-go: a Postgres without fsync, and with too few connections', async () => {
  await using weak = await PostgresServer.start({
    settings: { fsync: 'off', max_connections: '10' },
  });
  const { exitCode, stdout } = await callCli(['rehearse', ...SMALL, '--nodes', '2'], {
    env: { REDIS_URL: redisUrl(), DATABASE_URL: await weak.createDatabase(), KEY_PREFIX: freshPrefix() },
  });
  expect(exitCode).toBe(3);
  expect(namesIn(stdout)).toEqual(['postgres fsync', 'postgres connections']);
});

test('no-go: a Redis that evicts, and a clock that is ahead of those of the stores', async () => {
  await using redis = await RedisServer.start({ extraArgs: ['--maxmemory-policy', 'allkeys-lru'] });
  const env = { REDIS_URL: redis.productUrl, DATABASE_URL: (await stores(postgres)).DATABASE_URL };
  const real = Date.now;
  vi.spyOn(Date, 'now').mockImplementation(() => real() + 2_000);
  const { exitCode, stdout } = await callCli(['rehearse', ...SMALL], { env });
  expect(exitCode).toBe(3);
  expect(namesIn(stdout)).toEqual(['redis maxmemory-policy', 'clocks difference']);
});

if (isRelease) {
  test('no-go: a replica of Redis that does not follow', async () => {
    await using primary = await RedisServer.start();
    await using replica = await RedisServer.start({
      extraArgs: ['--replicaof', '127.0.0.1', String(primary.port)],
    });
    const admin = new Redis(primary.url);
    await until(async () => (await admin.info('replication')).includes('state=online'), {
      what: 'the replica follows',
    });
    const { DATABASE_URL } = await stores(postgres);
    await replica.pause();
    try {
      await until(
        async () => /state=online,offset=\d+,lag=([5-9]|\d\d)/.test(await admin.info('replication')),
        {
          what: 'the replica is silent',
        },
      );
      const { exitCode, stdout } = await callCli(['rehearse', ...SMALL], {
        env: { REDIS_URL: primary.productUrl, DATABASE_URL },
      });
      expect(exitCode).toBe(3);
      expect(namesIn(stdout)).toEqual(['redis replicas']);
    } finally {
      replica.resume();
      admin.disconnect();
    }
  });
}

// `cli-node.test.ts` has a demo on the embedded default.
if (isRelease) {
  test('on the embedded default: go, but no size for a real sale', async () => {
    const cwd = await mkdtemp(join(tmpdir(), 'rehearsal-'));
    const { stdout, stderr } = await runCli(['rehearse', ...SMALL], { cwd });
    const report = reportIn(stdout);
    expect(gravest(report), stderr).toEqual([]);
    expect(report).toMatchObject({ embedded: true, sold: { orders: 20 }, database: 'pglite' });
    expect(report.remarks[0]).toContain('no size for a real sale');
    expect(await readdir(cwd)).toEqual([]);
    await rm(cwd, { recursive: true });
  });
}
