// Packs each program of dist/ into one file, and each package that a program uses into another: a node loads 15 files instead
// of two thousand, which halves the processor time of its start (docs/decisions/0020-bundled-programs.md). The other files of
// dist/ are for programs that import Stockade.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');

/** Programs, and entries of threads that every node starts: their files in src/, without the ending. */
const PROGRAMS = ['cli/main', 'node/worker/worker-thread'];

/** Loaded from node_modules: the first has native binaries, the others are loaded only by a thread that is not bundled. */
const LEFT_OUT = ['uWebSockets.js', '@electric-sql/pglite', '@electric-sql/pglite-socket'];

/** knex and pg name packages that are not installed here. */
const NOT_INSTALLED = [
  ...['better-sqlite3', 'mariadb', 'mysql', 'mysql2', 'oracledb', 'sqlite3', 'tedious'],
  ...['pg-native', 'pg-query-stream'],
];

const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const packages = Object.keys(dependencies).filter((name) => !LEFT_OUT.includes(name));

const COMMON = {
  absWorkingDir: root,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.12',
  logLevel: 'warning',
};

const [inputs] = await Promise.all([
  Promise.all(packages.map(bundlePackage)).then((all) => all.flat()),
  ...PROGRAMS.map(bundleProgram),
]);
writeFileSync(join(dist, 'LICENSES.txt'), licenses(inputs));

/** A bundle of its own for each package. @returns the files that it contains */
async function bundlePackage(name) {
  const { metafile } = await build({
    ...COMMON,
    stdin: { contents: await reexport(name), resolveDir: root, sourcefile: `${name}.mjs` },
    outfile: join(dist, 'packages', `${name}.js`),
    metafile: true,
    external: NOT_INSTALLED,
    // Packages in CommonJS call `require` for the modules of Node.
    banner: {
      js: `import { createRequire as createRequireOfBundle } from 'node:module';
const require = createRequireOfBundle(import.meta.url);`,
    },
  });
  return Object.keys(metafile.inputs);
}

/**
 * A module that exports what Node finds in a package. Stockade and ioredis compare names of errors, but esbuild renames a class
 * if its name means something else at the top of the file. So no export has its own name there.
 */
async function reexport(name) {
  const { type } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'));
  if (type === 'module') {
    const hasDefault = 'default' in (await import(name));
    return `export * from '${name}'; ${hasDefault ? `export { default } from '${name}';` : ''}`;
  }
  const exported = Object.keys(await import(name)).filter((word) => /^\w+$/.test(word) && word !== 'default');
  const pairs = exported.map((word, i) => [word, `export${i}`]);
  return `const all = require('${name}');
    const { ${pairs.map((pair) => pair.join(': ')).join(', ')} } = all;
    export { all as default, ${pairs.map(([word, local]) => `${local} as ${word}`).join(', ')} };`;
}

async function bundleProgram(program) {
  const outfile = join(dist, `${program}.js`);
  await build({
    ...COMMON,
    entryPoints: [`src/${program}.ts`],
    outfile,
    sourcemap: 'linked',
    sourcesContent: false,
    external: LEFT_OUT,
    plugins: [bundledPackages(dirname(outfile)), ownPlaces(dirname(outfile))],
  });
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
          ? { path: urlPath(relative(folder, join(dist, 'packages', `${path}.js`))), external: true }
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
