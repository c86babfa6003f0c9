/** How long a node takes to stop, with what may hold it up. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { RunningCli } from '../../support/cli/cli.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import { RawConnection } from '../../support/http/raw-http.ts';
import { mainProgram } from '../../support/nodes/build.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { freePort } from '../../support/servers/process/free-port.ts';

const SALE = 'tickets';
const GRACE_MS = 8_000;
/** Many times TEARDOWN_LIMIT_MS: a process that waits for Postgres waits for ever. */
const REST_MS = 30_000;

/** Of a node with stores of its own. */
const envOfNode = async () => ({
  ...{ REDIS_URL: redisUrl(), KEY_PREFIX: freshPrefix(), DATABASE_URL: await freshDatabase() },
  ...{ OPS_TOKEN: 'token-of-this-test', PORT: '0', OPS_PORT: '0' },
});

async function secondsToEnd(node: TestNode): Promise<number> {
  const began = performance.now();
  await node.stop();
  return (performance.now() - began) / 1_000;
}

test('both ports share one grace time, also with requests at both that do not end', async () => {
  await using node = await startTestNode({
    ...{ redisUrl: redisUrl(), databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() },
    env: { WORKERS: '1', SYNC: 'off', REQUEST_DEADLINE_MS: '30000', SHUTDOWN_GRACE_MS: String(GRACE_MS) },
  });
  await node.ops.create({ id: SALE, stock: 5 }, BY.actor);
  using operator = await RawConnection.open(node.opsUrl);
  await operator.send(
    `POST /v1/sales HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer ${node.opsToken}\r\nContent-Length: 2\r\n\r\n{`,
  );
  const purchase = node.buy(SALE, 'anna').catch(() => 'cut off');
  await until(async () => (await metric(node, 'stockade_commit_waiters')) === 1, {
    what: 'the purchase waits for a sync that is not there',
  });
  const seconds = await secondsToEnd(node);
  expect(seconds).toBeGreaterThan((GRACE_MS - 100) / 1_000);
  expect(seconds).toBeLessThan((2 * GRACE_MS - 500) / 1_000);
  expect(await purchase).toBe('cut off');
  const said = (await node.log()).split('\n').filter((line) => line.startsWith('{"level"'));
  const [stopping, stopped] = ['stopping', 'stopped'].map((msg) =>
    said.map((line) => JSON.parse(line)).find((line) => line.msg === msg),
  );
  expect(stopping).toMatchObject({ signal: 'SIGTERM', underWay: 2, graceMs: GRACE_MS });
  expect(stopped.tookMs).toBeGreaterThan(GRACE_MS - 100);
});

test('a frozen Postgres does not prevent it', async () => {
  await using postgres = await PostgresServer.start();
  await using node = await startTestNode({
    ...{ redisUrl: redisUrl(), databaseUrl: await postgres.createDatabase(), keyPrefix: freshPrefix() },
    env: { WORKERS: '1' },
  });
  await node.ops.create({ id: SALE, stock: 5 }, BY.actor);
  expect((await node.buy(SALE, 'anna')).status).toBe(201);
  await postgres.pause();
  try {
    expect(await secondsToEnd(node)).toBeLessThan(REST_MS / 1_000);
  } finally {
    postgres.resume();
  }
});

test('a worker that throws ends its node in order', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'threw-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const [program, sign] = [join(folder, 'throws.cjs'), join(folder, 'sign')];
  await writeFile(
    program,
    `const { workerData } = require('node:worker_threads');
    const throwIfAsked = () => {
      if (!require('node:fs').existsSync(${JSON.stringify(sign)})) return;
      clearInterval(timer);
      throw new Error('a fault of this worker');
    };
    const timer = workerData?.name === 'worker-1' && setInterval(throwIfAsked, 20);`,
  );
  const env = { ...(await envOfNode()), WORKERS: '2', NODE_OPTIONS: `--require=${program}` };
  await using node = new RunningCli(['serve'], { env });
  await node.said(/Stockade sells at/);
  await writeFile(sign, '');
  const { exitCode, signal, stdout } = await node.ended;
  expect({ exitCode, signal }).toEqual({ exitCode: 1, signal: null });
  expect(stdout).toMatch(/a fault of this worker.*the node failed/);
  expect(stdout).toMatch(/"msg":"stopped"/);
});

test('a node whose terminal is closed stops in order, also if it is told twice', async () => {
  await using node = new RunningCli(['serve'], { env: await envOfNode() });
  await node.said(/Stockade sells at/);
  node.signal('SIGHUP');
  await node.said(/"msg":"stopping"/);
  node.signal('SIGHUP');
  const { exitCode, signal, stdout } = await node.ended;
  expect({ exitCode, signal }).toEqual({ exitCode: null, signal: 'SIGHUP' });
  expect(stdout).toMatch(/"signal":"SIGHUP".*"msg":"stopping"/);
  expect(stdout).toMatch(/"msg":"stopped"/);
});

test('a node whose log can’t be written goes on selling, and stops in order', async () => {
  const [port, opsPort] = [await freePort(), await freePort()];
  const env = { ...(await envOfNode()), PORT: String(port), OPS_PORT: String(opsPort), WORKERS: '2' };
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const node = spawn(process.execPath, [mainProgram, 'serve'], { env, stdio: ['ignore', full, full] });
  const ended = once(node, 'close');
  onTestFinished(() => void node.kill('SIGKILL'));
  const ops = (path: string, request: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${opsPort}${path}`, {
      ...request,
      headers: { authorization: `Bearer ${env.OPS_TOKEN}` },
    });
  await until(
    () =>
      ops('/readyz').then(
        ({ ok }) => ok,
        () => node.exitCode !== null,
      ),
    {
      what: 'the node is ready',
      timeoutMs: 30_000,
    },
  );
  expect(node.exitCode).toBeNull();
  const body = JSON.stringify({ id: SALE, stock: 5 });
  expect((await ops('/v1/sales', { method: 'POST', body })).status).toBe(201);
  const bought = await fetch(`http://127.0.0.1:${port}/v1/sales/${SALE}/orders`, {
    ...{ method: 'POST', headers: { 'x-buyer-id': 'anna' } },
  });
  expect(bought.status).toBe(201);
  expect(await (await ops('/metrics')).text()).toMatch(/^stockade_log_lines_lost_total\{thread="main"\} \d/m);
  node.kill('SIGTERM');
  // 1: the end of its output could not be written.
  expect(await ended).toEqual([1, null]);
});

test.each(['serve', 'sync'])('%s --json whose object can’t be written stops in order', async (command) => {
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const env = { ...(await envOfNode()), WORKERS: '2' };
  const child = spawn(process.execPath, [mainProgram, command, '--json'], {
    env,
    stdio: ['ignore', full, 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr!.on('data', (data) => {
    stderr += data;
  });
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(stderr).toMatch(/"msg":"stopped"/);
  expect(stderr.match(/^error: .*$/gm)).toEqual([
    expect.stringMatching(/^error: stdout can't be written: ENOSPC/),
  ]);
});

test.each(['serve', 'sync'])('%s that still waits for a frozen Postgres stops at once', async (command) => {
  const connections: Socket[] = [];
  const frozen = createServer((socket) => connections.push(socket)).listen(0, '127.0.0.1');
  onTestFinished(() => {
    frozen.close();
    for (const connection of connections) connection.destroy();
  });
  await once(frozen, 'listening');
  const { port } = frozen.address() as AddressInfo;
  const env = {
    ...{ REDIS_URL: redisUrl(), KEY_PREFIX: freshPrefix(), OPS_TOKEN: 'token-of-this-test' },
    ...{ DATABASE_URL: `postgres://u@127.0.0.1:${port}/shop`, PORT: '0', OPS_PORT: '0' },
  };
  await using process = new RunningCli([command], { env });
  await until(async () => connections.length > 0, { what: 'the process has connected' });
  const began = performance.now();
  process.signal('SIGTERM');
  expect(await process.ended).toMatchObject({ exitCode: 0, signal: null });
  // Less than the time that a connection to Postgres may take.
  expect(performance.now() - began).toBeLessThan(3_000);
});
