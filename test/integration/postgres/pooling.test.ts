/** PgBouncer in front of Postgres: which modes keep a connection's session, and what the product does about the others. */
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { open } from '../../../src/index.ts';
import { findSharedSessions } from '../../../src/postgres/session-probe.ts';
import { callCli } from '../../support/cli/cli.ts';
import { freshDatabase, freshPrefix, redisUrl } from '../../support/fixtures.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { expectSold, makeSale } from '../../support/nodes/stores.ts';
import { SyncProgram } from '../../support/nodes/sync-program.ts';
import { PgBouncer } from '../../support/servers/pgbouncer.ts';

let database: string;

beforeEach(async () => {
  database = await freshDatabase();
});

test('Postgres itself keeps the session of each connection', async () => {
  expect(await findSharedSessions(database)).toBeUndefined();
});

describe('a proxy that pools by transaction', () => {
  let bouncer: PgBouncer;
  let env: Record<string, string>;

  beforeAll(async () => {
    bouncer = await PgBouncer.start('transaction', inject('postgresUrl'));
  });

  afterAll(() => bouncer?.[Symbol.asyncDispose]());

  beforeEach(() => {
    env = { REDIS_URL: redisUrl(), DATABASE_URL: bouncer.through(database), KEY_PREFIX: freshPrefix() };
  });

  test('is found when no other process uses it', async () => {
    expect(await findSharedSessions(env.DATABASE_URL!)).toMatch(
      /^two connections had the session \d+ at once$/,
    );
  });

  test('is found when it has idle sessions', async () => {
    await withIdleSessions(env.DATABASE_URL!, 5);
    expect(await findSharedSessions(env.DATABASE_URL!)).toBeDefined();
  });

  test('is found when it uses its idle sessions in turn', async () => {
    await using inTurn = await PgBouncer.start('transaction', inject('postgresUrl'), {
      server_round_robin: '1',
    });
    const url = inTurn.through(database);
    await withIdleSessions(url, 5);
    expect(await findSharedSessions(url)).toMatch(/^a connection had the session \d+, then \d+$/);
  });

  test('keeps no lock afterwards', async () => {
    await findSharedSessions(env.DATABASE_URL!);
    expect(await advisoryLocks(database)).toBe(0);
  });

  test('a node does not start, and says what to do', async () => {
    const start = startTestNode({
      redisUrl: env.REDIS_URL!,
      databaseUrl: env.DATABASE_URL!,
      keyPrefix: env.KEY_PREFIX!,
    });
    await expect(start).rejects.toThrow(/no_sessions(.|\n)*pool_mode=session/);
  });

  test('sync does not start', async () => {
    await expect(SyncProgram.start(env)).rejects.toThrow('no_sessions');
  });

  test('an embedded shop does not open', async () => {
    const options = { redisUrl: env.REDIS_URL!, databaseUrl: env.DATABASE_URL!, keyPrefix: env.KEY_PREFIX! };
    await expect(open(options)).rejects.toMatchObject({ code: 'no_sessions' });
  });

  test('a command on the stores ends with exit code 2', async () => {
    const { exitCode, stderr } = await callCli(['verify'], { env });
    expect(exitCode).toBe(2);
    expect(stderr).toContain('DATABASE_URL leads to a proxy that shares sessions');
  });

  test('doctor names it', async () => {
    expect(await sessionsCheck(env)).toMatchObject({
      status: 'fail',
      advice: expect.stringContaining('pool_mode=session'),
    });
  });
});

test('a proxy that pools by statement is found', async () => {
  await using bouncer = await PgBouncer.start('statement', inject('postgresUrl'));
  const url = bouncer.through(database);
  expect(await findSharedSessions(url)).toContain('statement pooling');
  expect(await sessionsCheck({ DATABASE_URL: url })).toMatchObject({ status: 'fail' });
});

test('a sale is sold and verified through a proxy that pools by session', async () => {
  await using bouncer = await PgBouncer.start('session', inject('postgresUrl'));
  const databaseUrl = bouncer.through(database);
  await using node = await startTestNode({ redisUrl: redisUrl(), databaseUrl, keyPrefix: freshPrefix() });
  const sale = await makeSale(node, { stock: 2 });
  expect(await node.buy(sale, 'ann')).toMatchObject({ status: 201 });
  expect(await node.buy(sale, 'ben')).toMatchObject({ status: 201 });
  expect(await node.buy(sale, 'cid')).toMatchObject({ status: 409 });
  await expectSold(node, sale, 2);
  expect(await sessionsCheck({ DATABASE_URL: databaseUrl })).toMatchObject({ status: 'ok' });
});

/** Makes the proxy open this many sessions, and leaves them idle. */
async function withIdleSessions(url: string, count: number): Promise<void> {
  const clients = Array.from({ length: count }, () => new pg.Client({ connectionString: url }));
  await Promise.all(clients.map((client) => client.connect()));
  for (const client of clients) await client.query('BEGIN');
  for (const client of clients) await client.query('ROLLBACK');
  await Promise.all(clients.map((client) => client.end()));
}

/** Session locks in this database. */
async function advisoryLocks(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `SELECT count(*)::int AS held FROM pg_locks JOIN pg_database d ON d.oid = database
       WHERE locktype = 'advisory' AND d.datname = current_database()`,
    );
    return rows[0].held;
  } finally {
    await client.end();
  }
}

async function sessionsCheck(env: Record<string, string>): Promise<unknown> {
  const { stdout } = await callCli(['doctor', '--json'], { env });
  return JSON.parse(stdout).checks.find(({ name }: { name: string }) => name === 'sessions');
}
