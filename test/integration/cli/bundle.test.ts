/** The program as it is shipped: a bundle for each thread, and one for each package (scripts/bundle.mjs). */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { freshDatabase, freshPrefix, redisUrl } from '../../support/fixtures.ts';
import { mainProgram } from '../../support/nodes/build.ts';
import { startTestNode } from '../../support/nodes/node.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const DIST = pathToFileURL(join(ROOT, 'dist/')).href;
const NATIVE = 'uWebSockets.js';

/** What a thread loads: a module by its address, or a bundle by its path, and whether V8 has taken its code cache. */
interface Loaded {
  readonly module?: string;
  readonly bundle?: string;
  readonly cached?: boolean;
}

/** A module that, imported first, writes to the file what each thread loads. */
function recorder(file: string): string {
  const record = `appendFileSync(${JSON.stringify(file)}, JSON.stringify(loaded) + '\\n');`;
  const hook = `import { appendFileSync } from 'node:fs';
    export function load(module, context, next) {
      const loaded = { module };
      ${record}
      return next(module, context);
    }`;
  const program = `import { appendFileSync } from 'node:fs';
    import { register, syncBuiltinESMExports } from 'node:module';
    import vm from 'node:vm';
    register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}));
    vm.Script = class extends vm.Script {
      constructor(text, options) {
        super(text, options);
        const loaded = { bundle: options.filename, cached: this.cachedDataRejected === false };
        ${record}
      }
    };
    syncBuiltinESMExports();`;
  writeFileSync(`${file}.mjs`, program);
  return `${file}.mjs`;
}

async function loadedByNode(): Promise<Loaded[]> {
  const folder = mkdtempSync(join(tmpdir(), 'stockade-bundle-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'loaded');
  await using node = await startTestNode({
    redisUrl: redisUrl(),
    databaseUrl: await freshDatabase(),
    keyPrefix: freshPrefix(),
    launcher: ['/bin/sh', '-c', `program=$1; shift; exec "$program" --import ${recorder(file)} "$@"`, 'sh'],
  });
  await node.stop();
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines
    .map((line): Loaded => JSON.parse(line))
    .filter(({ module }) => !module?.endsWith('/loaded.mjs'));
}

test('a node loads one bundle of its own in each thread, and one for each package, all with their code caches', async () => {
  const loaded = await loadedByNode();
  const modules = loaded.flatMap(({ module }) =>
    module?.startsWith('file:') ? module.replace(DIST, '') : [],
  );
  expect([...new Set(modules)].filter((name) => !name.includes(`/node_modules/${NATIVE}/`)).sort()).toEqual([
    'cli/main.js',
    'node/process/import-module.js',
    'node/process/run-bundle.js',
    'node/worker/worker-thread.js',
  ]);
  const bundles = loaded.filter(({ bundle }) => bundle !== undefined);
  const names = bundles.map(({ bundle }) => relative(join(ROOT, 'dist'), bundle!));
  expect([...new Set(names)].filter((name) => !name.startsWith('packages/')).sort()).toEqual([
    'cli/main.cjs',
    'node/worker/worker-thread.cjs',
  ]);
  expect(bundles.filter(({ cached }) => !cached)).toEqual([]);
  // These take long to load, and only webhooks, traces and other commands use them.
  expect(names.filter((name) => /undici|opentelemetry|progress/.test(name))).toEqual([]);
});

test('source maps lead from a bundle to the source', () => {
  const { sources, sourcesContent } = JSON.parse(readFileSync(join(ROOT, 'dist/cli/main.cjs.map'), 'utf8'));
  expect(sources).toEqual(expect.arrayContaining(['../../src/cli/main.ts', '../../src/node/node.ts']));
  expect(sourcesContent).toBeUndefined();
});

test.each([
  ['the bundle', [], /dist\/cli\/main\.cjs:\d+/],
  [
    'the source, if Node is told to use source maps',
    ['--enable-source-maps'],
    /src\/cli\/sale\/show\.ts:\d+/,
  ],
])('a stack trace shows lines of %s', async (_, flags, line) => {
  const command = ['sale', 'show', 'tickets', '--ops-url', 'http://127.0.0.1:1', '--log-level', 'debug'];
  const args = [...flags, mainProgram, ...command];
  const failed: { stderr: string } = await promisify(execFile)(process.execPath, args).catch(
    (error) => error,
  );
  expect(failed.stderr).toMatch(line);
  expect(failed.stderr).toMatch(/ at OpsConnection\.send /);
});

/** The packages that the program needs, except those that it loads from node_modules. */
const BUNDLED = Object.keys(
  (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { dependencies: object }).dependencies,
).filter((name) => name !== NATIVE && !name.startsWith('@electric-sql/'));

/** Exports of packages that are not in their bundles, because Stockade does not use them. */
const LEFT_OUT = { 'prom-client': { Pushgateway: 'object' } };

test('a package exports the same from its bundle, and its errors keep their names', async () => {
  const { original, bundled } = await exportsOfPackages();
  expect(bundled).toMatchObject({ ...original, ...withAll(original, LEFT_OUT) });
  expect(original.ioredis).toMatchObject({ ReplyError: 'ReplyError', Redis: 'function' });
});

type Exports = Record<string, Record<string, string>>;

function withAll(all: Exports, changed: Exports): Exports {
  return Object.fromEntries(
    Object.entries(changed).map(([name, exports]) => [name, { ...all[name], ...exports }]),
  );
}

/** What each package exports: names of errors, and types of the rest. In a process of its own: vitest would compile the bundles. */
async function exportsOfPackages(): Promise<{ original: Exports; bundled: Exports }> {
  // esbuild puts _ before the name of a class that refers to itself. Stockade compares no such name.
  const program = `
    import { createRequire } from 'node:module';
    const require = createRequire(${JSON.stringify(`${DIST}packages/`)});
    const kind = (value) => value?.prototype instanceof Error ? value.name.replace(/^_/, '') : typeof value;
    const original = {};
    const bundled = {};
    for (const name of ${JSON.stringify(BUNDLED)}) {
      const words = Object.keys(await import(name)).filter((word) => word !== 'module.exports' && word !== 'default');
      const kinds = (all) => Object.fromEntries(words.map((word) => [word, kind(all[word])]));
      original[name] = kinds(await import(name));
      bundled[name] = kinds(require('./' + name + '.cjs'));
    }
    console.log(JSON.stringify({ original, bundled }));`;
  const args = ['--input-type=module', '--eval', program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, timeout: 60_000 });
  return JSON.parse(stdout);
}

test('the licence of each package in a bundle is beside it', () => {
  const parts = readFileSync(join(ROOT, 'dist', 'LICENSES.txt'), 'utf8').split(/\n-{80}\n/);
  const named = (name: string) => parts.find((part) => part.trim().startsWith(`${name} `)) ?? '';
  for (const name of BUNDLED) expect(named(name), name).toMatch(/MIT|ISC|Apache|BSD|BlueOak/);
});
