/** The program as it is shipped: a file for each thread, and one for each package (scripts/bundle.mjs). */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { freshDatabase, freshPrefix, redisUrl } from '../../support/fixtures.ts';
import { ensureBuilt, mainProgram } from '../../support/nodes/build.ts';
import { startTestNode } from '../../support/nodes/node.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DIST = pathToFileURL(join(ROOT, 'dist/')).href;
const NATIVE = 'uWebSockets.js';

beforeAll(() => ensureBuilt());

/** A module that, imported first, writes the url of each module that a thread loads into the file. */
function recorder(file: string): string {
  const hook = `import { appendFileSync } from 'node:fs';
    export function load(url, context, next) {
      appendFileSync(${JSON.stringify(file)}, url + '\\n');
      return next(url, context);
    }`;
  const program = `import { register } from 'node:module';
    register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}));`;
  writeFileSync(`${file}.mjs`, program);
  return `${file}.mjs`;
}

test('a node loads one file of its own in each thread, and each package as one file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-bundle-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const loaded = join(folder, 'loaded');
  await using node = await startTestNode({
    redisUrl: redisUrl(),
    databaseUrl: await freshDatabase(),
    keyPrefix: freshPrefix(),
    launcher: ['/bin/sh', '-c', `program=$1; shift; exec "$program" --import ${recorder(loaded)} "$@"`, 'sh'],
  });
  await node.stop();

  const files = readFileSync(loaded, 'utf8').split('\n');
  const names = files
    .filter((url) => url.startsWith('file:') && !url.startsWith(pathToFileURL(folder).href))
    .map((url) => (url.includes('/node_modules/') ? url.replace(/^.*\/node_modules\//, '') : url))
    .map((url) => url.replace(DIST, ''))
    .filter((name) => !name.startsWith(`${NATIVE}/`));
  const own = names.filter((name) => !/^packages\/[\w-]+\.js$/.test(name));
  expect([...new Set(own)].sort()).toEqual(['cli/main.js', 'node/worker/worker-thread.js']);
});

test('source maps lead from a bundle to the source', () => {
  const { sources, sourcesContent } = JSON.parse(readFileSync(`${mainProgram}.map`, 'utf8'));
  expect(sources).toEqual(expect.arrayContaining(['../../src/cli/main.ts', '../../src/node/node.ts']));
  expect(sourcesContent).toBeUndefined();
});

/** The packages that the program needs, except those that it loads from node_modules. */
const BUNDLED = Object.keys(
  (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { dependencies: object }).dependencies,
).filter((name) => name !== NATIVE && !name.startsWith('@electric-sql/'));

test('a package exports the same from its bundle, and its errors keep their names', async () => {
  const original = await exportsOf((name) => name);
  expect(await exportsOf((name) => new URL(`packages/${name}.js`, DIST).href)).toMatchObject(original);
  expect(original.ioredis).toMatchObject({ ReplyError: 'ReplyError', Redis: 'function' });
});

/** What each package exports: names of errors, and types of the rest. In a process of its own: vitest would compile the bundles. */
async function exportsOf(place: (name: string) => string): Promise<Record<string, object>> {
  // esbuild puts _ before the name of a class that refers to itself. Stockade compares no such name.
  const program = `
    const kind = (value) => value?.prototype instanceof Error ? value.name.replace(/^_/, '') : typeof value;
    const all = {};
    for (const [name, place] of ${JSON.stringify(BUNDLED.map((name) => [name, place(name)]))}) {
      const entries = Object.entries(await import(place)).filter(([word]) => word !== 'module.exports');
      all[name] = Object.fromEntries(entries.map(([word, value]) => [word, kind(value)]));
    }
    console.log(JSON.stringify(all));`;
  const args = ['--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, timeout: 60_000 });
  return JSON.parse(stdout);
}

test('the licence of each package in a bundle is beside it', () => {
  const parts = readFileSync(join(ROOT, 'dist', 'LICENSES.txt'), 'utf8').split(/\n-{80}\n/);
  const named = (name: string) => parts.find((part) => part.trim().startsWith(`${name} `)) ?? '';
  for (const name of BUNDLED) expect(named(name), name).toMatch(/MIT|ISC|Apache|BSD|BlueOak/);
});
