/** Commands that run a node: serve and demo, embedded and on real servers. */
import { exec, execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CliOptions, callCli, RunningCli, runCli } from '../../support/cli/cli.ts';
import { hasTerminals, stockade, Terminal } from '../../support/cli/terminal.ts';
import { freshDatabase, freshPrefix, redisUrl } from '../../support/fixtures.ts';
import { LONG_TIMEOUTS_ENV } from '../../support/long-timeouts.ts';
import { isRelease } from '../../support/tier.ts';

let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'stockade-node-'));
});

afterEach(() => rmSync(cwd, { recursive: true }));

const start = (args: string, env: NodeJS.ProcessEnv = {}) =>
  new RunningCli(args.split(' '), { cwd, env: { ...LONG_TIMEOUTS_ENV, ...env } });
const run = (args: string, { env, ...options }: CliOptions = {}) =>
  runCli(args.split(' '), { cwd, ...options, env: { ...LONG_TIMEOUTS_ENV, ...env } });
/** A command that talks to a running node. */
const ask = (args: string, env: NodeJS.ProcessEnv) => callCli(args.split(' '), { cwd, env });
const ownStores = async () => ({
  ...LONG_TIMEOUTS_ENV,
  REDIS_URL: redisUrl(),
  DATABASE_URL: await freshDatabase(),
  KEY_PREFIX: freshPrefix(),
});

function buy(publicUrl: string, saleId: string, buyerId: string): Promise<Response> {
  return fetch(`${publicUrl}/v1/sales/${saleId}/orders`, {
    method: 'POST',
    headers: { 'x-buyer-id': buyerId, 'content-type': 'application/json' },
    body: '{"quantity":1}',
  });
}

/** The files in a folder that other users of the machine can read. They may enter the folders above it. */
async function readableByOthers(folder: string): Promise<string[]> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name));
  expect(files.filter((file) => (statSync(file).mode & 0o004) !== 0).length).toBeGreaterThan(100);
  chmodSync(cwd, 0o755);
  // Root can try it as another user. Other users can only check the mode.
  if (process.getuid?.() !== 0) return (statSync(folder).mode & 0o077) === 0 ? [] : files;
  const asNobody = { uid: 65_534, gid: 65_534 };
  const { stdout } = await promisify(execFile)('find', [folder, '-type', 'f', '-readable'], asNobody).catch(
    (error: { stdout: string; stderr: string }) => {
      expect(error.stderr).toContain('Permission denied');
      return error;
    },
  );
  return stdout.split('\n').filter((line) => line !== '');
}

/** TCP ports that a process listens on. PGlite at one of them would let in every user of the machine. */
function portsOf(pid: number): number[] {
  const links = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      return '';
    }
  });
  const sockets = new Set(links.map((link) => /^socket:\[(\d+)\]$/.exec(link)?.[1]));
  const table = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').trim().split('\n').slice(1);
  const rows = table.map((line) => line.trim().split(/\s+/));
  const listening = rows.filter((row) => row[3] === '0A' && sockets.has(row[9]));
  return listening.map((row) => Number.parseInt(row[1]!.split(':')[1]!, 16)).sort((a, b) => a - b);
}

const portsIn = (...urls: string[]) => urls.map((url) => Number(new URL(url).port)).sort((a, b) => a - b);

describe('serve', () => {
  test('without options: it sells from a new sale, which verify confirms; SIGTERM ends it with exit code 0', async () => {
    await using node = start('serve --port 0 --ops-port 0');
    const [line] = await node.said(/^.*Create a sale: .*$/m);
    const { publicUrl, opsUrl, backend, database } = JSON.parse(line);
    expect({ backend, database }).toEqual({ backend: 'in-process', database: 'pglite' });

    const ops = { OPS_URL: opsUrl };
    const [, hint] = /Create a sale: (.*)$/.exec(JSON.parse(line).msg)!;
    const { stdout: made } = await promisify(exec)(hint!, { cwd, env: { PATH: process.env.PATH } });
    expect(made).toMatch(/^Created\.\nsale +my-sale$/m);

    expect(await ask('sale create tickets --stock 1', ops)).toMatchObject({ exitCode: 0 });
    expect((await buy(publicUrl, 'tickets', 'alice')).status).toBe(201);
    expect(await (await buy(publicUrl, 'tickets', 'bob')).json()).toMatchObject({ code: 'sold_out' });
    const verified = await ask('verify tickets', ops);
    expect(verified.exitCode).toBe(0);
    expect(verified.stdout).toMatch(/^tickets: ok, 1 order of 1 buyer\n {2}.*1 initial \+ 0 /);
    const again = await ask('sale create tickets --stock 1', ops);
    expect(again).toMatchObject({ exitCode: 1, stdout: '' });
    expect(again.stderr).toMatch(/^error: there is a sale tickets already/);
    const refused = await ask('sale list', { ...ops, OPS_TOKEN: 'some-other-token' });
    expect(refused.stderr).toMatch(/refuses the token in OPS_TOKEN/);

    expect(await readableByOthers(join(cwd, '.stockade'))).toEqual([]);
    if (process.platform === 'linux') expect(portsOf(node.pid)).toEqual(portsIn(publicUrl, opsUrl));

    node.signal('SIGTERM');
    expect(await node.ended).toMatchObject({ exitCode: 0 });
  });

  test('--json: one object on stdout, logs on stderr; a second signal kills it at once', async () => {
    const words = 'serve --port 0 --ops-port 0 --workers 1 --log-level debug --json';
    await using node = start(words, await ownStores());
    await node.said(/"ready":true/);
    // The process is stopped until both signals are sent, so that the second can't come too late.
    node.signal('SIGSTOP', 'SIGINT', 'SIGTERM', 'SIGCONT');
    const { exitCode, signal, stdout, stderr } = await node.ended;
    expect({ exitCode, signal }).toEqual({ exitCode: null, signal: 'SIGKILL' });
    expect(JSON.parse(stdout)).toMatchObject({ ready: true, backend: 'redis', database: 'postgres' });
    expect(stderr).toContain('"msg":');
    expect(stderr).toContain('A second signal, ');
  });

  test.runIf(hasTerminals)(
    'at a terminal: says at once that it starts, how to stop it, and how the stop goes',
    async () => {
      const env = { ...(await ownStores()), SHUTDOWN_GRACE_MS: '3000' };
      await using terminal = new Terminal(stockade('serve --port 0 --ops-port 0 --workers 1'), {
        cwd,
        env,
        columns: 200,
      });
      await terminal.sees('Ctrl-C stops it.');
      expect(terminal.shown).toMatch(
        /\r\nStarting a node \(stock in redis:.*; orders in postgres:.*\) …\r\n/,
      );
      expect(terminal.shown.indexOf('Stockade sells at http://')).toBeGreaterThan(0);
      terminal.press('\x03');
      await terminal.ended;
      // The worker of a busy machine may not report in time that there is none.
      expect(terminal.shown).toMatch(
        /Stopping: (no request is under way|requests under way, answered within 3 s)\. It takes at most 8 s; a second Ctrl-C ends it at once …\r\n/,
      );
      expect(terminal.shown).toMatch(/Stopped after \d+\.\d s\.\r\n$/);
    },
  );
});

describe('sync', () => {
  test('copies the orders of a node without sync to Postgres, and serves metrics; SIGTERM ends it with exit code 0', async () => {
    const env = { ...(await ownStores()), OPS_TOKEN: 'a-token-for-both' };
    await using node = start('serve --port 0 --ops-port 0 --workers 1 --sync off --json', env);
    const { publicUrl } = JSON.parse((await node.said(/^.*"ready":true.*$/m))[0]);
    await using sync = start('sync --ops-port 0 --json', env);
    const { opsUrl } = JSON.parse((await sync.said(/^.*"syncing":true.*$/m))[0]);
    expect((await ask('sale create tickets --stock 1', env)).exitCode).toBe(0);
    expect((await buy(publicUrl, 'tickets', 'alice')).status).toBe(201);

    const get = (path: string) =>
      fetch(`${opsUrl}${path}`, { headers: { authorization: `Bearer ${env.OPS_TOKEN}` } });
    expect(await (await get('/metrics')).text()).toMatch(/^stockade_sync_orders_total 1$/m);
    expect((await fetch(`${opsUrl}/metrics`)).status).toBe(401);
    expect((await fetch(`${opsUrl}/healthz`)).status).toBe(200);
    expect(await (await fetch(`${opsUrl}/readyz`)).json()).toEqual({ status: 'ready' });
    expect((await get('/v1/sales')).status).toBe(404);
    sync.signal('SIGTERM');
    expect(await sync.ended).toMatchObject({ exitCode: 0 });
  });

  test('on a port in use: the error names the port and the setting to change', async () => {
    const taken = new URL(redisUrl()).port;
    const { exitCode, stderr } = await run(`sync --ops-port ${taken}`, { env: await ownStores() });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^error: can't listen on 127.0.0.1:\d+: something else listens there/m);
    expect(stderr).toContain('OPS_PORT');
  });
});

describe('demo', () => {
  const FIELDS = {
    committed: 100,
    distinctBuyers: 100,
    oversold: 0,
    undersold: 0,
    verify: 'ok',
    holds: true,
  };

  if (isRelease) {
    test('without options: all promises hold, stdout has one object, and no process or file is left', async () => {
      const { exitCode, stdout, stderr } = await run('demo --json');
      expect(JSON.parse(stdout)).toMatchObject({
        ...FIELDS,
        scenario: 'S1',
        requests: 20_000,
        backend: 'in-process',
      });
      expect(exitCode).toBe(0);
      expect(stderr).toMatch(/^Starting a node .*PGlite.*\nReady after /);
      expect(existsSync(join(cwd, '.stockade'))).toBe(false);
    });
  }

  test('on Redis and Postgres, in words', async () => {
    const { exitCode, stdout, stderr } = await run('demo --seed 7 --requests 4000', {
      env: await ownStores(),
    });
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toMatch(/^requests +4,000 by 200 clients, seed 7$/m);
    expect(stdout).toMatch(/^Holds: exactly 100 units went to 100 buyers\.$/m);
    expect(stdout).toMatch(/^Measured with client and server .*redis, postgres.* on the same machine/m);
  });

  // test/integration/node/scenarios.test.ts sells such stocks without the command line.
  if (isRelease) {
    test('one unit in 64 segments', async () => {
      const args = 'demo --json --stock 1 --segments 64 --buyers 1500 --requests 1500 --workers 1';
      const { exitCode, stdout } = await run(args, { env: await ownStores() });
      expect(JSON.parse(stdout)).toMatchObject({ committed: 1, distinctBuyers: 1, holds: true });
      expect(exitCode).toBe(0);
    });

    test('fewer buyers than units: one for each buyer', async () => {
      const args = 'demo --json --stock 300 --buyers 200 --requests 4000 --workers 1';
      const { exitCode, stdout } = await run(args, { env: await ownStores() });
      expect(JSON.parse(stdout)).toMatchObject({
        committed: 200,
        distinctBuyers: 200,
        undersold: 0,
        holds: true,
      });
      expect(exitCode).toBe(0);
    });
  }

  if (isRelease) {
    test.runIf(hasTerminals)(
      'at a terminal: it begins with a stock that falls, and ends as elsewhere',
      async () => {
        const env = { ...(await ownStores()), NO_COLOR: '1' };
        await using terminal = new Terminal(stockade('demo --requests 2000 --workers 1'), { cwd, env });
        expect(await terminal.ended).toBe(0);
        const shown = terminal.shown.replaceAll('\r', '');
        // Each frame is drawn over the one before.
        const left = [...shown.matchAll(/^([\d,]+) left/gm)].map(([, units]) =>
          Number(units!.replace(',', '')),
        );
        expect(left.length).toBeGreaterThan(1);
        expect(left).toEqual([...left].sort((a, b) => b - a));
        expect(left.at(-1)).toBe(0);
        expect(shown).toMatch(/\n0 left +2,400 orders +1,200 refusals +\d+\.\d s\n/);
        expect(shown).toContain('Holds: exactly 2,400 units went to 2,400 buyers.\n\nNow all at once.\n');
        expect(shown).toMatch(/\nrequests +2,000 by 200 clients, seed \d+\n/);
        expect(shown).toMatch(/\nHolds: exactly 100 units went to 100 buyers\.\n/);
        expect(shown).not.toMatch(/\p{Cc}\[\d*m/u);
        expect(shown.lastIndexOf('\u001b[?25h')).toBeGreaterThan(shown.lastIndexOf('\u001b[?25l'));
      },
    );
  }

  test.runIf(hasTerminals)('Ctrl-C ends the picture, and shows the cursor again', async () => {
    await using terminal = new Terminal(stockade('demo --workers 1'), { cwd, env: await ownStores() });
    await terminal.sees(/\d orders +\d/);
    terminal.press('\x03');
    expect(await terminal.ended).toBe(130);
    expect(terminal.shown.lastIndexOf('\u001b[?25h')).toBeGreaterThan(
      terminal.shown.lastIndexOf('\u001b[?25l'),
    );
  });

  if (isRelease) {
    test('Ctrl-C in the middle: exit code 130, and no process or file is left', async () => {
      await using demo = start('demo --requests 5000000 --workers 1');
      await demo.said(/5,000,000 requests from/);
      demo.signal('SIGINT');
      const { exitCode, stderr } = await demo.ended;
      expect(exitCode).toBe(130);
      expect(stderr).toContain('interrupted by SIGINT');
      expect(existsSync(join(cwd, '.stockade'))).toBe(false);
    });

    test('--keep: the node stays, with commands to talk to it, until Ctrl-C', async () => {
      // Before a release, on the embedded default.
      await using demo = start('demo --keep --requests 2000 --workers 1', isRelease ? {} : await ownStores());
      await demo.said(/runs until Ctrl-C/);
      const [, saleUrl] = await demo.said(/^curl -s (http:\S+\/v1\/sales\/demo-\S+)$/m);
      expect(await (await fetch(saleUrl!)).json()).toMatchObject({ soldOut: true, remaining: 0 });
      demo.signal('SIGINT');
      expect(await demo.ended).toMatchObject({ exitCode: 0 });
      expect(existsSync(join(cwd, '.stockade'))).toBe(true);
    });
  }
});
