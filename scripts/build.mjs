// Compiles src/ to dist/, puts what is read as files beside the code that reads it (.lua, .sql, the console's page, the style of the
// pages), and bundles the programs: node scripts/build.mjs [--if-changed]
//
// With --if-changed it does nothing if dist/ was built from what is here now.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { putNewPglite } from './new-pglite.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
/** A file that the package leaves out, as it does all caches. */
const BUILT_FROM = join(root, 'dist/built-from.cache');
const source = hashOf([
  ...['src', 'scripts', 'examples/shop-page/page'],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'],
]);
if (
  process.argv.includes('--if-changed') &&
  existsSync(BUILT_FROM) &&
  readFileSync(BUILT_FROM, 'utf8') === source
)
  process.exit();

const typescript = find('typescript/package.json');
if (!typescript) {
  console.error(
    'The build needs the development packages: run `npm ci` without --omit=dev, build, then prune.',
  );
  process.exit(1);
}

// The build takes a while, and `npm start` runs it first: so that the user sees what the wait is for.
process.stderr.write('Building dist/ …\n');
if (existsSync(join(root, 'dist'))) rmSync(join(root, 'dist'), { recursive: true });
execFileSync(process.execPath, [join(typescript, 'bin', 'tsc'), '-p', join(root, 'tsconfig.build.json')], {
  stdio: 'inherit',
});
const ASSETS = [
  'cli/demo/queue/page',
  'http/ops/console',
  'http/description/page.css',
  'locks/lua',
  'engine/redis/lua',
  'postgres/migrations',
];
for (const assets of ASSETS) {
  cpSync(join(root, 'src', assets), join(root, 'dist', assets), { recursive: true });
}
// `stockade demo --queue` shows the page of this example.
cpSync(join(root, 'examples/shop-page/page'), join(root, 'dist/cli/demo/queue/shop-page'), {
  recursive: true,
});
await putNewPglite(join(root, 'dist', 'node', 'stores', 'new-pglite.tar.gz'));

// Not imported above: without the development packages, the message there comes first.
await import('./bundle.mjs');

chmodSync(join(root, 'dist', 'cli', 'main.js'), 0o755);
// Last, so that a build that was broken off is made again.
writeFileSync(BUILT_FROM, source);

/** Of the names and contents of these files and folders, and of the version of Node.js, which the code caches are for. */
function hashOf(paths) {
  const hash = createHash('sha256').update(process.version);
  for (const path of paths) {
    const isFolder = statSync(join(root, path)).isDirectory();
    const names = isFolder ? readdirSync(join(root, path), { recursive: true }).sort() : [''];
    for (const file of names.map((name) => join(path, name)))
      if (statSync(join(root, file)).isFile())
        hash.update(`\0${file}\0`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex');
}

function find(name) {
  try {
    return dirname(createRequire(import.meta.url).resolve(name));
  } catch {
    return undefined;
  }
}
