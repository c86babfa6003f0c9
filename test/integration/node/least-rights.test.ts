/**
 * The users in deploy/ can't do more than a node needs, so an attacker with a node's rights can't either. A node whose rights are
 * too few reports that. All other tests show that the rights suffice, because their nodes run as these users.
 */
import { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { assertRights, DELETING_TABLES, TABLE_RIGHTS } from '../../../src/postgres/app-role.ts';
import { openDatabase, rows } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { callCli, runCli } from '../../support/cli/cli.ts';
import {
  emptyDatabase,
  freshDatabase,
  freshPrefix,
  redisAdminUrl,
  redisUrl,
} from '../../support/fixtures.ts';
import {
  APP_ROLE,
  asAdmin,
  asRole,
  asUser,
  OWNER_ROLE,
  REDIS_PASSWORD,
} from '../../support/postgres/least-rights.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { query } from '../../support/shop/truth.ts';

const open: Redis[] = [];

afterEach(() => {
  for (const redis of open.splice(0)) redis.disconnect();
});

function connected(url: string): Redis {
  const redis = new Redis(url, { maxRetriesPerRequest: 0 });
  open.push(redis);
  return redis;
}

describe('the user of Redis', () => {
  test.each([
    'KEYS *',
    'SCAN 0',
    'FLUSHALL',
    'FLUSHDB',
    'CONFIG GET requirepass',
    'CONFIG SET maxmemory-policy allkeys-lru',
    'SCRIPT FLUSH',
    'SHUTDOWN NOSAVE',
    'MONITOR',
    'CLIENT LIST',
    'CLIENT KILL TYPE normal',
    'ACL LIST',
    'ACL SETUSER stockade allkeys',
    'REPLICAOF NO ONE',
    'CLUSTER RESET',
    'CLUSTER MEET 127.0.0.1 1',
    'FUNCTION FLUSH',
    'MODULE LIST',
    'SAVE',
    'GET elsewhere',
    'SET elsewhere 1',
    'RENAME stockade:a elsewhere',
    'PUBLISH elsewhere hello',
    'SUBSCRIBE elsewhere',
    'DUMP stockade:a',
    'RESTORE stockade:a 0 x',
  ])('may not %s', async (line) => {
    const [name, ...args] = line.split(' ');
    await expect(connected(redisUrl()).call(name!, ...args)).rejects.toThrow(/^NOPERM/);
  });

  test('may not do it in a script either', async () => {
    const redis = connected(redisUrl());
    for (const script of [
      "return redis.call('GET', 'elsewhere')",
      "return redis.call('KEYS', '*')",
      "return redis.call('FLUSHALL')",
      "return redis.call('PUBLISH', 'elsewhere', 'x')",
    ]) {
      await expect(redis.eval(script, 0), script).rejects.toThrow(/user executing the script can't/);
    }
  });

  test('is refused without its password, or with a wrong one', async () => {
    for (const url of [asUser(redisUrl(), 'stockade'), asUser(redisUrl(), 'stockade', 'wrong')]) {
      const { exitCode, stderr } = await callCli(['doctor', '--json'], { env: { REDIS_URL: url } });
      expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: '' });
    }
  });

  // Many versions of Redis replay a transaction with the rights of the user `default`. What a script writes is a transaction.
  test('finds all that its scripts wrote after Redis was killed', async () => {
    await using server = await RedisServer.start({ appendonly: true, administrator: false });
    const script = "redis.call('SET', 'stockade:a', 1) redis.call('SET', 'stockade:b', 2)";
    await connected(server.productUrl).eval(script, 0);
    await server.kill();
    await server.restart();
    const redis = connected(server.productUrl);
    expect([await redis.get('stockade:a'), await redis.get('stockade:b')]).toEqual(['1', '2']);
  });

  test('is the only one: nobody is the user default', async () => {
    await using server = await RedisServer.start({ administrator: false });
    const nobody = connected(asUser(server.url, ''));
    nobody.on('error', () => {});
    await expect(nobody.ping()).rejects.toThrow(/^NOAUTH/);
    for (const password of ['', 'nopass', REDIS_PASSWORD])
      await expect(connected(server.productUrl).call('AUTH', 'default', password)).rejects.toThrow(
        /^WRONGPASS/,
      );
  });

  test('for events may read and acknowledge them, and nothing else', async () => {
    const prefix = freshPrefix();
    const admin = connected(redisAdminUrl());
    await admin.xadd('stockade:events', '*', 'a', 'b');
    const reader = connected(asUser(redisUrl(), 'stockade-events', REDIS_PASSWORD));
    const group = prefix;
    await reader.xgroup('CREATE', 'stockade:events', group, '0');
    const read = (await reader.xreadgroup(
      ...(['GROUP', group, 'one', 'COUNT', 1, 'STREAMS', 'stockade:events', '>'] as [
        'GROUP',
        string,
        string,
        'COUNT',
        number,
        'STREAMS',
        string,
        string,
      ]),
    )) as [string, [string, string[]][]][];
    expect(await reader.xack('stockade:events', group, read[0]![1][0]![0])).toBe(1);
    for (const [name, ...args] of [
      ['XADD', 'stockade:events', '*', 'a', 'b'],
      ['XTRIM', 'stockade:events', 'MAXLEN', '0'],
      ['DEL', 'stockade:events'],
      ['XREAD', 'STREAMS', 'stockade:{a:0}:log', '0'],
      ['HGETALL', 'stockade:{a}:sale'],
      ['EVAL', 'return 1', '0'],
    ]) {
      await expect(reader.call(name!, ...args), name).rejects.toThrow(/^NOPERM/);
    }
    await admin.xgroup('DESTROY', 'stockade:events', group);
  });
});

/** What doctor says of Postgres in the check of this name. */
async function diagnosed(env: NodeJS.ProcessEnv, name: string) {
  const { exitCode, stdout } = await callCli(['doctor', '--json'], { env });
  const { checks } = JSON.parse(stdout) as { checks: { group: string; name: string }[] };
  return { exitCode, check: checks.find((check) => check.group === 'postgres' && check.name === name) };
}

describe('the role of Postgres', () => {
  test.each([
    'DROP TABLE orders',
    'TRUNCATE orders',
    'DELETE FROM orders',
    'DELETE FROM sales',
    'DELETE FROM stock_movements',
    'ALTER TABLE orders DROP CONSTRAINT orders_pkey',
    'ALTER TABLE orders DISABLE TRIGGER ALL',
    'DROP INDEX orders_one_per_buyer',
    'CREATE TABLE mine (it int)',
    'CREATE FUNCTION mine() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
    "UPDATE settings SET value = ''",
    'DELETE FROM stockade_migrations',
    "INSERT INTO stockade_migrations VALUES ('x', now())",
    'INSERT INTO worker_leases SELECT 9999, $$$$, now()',
    'ALTER ROLE stockade_app SUPERUSER',
    'CREATE ROLE another',
    'SET ROLE stockade_owner',
    'SET ROLE postgres',
    "COPY orders TO '/tmp/orders'",
    "SELECT pg_read_file('/etc/passwd')",
  ])('may not %s', async (sql) => {
    const failed = await query(await database(), sql).then(
      () => 'nothing',
      (error: { code: string }) => error.code,
    );
    expect(failed).toBe('42501');
  });

  let shared: Promise<string> | undefined;
  const database = () => (shared ??= freshDatabase());

  test('starts no node if tables would have to be created', async () => {
    const env = { DATABASE_URL: asRole(await emptyDatabase(), APP_ROLE), PORT: '0', OPS_PORT: '0' };
    const { exitCode, stderr } = await runCli(['serve', '--json'], { env });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /may not apply the migrations that are pending, 001-initial.sql to .*run `node dist\/cli\/main.js migrate --grant-to /,
    );
    expect(await diagnosed(env, 'migrations')).toEqual({
      exitCode: 1,
      check: expect.objectContaining({
        status: 'fail',
        found: 'not applied yet, and this user may not apply them',
        advice: expect.stringContaining('migrate --grant-to <this user>` as the owner of the tables'),
      }),
    });
  });

  test('may not apply the migrations of a newer version: doctor says so', async () => {
    const url = await freshDatabase();
    await query(asAdmin(url), "DELETE FROM stockade_migrations WHERE name LIKE '034-%'");
    const of = (role: typeof APP_ROLE | typeof OWNER_ROLE) =>
      diagnosed({ DATABASE_URL: asRole(url, role), PORT: '0', OPS_PORT: '0' }, 'migrations');
    const found = 'not applied yet: 034-begun-offers.sql';
    expect((await of(APP_ROLE)).check).toMatchObject({
      status: 'fail',
      found: `${found}, and this user may not apply them`,
    });
    expect((await of(OWNER_ROLE)).check).toMatchObject({ status: 'warn', found });
  });

  test('does not start; the error names the missing rights and how to grant them', async () => {
    const url = await freshDatabase();
    await query(asAdmin(url), `REVOKE UPDATE ON sales, webhook_pages FROM ${APP_ROLE}`);
    await query(asAdmin(url), `REVOKE EXECUTE ON FUNCTION stockade_apply_batch FROM ${APP_ROLE}`);
    for (const command of ['serve', 'sync']) {
      const env = { DATABASE_URL: url, REDIS_URL: redisUrl(), PORT: '0', OPS_PORT: '0' };
      const { exitCode, stdout, stderr } = await runCli([command, '--json'], { env });
      expect(exitCode, command).toBe(1);
      expect(`${stdout}${stderr}`).toMatch(
        /lacks UPDATE on sales, UPDATE on webhook_pages, EXECUTE on stockade_apply_batch: run `node dist\/cli\/main.js migrate --grant-to/,
      );
    }
    expect(await diagnosed({ DATABASE_URL: url, PORT: '0', OPS_PORT: '0' }, 'rights')).toEqual({
      exitCode: 1,
      check: expect.objectContaining({
        status: 'fail',
        found: 'this user lacks UPDATE on sales, UPDATE on webhook_pages, EXECUTE on stockade_apply_batch',
        advice: expect.stringContaining('migrate --grant-to <this user>` as the owner of the tables'),
      }),
    });
    const env = { DATABASE_URL: asRole(url, OWNER_ROLE) };
    const { exitCode, stdout } = await callCli(['migrate', '--grant-to', APP_ROLE], { env });
    expect({ exitCode, stdout }).toEqual({
      exitCode: 0,
      stdout: expect.stringContaining(`${APP_ROLE} has the rights that a node needs.`),
    });
    expect(await granted(url)).toEqual(listed());
  });

  test('has no rights at all: a node and doctor name the command that grants them', async () => {
    const url = await freshDatabase();
    await query(asAdmin(url), `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM ${APP_ROLE}`);
    const env = { DATABASE_URL: url, PORT: '0', OPS_PORT: '0' };
    const node = await runCli(['serve', '--json'], { env });
    expect(node.exitCode).toBe(1);
    expect(node.stderr).toMatch(
      /lacks SELECT on stockade_migrations: run `node dist\/cli\/main.js migrate --grant-to/,
    );
    const { stdout } = await callCli(['doctor', '--json'], { env });
    expect(JSON.parse(stdout).checks).toContainEqual({
      group: 'postgres',
      name: 'rights',
      status: 'fail',
      found: expect.stringContaining('permission denied for table stockade_migrations'),
      advice: expect.stringContaining('migrate --grant-to <this user>` as the owner of the tables'),
    });
  });

  test('can’t grant rights on the tables of another user, and is told that', async () => {
    const url = await freshDatabase();
    await query(asAdmin(url), `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM ${APP_ROLE}`);
    const { exitCode, stderr } = await callCli(['migrate', '--grant-to', APP_ROLE], {
      env: { DATABASE_URL: url },
    });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /^error: the tables belong to another user than that of DATABASE_URL: .*hardening\.md/,
    );
    expect(stderr).not.toContain('lacks');
  });

  test('needs no rights on another shop’s functions in the same database', async () => {
    const url = await freshDatabase();
    await query(asAdmin(url), 'CREATE SCHEMA another');
    await query(
      asAdmin(url),
      'CREATE FUNCTION another.stockade_apply_batch() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$',
    );
    await query(asAdmin(url), 'REVOKE ALL ON FUNCTION another.stockade_apply_batch FROM PUBLIC');
    const db = openDatabase({ url, maxConnections: 1 });
    try {
      await assertRights(db);
    } finally {
      await db.destroy();
    }
  });

  test('has the same rights after they are granted again', async () => {
    const url = await freshDatabase();
    await query(asAdmin(url), `GRANT ALL ON ALL TABLES IN SCHEMA public TO ${APP_ROLE}`);
    const db = openDatabase({ url: asRole(url, OWNER_ROLE), maxConnections: 1 });
    try {
      await migrate(db, { grantee: APP_ROLE });
      expect(await granted(url)).toEqual(listed());
      await expect(migrate(db, { grantee: 'nobody"; DROP TABLE orders; --' })).rejects.toThrow(/plain name/);
      await expect(migrate(db, { grantee: 'no_such_role' })).rejects.toThrow(/no_such_role/);
      expect(await rows(db, "SELECT to_regclass('orders') IS NOT NULL AS it")).toEqual([{ it: true }]);
    } finally {
      await db.destroy();
    }
  });

  test('may delete sales if that is granted, until the rights are granted without', async () => {
    const url = await freshDatabase();
    const env = { DATABASE_URL: asRole(url, OWNER_ROLE) };
    const grant = ['migrate', '--grant-to', APP_ROLE];
    expect((await callCli([...grant, '--may-delete-sales'], { env })).exitCode).toBe(0);
    const more = DELETING_TABLES.map((table) => `${table} DELETE`);
    expect(await granted(url)).toEqual([...listed(), ...more].sort());
    expect((await callCli(grant, { env })).exitCode).toBe(0);
    expect(await granted(url)).toEqual(listed());
  });

  test('may not grant itself more', async () => {
    const env = { DATABASE_URL: await database() };
    const { exitCode, stderr } = await callCli(['migrate', '--grant-to', APP_ROLE], { env });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/may not grant rights on its tables/);
  });
});

const listed = () =>
  Object.entries(TABLE_RIGHTS)
    .flatMap(([table, rights]) => rights.map((right) => `${table} ${right}`))
    .sort();

async function granted(url: string): Promise<string[]> {
  const found = await query<{ it: string }>(
    asAdmin(url),
    `SELECT table_name || ' ' || privilege_type AS it FROM information_schema.role_table_grants WHERE grantee = $1`,
    [APP_ROLE],
  );
  return found.map(({ it }) => it).sort();
}
