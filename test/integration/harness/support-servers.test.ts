import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, inject, test } from 'vitest';
import { emptyDatabase, freshPrefix, redisAdminUrl, until } from '../../support/fixtures.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { isAlive } from '../../support/servers/process/process-table.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';

/** A client that tells the truth about lost connections: it neither retries nor reconnects. */
function bluntRedis(url: string): Redis & AsyncDisposable {
  const client = new Redis(url, {
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    // After this it no longer waits for the server to close as well, which a server that is held up does late.
    disconnectTimeout: 50,
  });
  client.on('error', () => {});
  return Object.assign(client, { [Symbol.asyncDispose]: async () => client.disconnect() });
}

async function postgresClient(url: string): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end().catch(() => {}) });
}

const isCommand = (name: string, key: string) => (request: Buffer) =>
  new RegExp(`^\\*\\d+\\r\\n\\$\\d+\\r\\n${name}\\r\\n\\$\\d+\\r\\n${key}\\r\\n`, 'i').test(
    request.toString(),
  );

async function proxied() {
  const proxy = await TcpProxy.start(Number(new URL(redisAdminUrl()).port));
  const direct = bluntRedis(redisAdminUrl());
  const client = bluntRedis(proxy.through(redisAdminUrl()));
  await client.ping();
  return {
    proxy,
    direct,
    client,
    prefix: freshPrefix(),
    async [Symbol.asyncDispose]() {
      for (const redis of [client, direct]) redis.disconnect();
      await proxy.stop();
    },
  };
}

describe('proxy in front of Redis', () => {
  test('a lost reply: the command is executed once, the client is cut', async () => {
    await using setting = await proxied();
    const { proxy, direct, client, prefix } = setting;
    const loss = proxy.loseReplies(isCommand('incr', `${prefix}n`));

    await expect(client.incr(`${prefix}n`)).rejects.toThrow();
    await loss.lost;

    expect(await direct.get(`${prefix}n`)).toBe('1');
    expect(proxy.counts).toMatchObject({ lostReplies: 1, lostRequests: 0 });
    await using again = bluntRedis(proxy.through(redisAdminUrl()));
    expect(await again.incr(`${prefix}n`)).toBe(2);
  });

  test('of pipelined commands, those up to the lost reply are executed, and those after it are not', async () => {
    await using setting = await proxied();
    const { proxy, direct, client, prefix } = setting;
    const loss = proxy.loseReplies(isCommand('incr', `${prefix}b`));

    const answers = await Promise.allSettled(['a', 'b', 'c'].map((key) => client.incr(prefix + key)));
    await loss.lost;

    expect(answers[1]?.status).toBe('rejected');
    expect(answers[2]?.status).toBe('rejected');
    expect(await direct.mget(['a', 'b', 'c'].map((key) => prefix + key))).toEqual(['1', '1', null]);
  });

  test('a request of many chunks is lost as one', async () => {
    await using setting = await proxied();
    const { proxy, direct, client, prefix } = setting;
    const loss = proxy.loseReplies(isCommand('append', `${prefix}s`));

    await expect(client.append(`${prefix}s`, 'x'.repeat(3_000_000))).rejects.toThrow();
    await loss.lost;

    expect(await direct.strlen(`${prefix}s`)).toBe(3_000_000);
  });

  test('the given number of replies is lost, on any connection', async () => {
    await using setting = await proxied();
    const { proxy, direct, client, prefix } = setting;
    await using other = bluntRedis(proxy.through(redisAdminUrl()));
    await using third = bluntRedis(proxy.through(redisAdminUrl()));
    const loss = proxy.loseReplies(isCommand('incr', `${prefix}n`), { times: 2 });

    await expect(client.incr(`${prefix}n`)).rejects.toThrow();
    await expect(other.incr(`${prefix}n`)).rejects.toThrow();
    await loss.lost;

    expect(loss.count).toBe(2);
    expect(await third.incr(`${prefix}n`)).toBe(3);
    expect(await direct.get(`${prefix}n`)).toBe('3');
  });

  test('a lost request: the client is cut, nothing is executed', async () => {
    await using setting = await proxied();
    const { proxy, direct, client, prefix } = setting;
    const loss = proxy.loseRequests(isCommand('incr', `${prefix}n`));

    await expect(client.incr(`${prefix}n`)).rejects.toThrow();
    await loss.lost;

    expect(await direct.get(`${prefix}n`)).toBeNull();
  });

  test('a server that ends without an answer does not count as a lost reply', async () => {
    await using own = await RedisServer.start();
    await using proxy = await TcpProxy.start(own.port);
    await using client = bluntRedis(proxy.through(own.url));
    await client.ping();
    const loss = proxy.loseReplies(isCommand('incr', 'n'));

    await own.pause();
    const answer = expect(client.incr('n')).rejects.toThrow();
    await own.kill();
    await answer;

    expect(loss.count).toBe(0);
    await own.restart();
    await using again = bluntRedis(proxy.through(own.url));
    await expect(again.incr('n')).rejects.toThrow();
    await loss.lost;
  });

  test('held requests arrive later and in order, also when the client has left', async () => {
    await using setting = await proxied();
    const { proxy, direct, client, prefix } = setting;
    const { held } = proxy.hold(isCommand('rpush', `${prefix}list`));

    const pushes = ['a', 'b', 'c'].map((item) => client.rpush(`${prefix}list`, item));
    const answers = Promise.allSettled(pushes);
    await held;
    client.disconnect();
    for (const answer of await answers) expect(answer.status).toBe('rejected');
    expect(await direct.exists(`${prefix}list`)).toBe(0);

    await proxy.release();
    expect(await direct.lrange(`${prefix}list`, 0, -1)).toEqual(['a', 'b', 'c']);
    expect(proxy.counts.held).toBe(1);
  });

  test('a client that stays gets its answers after the release', async () => {
    await using setting = await proxied();
    const { proxy, client, prefix } = setting;
    const { held } = proxy.hold();

    const answer = client.incr(`${prefix}n`);
    await held;
    await proxy.release();

    expect(await answer).toBe(1);
  });

  test('cutAll cuts open connections, refuse rejects new ones', async () => {
    await using setting = await proxied();
    const { proxy, client } = setting;
    const closed = new Promise((resolve) => client.once('close', resolve));

    proxy.refuse(true);
    proxy.cutAll();
    await closed;
    await using refused = bluntRedis(proxy.through(redisAdminUrl()));
    await expect(refused.ping()).rejects.toThrow();
    expect(proxy.counts).toMatchObject({ cut: 1, refused: 1 });

    proxy.refuse(false);
    await using welcome = bluntRedis(proxy.through(redisAdminUrl()));
    expect(await welcome.ping()).toBe('PONG');
  });
});

test('proxy in front of Postgres: a COMMIT whose reply is lost has been executed', async () => {
  const url = await emptyDatabase();
  await using proxy = await TcpProxy.start(Number(new URL(url).port));
  await using direct = await postgresClient(url);
  await direct.query('CREATE TABLE letters (body text)');
  await using client = await postgresClient(proxy.through(url));
  const insert = 'INSERT INTO letters VALUES ($1)';

  const commitLost = proxy.loseReplies((request) => request.includes('COMMIT'));
  await client.query('BEGIN');
  await client.query(insert, ['first']);
  await expect(client.query('COMMIT')).rejects.toThrow();
  await commitLost.lost;

  await using another = await postgresClient(proxy.through(url));
  const insertLost = proxy.loseReplies((request) => request.includes(insert));
  await expect(another.query(insert, ['x'.repeat(1_000_000)])).rejects.toThrow();
  await insertLost.lost;

  const { rows } = await direct.query('SELECT length(body) FROM letters ORDER BY 1');
  expect(rows.map((row) => row.length)).toEqual([5, 1_000_000]);
});

describe('Redis server', () => {
  test('keeps its append-only file through kill and restart, on the same port', async () => {
    await using server = await RedisServer.start({ appendonly: true });
    await using before = bluntRedis(server.url);
    await before.set('k', 'v');

    await server.kill();
    await server.restart();

    await using after = bluntRedis(server.url);
    expect(await after.get('k')).toBe('v');
    expect(await after.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
  });

  test('answers nothing while it is paused, and afterwards all requests', async () => {
    await using server = await RedisServer.start();
    await using client = bluntRedis(server.url);
    await client.ping();

    await server.pause();
    let answered = false;
    const answer = client.incr('n').finally(() => {
      answered = true;
    });
    await expect(until(() => answered, { timeoutMs: 100, what: 'an answer' })).rejects.toThrow(
      'not within 100 ms: an answer; last came false',
    );
    server.resume();

    expect(await answer).toBe(1);
    expect(server.cpuSeconds()).toBeGreaterThanOrEqual(0);
  });

  test('shows its log when it does not start', async () => {
    const start = RedisServer.start({ extraArgs: ['--maxmemory-policy', 'nonsense'] });
    await expect(start).rejects.toThrow(/ended before it was ready[\s\S]*nonsense/);
  });

  test('ends with the process that started it, however that ends', async () => {
    const module = new URL('../../support/servers/redis-server.ts', import.meta.url).href;
    const script = `
      const { RedisServer } = await import('${module}');
      const server = await RedisServer.start();
      console.log(JSON.stringify({ pid: server.pid, directory: server.directory }));
      setInterval(() => {}, 1000);`;
    const parent = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script]);
    const started = await new Promise<string>((resolve, reject) => {
      parent.stdout.once('data', (line) => resolve(String(line)));
      parent.stderr.once('data', (line) => reject(new Error(String(line))));
    });
    const { pid, directory } = JSON.parse(started) as { pid: number; directory: string };
    expect(isAlive(pid)).toBe(true);

    parent.kill('SIGKILL');

    await until(() => !isAlive(pid), { what: `the end of redis-server ${pid}` });
    await until(() => !existsSync(directory), { what: `the removal of ${directory}` });
  });
});

describe('Postgres server', () => {
  test('comes back with its data after stop, kill and pause, and makes fresh databases', async () => {
    await using server = await PostgresServer.start({ settings: { max_connections: '20' } });
    const [url, other] = await Promise.all([server.createDatabase(), server.createDatabase('orders')]);
    expect(new Set([url, other, server.url]).size).toBe(3);

    const count = async (): Promise<number> => {
      await using client = await postgresClient(url);
      await client.query('CREATE TABLE IF NOT EXISTS visits (n serial)');
      await client.query('INSERT INTO visits DEFAULT VALUES');
      return (await client.query('SELECT count(*)::int AS n FROM visits')).rows[0].n;
    };
    expect(await count()).toBe(1);

    for (const [visits, end] of [
      [2, () => server.stop()],
      [3, () => server.stop('immediate')],
      [4, () => server.kill()],
    ] as const) {
      await end();
      await expect(count()).rejects.toThrow('ECONNREFUSED');
      await server.restart();
      expect(await count()).toBe(visits);
    }

    await using client = await postgresClient(url);
    await server.pause();
    let answered = false;
    const answer = client.query('SHOW max_connections').finally(() => {
      answered = true;
    });
    await expect(until(() => answered, { timeoutMs: 100, what: 'an answer' })).rejects.toThrow('an answer');
    server.resume();
    expect((await answer).rows).toEqual([{ max_connections: '20' }]);
  });

  test('is never the one that the environment names', () => {
    expect(process.env.DATABASE_URL).toBeUndefined();
    expect(process.env.REDIS_URL).toBeUndefined();
    expect(inject('postgresUrl')).toContain('@127.0.0.1:');
  });
});
