import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Check } from '../../../src/cli/doctor/check.ts';
import { type CliOptions, callCli, MAIN, runCli } from '../../support/cli/cli.ts';
import { emptyDatabase, freshPrefix, redisUrl } from '../../support/fixtures.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { freePort } from '../../support/servers/process/free-port.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';

let cwd: string;

beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'stockade-cli-'));
});

afterAll(() => rmSync(cwd, { recursive: true }));

const run = (args: string, options: CliOptions = {}) => callCli(args.split(' '), { cwd, ...options });

const runAlone = (args: string, options: CliOptions = {}) => runCli(args.split(' '), { cwd, ...options });

const tooWide = (text: string) => text.split('\n').filter((line) => line.length > 80);
const linesOf = (text: string) => text.split('\n').filter(Boolean);

describe('help', () => {
  test.each([
    'serve',
    'demo',
    'top',
    'migrate',
    'sync',
    'verify',
    'rebalance',
    'recover',
    'doctor',
    'sale create',
    'sale list',
    'sale show',
    'sale pause',
    'sale resume',
    'sale close',
    'sale archive',
    'sale delete',
    'sale top-up',
    'sale withdraw',
    'sale window',
    'sale resize',
    'sale require-token',
    'sale ledger',
    'order show',
    'order pay',
    'order cancel',
    'order redeem',
    'order refund',
    'order refunds-due',
    'buyer erase',
    'events dead',
    'events resend',
  ])('%s: examples, settings with their defaults, --json', async (command) => {
    const { exitCode, stdout, stderr } = await run(`${command} --help`);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(new RegExp(`Examples:\\n(.*\\n)*.*stockade ${command}`));
    expect(stdout).toMatch(
      command === 'top' ? /\(OPS_URL;\s+default:/ : /\(DATABASE_URL;\s+default:\s+[^)]*PGlite/,
    );
    expect(stdout).toContain('--json');
    expect(tooWide(stdout)).toEqual([]);
  });

  test.each(['sale', 'order', 'buyer', 'events', 'queue'])('%s fits into 80 columns', async (group) => {
    expect(tooWide((await run(`${group} --help`)).stdout)).toEqual([]);
  });

  test('names all commands and the exit codes', async () => {
    const { exitCode, stdout } = await run('--help');
    expect(exitCode).toBe(0);
    const groups = ['sale', 'order', 'buyer', 'events', 'queue'];
    for (const name of [
      'serve',
      'demo',
      'top',
      'migrate',
      'sync',
      'verify',
      'rebalance',
      'recover',
      'doctor',
      'completion',
      ...groups,
    ]) {
      expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'));
    }
    expect(stdout).toContain('Exit codes:');
    // How the program was started is as long as its path.
    expect(tooWide(stdout.replace(/^.*main\.js$/m, ''))).toEqual([]);
  });
});

describe('the program', () => {
  test.each([
    ['--help'],
    ['--version'],
    ['sale create --help'],
    ['help sale create'],
    ['unheard-of'],
    ['serve --json --port abc'],
    ['sale show tickets --json --ops-url http://127.0.0.1:1 --ops-token t'],
    ['doctor --port 0 --ops-port 0'],
  ])('has the same output and exit code in a process of its own: %s', async (args) => {
    expect(await runAlone(args)).toEqual(await run(args));
  });
});

describe('usage faults end with exit code 2', () => {
  const FIVE = {
    PORT: 'abc',
    WORKERS: '0',
    LOG_LEVEL: 'loud',
    REDIS_URL: 'hunter2@cache:6379',
    JWT_SECRET: 'hunter2',
  };

  test.each(['serve', 'demo', 'doctor', 'sale list'])('%s: five faults, five lines', async (command) => {
    const { exitCode, stdout, stderr } = await run(command, { env: FIVE });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(linesOf(stderr)).toHaveLength(5);
    for (const name of Object.keys(FIVE)) expect(stderr).toMatch(new RegExp(`^error: ${name} is `, 'm'));
    expect(stderr).not.toContain('hunter2');
  });

  test('with --json they are one object too', async () => {
    const { exitCode, stdout } = await run('serve --json', { env: FIVE });
    expect(exitCode).toBe(2);
    expect(JSON.parse(stdout).error).toMatchObject({ code: 'invalid_config', faults: { length: 5 } });
  });

  test.each([
    ['unheard-of', 'unknown command'],
    ['help slae', "unknown command 'slae'\n(Did you mean sale?)"],
    ['sale help crate', "unknown command 'crate'\n(Did you mean create?)"],
    ['serve --unheard-of', 'unknown option'],
    ['sale show', "missing required argument 'sale'"],
    ['sale create x --stock 0', '--stock must be at least 1'],
    ['sale create x', '--stock is required: the units for sale'],
    ['sale window x --reason so', 'give --starts-at, --ends-at or --no-end'],
    ['order show abc', '<id> is "abc", but must be the number of an order, such as 6'],
    ['order pay 1e9', '<id> is "1e9", but must be the number of an order'],
    ['verify --every 10', '--every says how often --watch verifies'],
    ['serve --challenge nope', '--challenge is "nope", but must be pow, or the path of a JavaScript module'],
    ['demo --stock none', '--stock is "none"'],
    ['sync', 'REDIS_URL is not set'],
  ])('%s', async (args, message) => {
    const { exitCode, stdout, stderr } = await run(args);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('    at ');
  });
});

describe('doctor', () => {
  interface Diagnosis {
    ok: boolean;
    failed: number;
    warned: number;
    checks: Check[];
  }

  const find = ({ checks }: Diagnosis, group: string, name: string) =>
    checks.find((check) => check.group === group && check.name === name);

  async function diagnose(env: NodeJS.ProcessEnv) {
    const { exitCode, stdout } = await run('doctor --json', { env: { PORT: '0', OPS_PORT: '0', ...env } });
    return { exitCode, diagnosis: JSON.parse(stdout) as Diagnosis };
  }

  test('without servers: the embedded default is possible, and the check leaves no file', async () => {
    const { exitCode, diagnosis } = await diagnose({ DATA_DIR: 'some/data' });
    expect(exitCode).toBe(0);
    expect(find(diagnosis, 'redis', 'Redis')?.found).toContain('in-process backend');
    expect(find(diagnosis, 'postgres', 'Postgres')?.found).toContain('PGlite in some/data');
    expect(existsSync(join(cwd, 'some'))).toBe(false);
  });

  test('against real servers', async () => {
    // The tests' common Postgres runs without fsync, which is a fault.
    await using postgres = await PostgresServer.start();
    const { exitCode, diagnosis } = await diagnose({
      REDIS_URL: redisUrl(),
      DATABASE_URL: await postgres.createDatabase(),
    });
    expect(diagnosis.checks.filter(({ status }) => status === 'fail')).toEqual([]);
    expect(exitCode).toBe(0);
    expect(find(diagnosis, 'redis', 'version')?.status).toBe('ok');
    expect(find(diagnosis, 'redis', 'appendonly')?.status).toBe('warn');
    expect(find(diagnosis, 'postgres', 'fsync')?.status).toBe('ok');
    expect(find(diagnosis, 'postgres', 'migrations')).toMatchObject({
      status: 'warn',
      found: 'not applied yet',
    });
    expect(find(diagnosis, 'clocks', 'difference')?.status).toBe('ok');
    for (const { status, advice } of diagnosis.checks) if (status !== 'ok') expect(advice).toBeTruthy();
  });

  test('a Redis that is set up for it', async () => {
    await using redis = await RedisServer.start({ appendonly: true, extraArgs: ['--maxmemory', '256mb'] });
    const { diagnosis } = await diagnose({ REDIS_URL: redis.url });
    expect(diagnosis.checks.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(find(diagnosis, 'redis', 'appendonly')?.found).toBe('on, appendfsync everysec');
  });

  test('a Redis that would lose stock', async () => {
    const extraArgs = ['--maxmemory', '256mb', '--maxmemory-policy', 'allkeys-lru'];
    await using redis = await RedisServer.start({ extraArgs });
    const { exitCode, diagnosis } = await diagnose({ REDIS_URL: redis.productUrl });
    expect(exitCode).toBe(1);
    expect(find(diagnosis, 'redis', 'maxmemory-policy')).toMatchObject({
      status: 'fail',
      found: 'allkeys-lru',
    });
  });

  test('a Redis that is frozen is not waited for', async () => {
    await using redis = await RedisServer.start();
    await redis.pause();
    const { exitCode, diagnosis } = await diagnose({ REDIS_URL: redis.productUrl });
    redis.resume();
    expect(exitCode).toBe(1);
    expect(find(diagnosis, 'redis', 'reachable')?.status).toBe('fail');
  });

  test('unreachable servers, a port in use: each line says what to do', async () => {
    const [nobody, taken] = [await freePort(), new URL(redisUrl()).port];
    const alsoTaken = new URL(await emptyDatabase()).port;
    const env = {
      REDIS_URL: `redis://:hunter2@127.0.0.1:${nobody}`,
      DATABASE_URL: `postgres://shop:hunter2@127.0.0.1:${nobody}/shop`,
      PORT: taken,
      OPS_PORT: '0',
      PROBE_PORT: alsoTaken,
    };
    const { exitCode, stdout } = await run('doctor', { env });
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(/^fail +redis +reachable +redis:\/\/:\*\*\*@.*ECONNREFUSED/m);
    expect(stdout).toMatch(/-> Start Redis, or correct REDIS_URL/);
    expect(stdout).toMatch(/^fail +postgres +reachable +.*ECONNREFUSED/m);
    expect(stdout).toMatch(new RegExp(`^fail +ports +PORT +${taken} on 127.0.0.1: .*EADDRINUSE`, 'm'));
    expect(stdout).toMatch(
      new RegExp(`^fail +ports +PROBE_PORT +${alsoTaken} on 127.0.0.1: .*EADDRINUSE`, 'm'),
    );
    expect(stdout).toContain('4 checks failed');
    expect(stdout).not.toContain('hunter2');
  });
});

test('a Postgres that does not answer is named, and there is something to do', {
  timeout: 40_000,
}, async () => {
  const mute = createServer(() => {});
  await once(mute.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    mute.close();
  });
  const { port } = mute.address() as AddressInfo;
  const env = { DATABASE_URL: `postgres://shop:hunter2@127.0.0.1:${port}/shop`, LOG_LEVEL: 'error' };
  const { exitCode, stderr } = await run('migrate', { env });
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(
    new RegExp(
      `^error: postgres://127.0.0.1:${port}/shop does not answer: timeout expired\\n +No answer: .*doctor`,
    ),
  );
});

describe('sales without a node', () => {
  test('nothing listens: the error says so, and how to start a node', async () => {
    const port = await freePort();
    const { exitCode, stdout, stderr } = await run(`sale list --ops-port ${port}`);
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(
      new RegExp(`nothing listens at http://127.0.0.1:${port}\\. Start a node with .node /.*/main.js serve.`),
    );
    expect(linesOf(stderr)).toHaveLength(1);
  });

  const ownStores = async () => ({
    REDIS_URL: redisUrl(),
    DATABASE_URL: await emptyDatabase(),
    KEY_PREFIX: freshPrefix(),
  });

  test('a queue that is drawn: the commitment, which the shop is to publish; a hint for `--fit wait`', async () => {
    const env = await ownStores();
    await run('migrate', { env });
    const queue = '--queue draw --starts-at 2999-01-01T00:00:00Z';
    const made = await run(`sale create tickets --stock 9 --per-buyer-limit 4 --fit wait ${queue}`, { env });
    const [, commitment] = /^commitment +([0-9a-f]{64})$/m.exec(made.stdout)!;
    expect(made.stderr).toContain('Publish the commitment now, before buyers take places');
    expect(made.stderr).toContain('Units may lie free while the next place waits for more of them');
    const shown = await run('queue show tickets', { env });
    expect(shown.stdout).toMatch(new RegExp(`^commitment +${commitment}$`, 'm'));
    const other = await run('sale create others --stock 9 --starts-at 2999-01-01T00:00:00Z', { env });
    expect([other.stdout, other.stderr].join()).not.toMatch(/commitment|lie free/);
    const turned = await run('sale queue others --queue draw', { env });
    expect(turned.stdout).toMatch(/^commitment +[0-9a-f]{64}$/m);
  });

  /** Commands with --json on stores of their own: each has the exit code that is given, and says one object. */
  async function onStores() {
    const env = await ownStores();
    return async (args: string, exitCode = 0) => {
      const result = await run(`${args} --json`, { env });
      expect(result).toMatchObject({ exitCode });
      expect(linesOf(result.stdout)).toHaveLength(1);
      return JSON.parse(result.stdout);
    };
  }

  test('with both stores: create, show, pause, resume, close, verify', async () => {
    const json = await onStores();
    expect((await json('migrate')).applied).toContain('001-initial.sql');
    expect((await json('migrate')).applied).toEqual([]);
    expect(await json('sale create tickets --stock 100')).toMatchObject({
      id: 'tickets',
      state: 'open',
      remaining: 100,
    });
    expect((await json('sale create tickets --stock 100', 1)).error.code).toBe('sale_exists');
    expect(await json('sale pause tickets')).toMatchObject({ state: 'paused' });
    expect(await json('sale resume tickets')).toMatchObject({ state: 'open' });
    expect((await json('sale list')).sales).toMatchObject([{ id: 'tickets', stock: 100 }]);
    expect(await json('verify tickets')).toMatchObject({ saleId: 'tickets', ok: true });
    expect(await json('verify')).toMatchObject({ ok: true, sales: [{ saleId: 'tickets' }] });
    expect(await json('rebalance tickets --dry-run')).toEqual({
      saleId: 'tickets',
      dryRun: true,
      before: [13, 13, 13, 13, 12, 12, 12, 12],
      after: [13, 13, 13, 13, 12, 12, 12, 12],
      moves: [],
    });
    expect(await json('rebalance tickets')).toMatchObject({ dryRun: false, moves: [] });
    expect((await json('rebalance nothing', 1)).error.code).toBe('unknown_sale');
    expect(await json('sale close tickets --yes')).toMatchObject({ state: 'closed' });
    expect((await json('sale resume tickets', 1)).error.code).toBe('wrong_state');
    expect((await json('sale show nothing', 1)).error.code).toBe('unknown_sale');
  });

  test('with both stores: changes of a sale, and the other commands on orders and events', async () => {
    const json = await onStores();
    await json('migrate');
    await json('sale create tickets --stock 100 --by otto --reason spring');
    const over = await json('sale window tickets --ends-at 2020-01-01T00:00:00Z', 2);
    expect(over.error.message).toMatch(
      /^the change is not valid: --ends-at must leave the end after the start/,
    );
    expect((await json('sale window tickets --no-end --ends-at 2100-01-01T00:00:00Z', 2)).error.message).toBe(
      "option '--no-end' cannot be used with option '--ends-at <time>'",
    );
    expect((await json('sale top-up tickets --units 0', 2)).error.message).toBe(
      'the change is not valid: --units must be at least 1',
    );
    expect(await json('sale require-token tickets --on')).toMatchObject({ requireToken: true });
    expect(await json('sale top-up tickets --units 5')).toMatchObject({ movedUnits: 5 });
    expect(await json('sale withdraw tickets --units 2')).toMatchObject({ movedUnits: 3 });
    expect((await json('sale withdraw tickets --units 104', 1)).error.code).toBe('insufficient_stock');
    expect(await json('sale resize tickets --segments 3')).toMatchObject({ segments: 3 });
    expect((await json('sale ledger tickets')).ledger).toMatchObject([
      { action: 'create', actor: 'otto', reason: 'spring', detail: { stock: 100, segments: 8 } },
      { action: 'require-token', actor: userInfo().username },
      { action: 'top-up', units: 5 },
      { action: 'withdraw', units: -2 },
      { action: 'resize' },
    ]);
    expect((await json('events dead')).dead).toEqual([]);
    expect((await json('events resend 17', 1)).error.code).toBe('unknown_dead_letter');
    expect(await json('events resend --all')).toEqual({ resent: 0 });
    expect(await json('order refunds-due')).toEqual({ orders: [] });
    expect((await json('order refunds-due nothing', 1)).error.code).toBe('unknown_sale');
    expect(await json('recover tickets --yes')).toMatchObject({ saleId: 'tickets', state: 'done' });
    expect((await json('sale archive tickets --yes', 1)).error).toMatchObject({
      code: 'wrong_state',
      message: "sale tickets is open; it can't be archived: close it first",
    });
    expect(await json('sale close tickets --yes')).toMatchObject({ state: 'closed' });
    const { archivedAt } = await json('sale archive tickets --yes');
    expect(Date.parse(archivedAt)).toBeLessThanOrEqual(Date.now());
    expect((await json('sale top-up tickets --units 1', 1)).error.code).toBe('archived');
    expect((await json('sale list')).sales).toEqual([]);
    expect((await json('sale list --archived only')).sales).toMatchObject([{ id: 'tickets', archivedAt }]);
    expect((await json('sale list --archived maybe', 2)).error.code).toBe('invalid_request');
    expect(await json('buyer erase nobody --running --yes')).toEqual({ erased: [], waiting: [] });
    expect((await json('buyer erase nobody --sale none --yes', 1)).error.code).toBe('unknown_sale');
    expect((await json('sale delete tickets --with-orders', 2)).error.message).toContain('belong together');
    expect(await json('sale delete tickets --by otto --reason over --yes')).toMatchObject({
      ...{ saleId: 'tickets', state: 'deleted', orders: 0, actor: 'otto', reason: 'over' },
    });
    expect((await json('sale show tickets', 1)).error.code).toBe('unknown_sale');
    expect((await json('sale delete tickets --yes', 1)).error.code).toBe('unknown_sale');
  });
});

test('a variable whose name is nearly that of a setting is warned of', async () => {
  const { stderr } = await runAlone('sale list', { env: { OPS_URI: 'http://127.0.0.1:1' } });
  expect(stderr).toContain('"msg":"the environment variable OPS_URI has no effect: is OPS_URL meant?"');
});

describe('a command whose output goes nowhere', () => {
  /** Runs the program by a line of the shell, in which `$@` is the program with its arguments. */
  const inShell = (line: string, args: string, env: NodeJS.ProcessEnv = {}) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      const words = ['-c', line, 'sh', process.execPath, MAIN, ...args.split(' ')];
      execFile('sh', words, { cwd, env: { PATH: process.env.PATH, ...env } }, (error, stdout, stderr) =>
        resolve({ code: error?.code ?? 0, stdout, stderr }),
      );
    });

  test.runIf(existsSync('/dev/full'))('says in one line that the disk is full', async () => {
    expect(await inShell('"$@" > /dev/full', 'completion bash')).toEqual({
      ...{ code: 1, stdout: '' },
      stderr: "error: stdout can't be written: ENOSPC: no space left on device, write\n",
    });
  });

  test('goes on if nobody reads its remarks', async () => {
    const line = 'exec 4>&1; { "$@" 2>&1 >&4; echo "exit code $?" >&4; } | true';
    const env = { REDIS_URL: redisUrl(), DATABASE_URL: await emptyDatabase(), KEY_PREFIX: freshPrefix() };
    const { stdout } = await inShell(line, 'demo --requests 200 --stock 5 --workers 1', env);
    expect(stdout).toMatch(/^orders +5 in postgres/m);
    expect(stdout).toMatch(/^exit code 0$/m);
  });
});
