/**
 * The package as a stranger gets it: packed, installed with what it needs to run and nothing else, type-checked in both ways
 * in which programs resolve modules, and run. Installs from the registry.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { RedisServer } from '../support/servers/redis-server.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const INSTALL = ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
const folder = mkdtempSync(join(tmpdir(), 'stockade-package-'));
let tarball: string;

const run = (cwd: string, program: string, ...args: string[]) =>
  promisify(execFile)(program, args, { cwd, timeout: 600_000 });
const tool = (name: string, ...args: string[]) =>
  run(folder, join(folder, 'node_modules', '.bin', name), ...args);

beforeAll(async () => {
  await run(ROOT, 'npm', 'pack', '--ignore-scripts', '--pack-destination', folder);
  tarball = join(folder, readdirSync(folder).find((name) => name.endsWith('.tgz'))!);
  cpSync(join(ROOT, 'examples'), folder, { recursive: true });
  await run(folder, 'npm', ...INSTALL, tarball);
  await tool('tsc', '-p', '.');
}, 900_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('it starts with production dependencies only, and contains no test, bench or catalogue', async () => {
  const empty = mkdtempSync(join(tmpdir(), 'stockade-empty-'));
  onTestFinished(() => rmSync(empty, { recursive: true, force: true }));
  await run(empty, 'npm', ...INSTALL, '--omit=dev', tarball);
  const installed = join(empty, 'node_modules', '@stockade-engine', 'stockade');
  expect(readdirSync(installed).sort()).toEqual(
    expect.arrayContaining(['README.md', 'dist', 'docs', 'package.json']),
  );
  expect(
    readdirSync(installed).filter((name) => /^(test|bench|catalogue|src|scripts|examples)$/.test(name)),
  ).toEqual([]);
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const { stdout } = await run(empty, join(empty, 'node_modules', '.bin', 'stockade'), '--version');
  expect(stdout.trim()).toBe(version);

  const node = spawn(join(empty, 'node_modules', '.bin', 'stockade'), ['serve', '--json'], {
    cwd: empty,
    env: { PATH: process.env.PATH, PORT: '0', OPS_PORT: '0', DATA_DIR: join(empty, 'data') },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void node.kill('SIGKILL'));
  const { publicUrl, opsUrl } = JSON.parse(await lineOf(node.stdout, /^\{"ready":true.*$/m));
  for (const url of [publicUrl, opsUrl]) {
    for (const path of ['/openapi.json', '/docs', '/problems/unavailable'])
      expect((await fetch(url + path)).status, url + path).toBe(200);
  }
}, 900_000);

/** The first text of a stream that matches. @throws if the stream ends without it */
async function lineOf(stream: Readable, pattern: RegExp): Promise<string> {
  let said = '';
  for await (const text of stream.setEncoding('utf8')) {
    said += text;
    const [line] = pattern.exec(said) ?? [];
    if (line !== undefined) return line;
  }
  throw new Error(`it ended and said: ${said}`);
}

test('its types work for programs that resolve as Node does, and as bundlers do', async () => {
  await tool('tsc', '-p', '.', '--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit');
  await tool('publint', '--strict', tarball);
  await tool('attw', tarball, '--profile', 'esm-only');
});

/** Starts an example that listens. @returns where, and how to end it */
async function started(example: string, at = 0) {
  const child = spawn(process.execPath, [join('out', `${example}.js`)], {
    cwd: folder,
    env: { PATH: process.env.PATH, PORT: String(at) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  let said = '';
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text;
      const found = /ready[\s\S]*port: (\d+)/.exec(said);
      if (found) resolve(Number(found[1]));
    });
    void ended.then((code) => reject(new Error(`${example} ended with ${code}: ${said}`)));
  });
  return {
    url: `http://localhost:${port}`,
    async end() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

test.each(['express', 'fastify', 'nestjs'])(
  'the example %s sells, and ends in good order',
  async (example) => {
    const shop = await started(example);
    try {
      const buy = async (sale: string, key: string) => {
        const headers = { 'x-buyer-id': 'ann', 'idempotency-key': key };
        const answer = await fetch(`${shop.url}/buy/${sale}`, { method: 'POST', headers });
        return { status: answer.status, ...((await answer.json()) as { code: string; orderId?: string }) };
      };
      const bought = await buy('front-row', 'a');
      expect(bought).toMatchObject({ status: 201, code: 'committed', quantity: 1 });
      expect(await buy('front-row', 'a')).toEqual(bought);
      expect(await buy('front-row', 'b')).toMatchObject({ status: 409, code: 'limit_reached' });
      expect(await buy('back-row', 'c')).toMatchObject({ status: 404, code: 'unknown_sale' });
    } finally {
      expect(await shop.end()).not.toBe(1);
    }
  },
);

test.each(['express', 'fastify', 'nestjs'])('the example %s ends if its port is in use', async (example) => {
  const other = createServer().listen(0);
  await once(other, 'listening');
  try {
    const { port } = other.address() as AddressInfo;
    await expect(started(example, port)).rejects.toThrow(`${example} ended with 1`);
  } finally {
    other.close();
  }
});

test('the example worker takes turns under the lock', async () => {
  await using server = await RedisServer.start();
  const work = () =>
    promisify(execFile)(process.execPath, [join('out', 'worker.js')], {
      cwd: folder,
      env: { PATH: process.env.PATH, REDIS_URL: server.url },
    });
  const said = await Promise.all(Array.from({ length: 3 }, work));
  expect(said.map(({ stdout }) => stdout.trim()).sort()).toEqual(['counted 1', 'counted 2', 'counted 3']);
});
