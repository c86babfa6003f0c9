/** Entries of the package in a program of their own: what it loads, writes and leaves behind. From dist/, as they are shipped. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { PGLITE_FLAGS } from '../../support/nodes/build.ts';

const dist = (file: string) => new URL(`../../../dist/${file}`, import.meta.url).href;

function aFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-alone-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs a program to its own end. @returns what it has written to stdout @throws if it has written to stderr */
async function run(program: string, cwd: string): Promise<string> {
  const main = join(aFolder(), 'main.mjs');
  writeFileSync(main, program);
  const args = [...PGLITE_FLAGS, main];
  const env = { PATH: process.env.PATH, TMPDIR: cwd };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
    cwd,
    env,
    timeout: 120_000,
  });
  expect(stderr).toBe('');
  return stdout;
}

/** For a program: buys, and asks again with the same key as a buyer does. On a busy machine a commit may take longer than the deadline. */
const BUY = `const buy = async (shop, buyerId) => {
  for (;;) {
    const { code } = await shop.purchase({ saleId: 'web', buyerId, key: 'k' });
    if (code !== 'accepted' && code !== 'unknown') return code;
  }
};`;

test('a shop without options sells, prints nothing, handles no signals, and leaves no file', async () => {
  const folder = aFolder();
  const said = await run(
    `import { readdirSync } from 'node:fs';
     import { open } from '${dist('index.js')}';
     const shop = await open();
     await shop.sales.create({ id: 'web', stock: 1 });
     ${BUY}
     const code = await buy(shop, 'ann');
     const listeners = process.eventNames().filter((name) => /^SIG|xception|ejection/.test(String(name)));
     const folders = readdirSync('.').length;
     await shop.close();
     await shop.close();
     console.log(JSON.stringify({ code, listeners, folders }));`,
    folder,
  );
  expect(JSON.parse(said)).toEqual({ code: 'committed', listeners: [], folders: 1 });
  expect(readdirSync(folder)).toEqual([]);
});

test('a dataDir is filled again if its first start was cut off, and keeps the orders, for one program at a time', async () => {
  const folder = aFolder();
  const unfinished = join(folder, 'data', 'pglite');
  mkdirSync(unfinished, { recursive: true, mode: 0o700 });
  writeFileSync(join(unfinished, 'PG_VERSION'), '17\n');
  writeFileSync(`${unfinished}.unfinished`, '');
  const first = await run(
    `import { open } from '${dist('index.js')}';
     const shop = await open({ dataDir: 'data' });
     await shop.sales.create({ id: 'web', stock: 2 });
     ${BUY}
     const code = await buy(shop, 'ann');
     const second = await open({ dataDir: 'data' }).catch(({ code }) => code);
     await shop.close();
     console.log(code, second);`,
    folder,
  );
  expect(first).toBe('committed data_dir_in_use\n');
  expect(existsSync(`${unfinished}.unfinished`)).toBe(false);
  const next = await run(
    `import { open } from '${dist('index.js')}';
     const shop = await open({ dataDir: 'data' });
     const again = await shop.purchase({ saleId: 'web', buyerId: 'ann', key: 'k' });
     const more = await shop.purchase({ saleId: 'web', buyerId: 'ann' });
     console.log(again.code, more.code);
     await shop.close();`,
    folder,
  );
  // Not filled once more.
  expect(next).toBe('committed limit_reached\n');
});

/** The modules that an entry loads: files of dist/, and packages by name. */
async function loadedBy(entry: string): Promise<string[]> {
  const hook = `import { appendFileSync } from 'node:fs';
    export function load(url, context, next) {
      appendFileSync('loaded', url + '\\n');
      return next(url, context);
    }`;
  const said = await run(
    `import { register } from 'node:module';
     import { readFileSync } from 'node:fs';
     register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}));
     await import('${dist(entry)}');
     console.log(readFileSync('loaded', 'utf8'));`,
    aFolder(),
  );
  const names = said
    .split('\n')
    .filter((url) => url.startsWith('file:'))
    .map((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? url.replace(dist(''), ''));
  return [...new Set(names)].sort();
}

test('./locks loads ioredis and what locks need, and nothing else', async () => {
  const loaded = await loadedBy('locks.js');
  expect(loaded.filter((name) => !name.startsWith('locks/'))).toEqual([
    'engine/errors.js',
    'ioredis',
    'lib/fifo.js',
    'lib/monotonic.js',
    'lib/with-timeout.js',
    'locks.js',
    'redis/clients.js',
    'redis/redis-address.js',
    'redis/refusals.js',
    'redis/reply-reason.js',
  ]);
});
