// Compiles src/ to dist/, puts what is read as files beside the code that reads it (.lua, .sql, the console's page, the style of the
// pages), and bundles the programs: node scripts/build.mjs [--if-changed]
//
// With --if-changed it does nothing if dist/ was built from what is here now.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beginBuild, isBuilt } from './built-from.mjs';
import { putNewPglite } from './new-pglite.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = [
  ...['src', 'scripts', 'examples/shop-page/page'],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'],
];
if (process.argv.includes('--if-changed') && isBuilt(root, SOURCES)) process.exit();

const typescript = find('typescript/package.json');
if (!typescript) {
  console.error(
    'The build needs the development packages: run `npm ci` without --omit=dev, build, then prune.',
  );
  process.exit(1);
}

// The build takes a while, and `npm start` runs it first: so that the user sees what the wait is for.
process.stderr.write('Building dist/ …\n');
const endBuild = beginBuild(root, SOURCES);
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
endBuild();

function find(name) {
  try {
    return dirname(createRequire(import.meta.url).resolve(name));
  } catch {
    return undefined;
  }
}
