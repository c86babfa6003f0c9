// Packs each program of dist/ into one file, and each package that a program uses into another; beside each file it puts a code cache.
// So a start takes a third of the processor time (docs/decisions/0020-bundled-programs.md). The other files of dist/ are for programs
// that import Stockade.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

/** Programs, and entries of threads that every node starts: their files in src/, without the ending. */
const PROGRAMS = ['cli/main', 'node/worker/worker-thread'];

/** Loaded from node_modules: the first has native binaries, the others are loaded only by a thread that is not bundled. */
const LEFT_OUT = ['uWebSockets.js', '@electric-sql/pglite', '@electric-sql/pglite-socket'];

/** pg names packages that are not installed here. */
const NOT_INSTALLED = ['pg-native', 'pg-query-stream'];

/** Parts of packages that Stockade does not use: databases other than Postgres, messages in other languages, a client of Prometheus. */
const UNUSED =
  /\/(knex\/lib\/dialects\/(?!index\.|postgres\/)|zod\/v4\/locales\/(?!index\.|en\.)|prom-client\/lib\/pushgateway\.)/;

const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const packages = Object.keys(dependencies).filter((name) => !LEFT_OUT.includes(name));

/** What a thread loads of a package, and how quickly. */
const leanPackages = {
  name: 'lean-packages',
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      const file = urlPath(path);
      if (UNUSED.test(file)) return { contents: 'export default undefined;' };
      if (file.endsWith('/ioredis/built/utils/Commander.js'))
        return { contents: quicklyFilled(readFileSync(path, 'utf8')) };
      return undefined;
    });
    // The same as Stockade itself uses.
    onResolve({ filter: /^pg$/ }, ({ importer }) =>
      urlPath(importer).includes('/node_modules/knex/') ? { path: './pg.cjs', external: true } : undefined,
    );
  },
};

/**
 * ioredis adds 600 methods to a prototype. For each, V8 copies the list of the others, which takes 15 ms and 8 MB in each thread. It
 * keeps them in a hash table instead after one was removed that was not the last, until the class is used.
 */
function quicklyFilled(commander) {
  const loop = 'commands.forEach(function (commandName) {';
  const parts = commander.split(loop);
  if (parts.length !== 2) throw new Error('ioredis fills its prototype in another way than is known here');
  const names = ['first', 'second'].map((name) => `Commander.prototype.${name}`);
  return parts.join(
    `${names.join(' = ')} = undefined; ${names.map((name) => `delete ${name};`).join(' ')} ${loop}`,
  );
}

/** For modules outside of the bundles. src/node/process/run-bundle.ts brings an `importModule`, Node's own loader does not. */
const BUNDLE = `const bundle = {
  url: require('node:url').pathToFileURL(__filename).href,
  importModule: module.importModule ?? ((specifier) => import(specifier)),
};`;

const importOfBundle = {
  name: 'import-of-bundle',
  setup({ onLoad }) {
    const contents = 'export const importModule = bundle.importModule;';
    onLoad({ filter: /[\\/]import-module\.ts$/ }, () => ({ contents }));
  },
};

const COMMON = {
  absWorkingDir: root,
  bundle: true,
  format: 'cjs',
  platform: 'node',
  target: 'node20.12',
  // In a script with a code cache, Node can't serve `import()`. It becomes a later `require`.
  supported: { 'dynamic-import': false },
  logLevel: 'warning',
};

const [inputs] = await Promise.all([
  Promise.all(packages.map(bundlePackage)).then((all) => all.flat()),
  ...PROGRAMS.map(bundleProgram),
]);
const { writeCaches } = await import('../dist/node/process/run-bundle.js');
writeCaches([...packages.map(bundleOfPackage), ...PROGRAMS.map(bundleOf)]);
writeFileSync(join(dist, 'LICENSES.txt'), licenses(inputs));

function bundleOfPackage(name) {
  return join(dist, 'packages', `${name}.cjs`);
}

function bundleOf(program) {
  return join(dist, `${program}.cjs`);
}

/** A bundle of its own for each package. @returns the files that it contains */
async function bundlePackage(name) {
  const { metafile } = await buildAscii({
    stdin: { contents: await reexport(name), resolveDir: root, sourcefile: name },
    outfile: bundleOfPackage(name),
    metafile: true,
    external: NOT_INSTALLED,
    // Node 20 lacks it. Then pg would ask `Response` whether it runs at Cloudflare, and Node would load all of `fetch`.
    ...(name === 'pg' && { define: { navigator: '{ "userAgent": "Node.js" }' } }),
    plugins: [leanPackages],
  });
  return Object.keys(metafile.inputs);
}

/**
 * A module that exports what Node finds in a package. In the bundle it is a CommonJS module. `import p from 'p'` gets all of such a
 * module, so a function that is a default has the other exports as its members.
 */
async function reexport(name) {
  const { type } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'));
  if (type !== 'module') return `module.exports = require('${name}');`;
  const { default: main } = await import(name);
  return typeof main === 'function'
    ? `const all = require('${name}'); module.exports = Object.assign(all.default, all);`
    : `export * from '${name}';`;
}

/** Writes a bundle, and the file of the program, which runs it. */
async function bundleProgram(program) {
  const outfile = bundleOf(program);
  const folder = dirname(outfile);
  await buildAscii({
    entryPoints: [`src/${program}.ts`],
    outfile,
    sourcemap: 'linked',
    sourcesContent: false,
    external: LEFT_OUT,
    banner: { js: BUNDLE },
    define: { 'import.meta.url': 'bundle.url', 'import.meta.resolve': 'require.resolve' },
    plugins: [bundledPackages(folder), importOfBundle, ownPlaces(folder)],
  });
  const runBundle = urlPath(relative(folder, join(dist, 'node', 'process', 'run-bundle.js')));
  const text = `#!/usr/bin/env node
import { runBundle } from '${runBundle}';

runBundle(new URL('./${basename(outfile)}', import.meta.url));
`;
  writeFileSync(join(dist, `${program}.js`), text);
  rmSync(join(dist, `${program}.js.map`), { force: true });
}

/** esbuild leaves other characters than ASCII in comments and in template literals. */
async function buildAscii(options) {
  const { outputFiles, metafile } = await build({ ...COMMON, ...options, write: false });
  for (const { path, text } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, path.endsWith('.cjs') ? text.replaceAll(/[^\0-\x7f]/g, escaped) : text);
  }
  return { metafile };
}

function escaped(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function urlPath(path) {
  return path.replaceAll('\\', '/');
}

function bundledPackages(folder) {
  return {
    name: 'bundled-packages',
    setup({ onResolve }) {
      onResolve({ filter: /^[^./]/ }, ({ path }) =>
        packages.includes(path)
          ? { path: urlPath(relative(folder, bundleOfPackage(path))), external: true }
          : undefined,
      );
    },
  };
}

/** In a bundle, `import.meta.url` still names the file in dist/ that the module has without it: assets lie beside that file. */
function ownPlaces(folder) {
  return {
    name: 'own-places',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const file = join(dist, relative(join(root, 'src'), path)).replace(/\.ts$/, '.js');
        const place = JSON.stringify(urlPath(relative(folder, file)));
        const contents = readFileSync(path, 'utf8').replaceAll(
          /\bimport\.meta\.url\b/g,
          `new URL(${place}, import.meta.url).href`,
        );
        return { contents, loader: 'ts' };
      });
    },
  };
}

/** The licences of the bundled packages, which ask to be kept with every copy. */
function licenses(inputs) {
  const folders = inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
    const files = readdirSync(join(root, folder)).filter((file) => /^(licen[cs]e|notice)/i.test(file));
    return [
      `${name} ${version} (${license})`,
      ...files.map((file) => readFileSync(join(root, folder, file), 'utf8').trim()),
    ].join('\n\n');
  });
  const intro = 'dist/packages/ contains these packages.';
  return `${[intro, ...texts].join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}
