/**
 * compose.yaml without a container engine: its services' programs are started with the arguments, secrets and settings of the
 * file, on one machine. Only names of hosts, ports and folders are replaced. The image is tested by image.test.ts.
 */
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findServer } from '../../scripts/servers.mjs';
import { OpsClient } from '../../src/cli/command/ops-client.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { TEARDOWN_LIMIT_MS } from '../../src/lib/teardown.ts';
import { BY } from '../support/author.ts';
import { until } from '../support/fixtures.ts';
import { Linters } from '../support/image/linters.ts';
import { PostgresServer } from '../support/servers/postgres-server.ts';
import { freePort } from '../support/servers/process/free-port.ts';
import { ServerProcess } from '../support/servers/process/server-process.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const DATABASE = 'shop';
const run = (program: string, args: readonly string[], env: Record<string, string> = {}) =>
  promisify(execFile)(program, args, { cwd: ROOT, env: { PATH: process.env.PATH, ...env } });

// biome-ignore lint/suspicious/noExplicitAny: services of every kind.
let services: Record<string, any>;
const secrets = mkdtempSync(join(tmpdir(), 'stockade-compose-'));
// Postgres has a user of its own.
chmodSync(secrets, 0o755);
const makeSecrets = () => run(process.execPath, ['deploy/compose/make-secrets.mjs', secrets]);
const secret = (path: string) => readFileSync(join(secrets, path), 'utf8');

beforeAll(async () => {
  using linters = await Linters.install();
  const { parse } = await linters.load('yaml');
  ({ services } = parse(readFileSync(join(ROOT, 'compose.yaml'), 'utf8'), { merge: true }));
  await makeSecrets();
});
afterAll(() => rmSync(secrets, { recursive: true, force: true }));

/** A service's command line, on this machine: with this program, and with secrets from this folder. */
function commandOf(name: string, folder: string): string[] {
  const { entrypoint = [], command = [] } = services[name];
  return [...entrypoint, ...command].map((word: string) =>
    word
      .replace('/run/stockade/', `${folder}/`)
      .replace('/app/', ROOT)
      .replace(/^node$/, process.execPath),
  );
}

test('each secret is in a volume that only its service has, and in no variable', () => {
  for (const [name, { environment = {}, volumes = [] }] of Object.entries(services)) {
    expect(Object.keys(environment).filter((key) => /URL|TOKEN|SECRET|PASSWORD$/.test(key))).toEqual([]);
    if (name === 'secrets') continue;
    const own = (volumes as string[]).filter((volume) => volume.includes('secrets:'));
    const reader = { redis: 'redis', postgres: 'postgres', migrate: 'owner', node: 'node' }[name];
    expect(own).toEqual([`${reader}-secrets:/run/stockade:ro`]);
  }
});

test('only this machine reaches a port, and only that of buyers', () => {
  const published = Object.values(services).flatMap(({ ports = [] }) => ports);
  expect(published).toEqual(['127.0.0.1:8080:8080']);
});

test('the node has the time to stop, and the open files that it needs', () => {
  const { shutdownGraceMs, maxConnections } = loadConfig({}, {});
  const { stop_grace_period: grace, ulimits } = services.node;
  expect(Number.parseInt(grace, 10) * 1_000).toBeGreaterThan(shutdownGraceMs + TEARDOWN_LIMIT_MS);
  expect(ulimits.nofile).toBeGreaterThanOrEqual((maxConnections * 9) / 8 + 256);
});

test('secrets are made once', async () => {
  const files = () =>
    readdirSync(secrets, { recursive: true, encoding: 'utf8' })
      .filter((path) => statSync(join(secrets, path)).isFile())
      .sort();
  const before = files().map((path) => [path, secret(path)]);
  expect(before).toHaveLength(7);
  expect((await makeSecrets()).stdout).toBe('the secrets are there already\n');
  expect(files().map((path) => [path, secret(path)])).toEqual(before);
});

test('the shop sells', async () => {
  await using redis = disposable(await ServerProcess.create({ name: 'compose-redis', lastSignal: 'KILL' }));
  const redisPort = await freePort();
  const [server, ...args] = commandOf('redis', join(secrets, 'redis'));
  const place = ['--port', String(redisPort), '--bind', '127.0.0.1', '--dir', redis.process.directory];
  await redis.process.launch(join(findServer('redis')!, server!), [...args, ...place], () =>
    // The health check of the service.
    run('bash', ['-c', `exec 3<>/dev/tcp/127.0.0.1/${redisPort}; echo PING >&3; head -1 <&3`]).then(
      ({ stdout }) => stdout.includes('NOAUTH'),
      () => false,
    ),
  );

  // As in the image of Postgres: passwords are needed. The administrator is at its own socket there.
  writeFileSync(
    join(secrets, 'pg_hba.conf'),
    'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n',
  );
  await using postgres = await PostgresServer.start({ settings: { hba_file: join(secrets, 'pg_hba.conf') } });
  await promisify(execFile)('psql', [postgres.url, '--command', `CREATE DATABASE ${DATABASE}`]);
  const scripts = (services.postgres.volumes as string[]).filter((each) =>
    each.includes('/docker-entrypoint-initdb.d/'),
  );
  expect(scripts).toHaveLength(2);
  for (const script of scripts) {
    const sql = readFileSync(join(ROOT, script.split(':')[0]!), 'utf8');
    const file = join(secrets, 'script.sql');
    writeFileSync(file, sql.replaceAll('/run/stockade/', `${secrets}/postgres/`));
    const url = postgres.url.replace(/\/postgres$/, `/${DATABASE}`);
    await promisify(execFile)('psql', [url, '--set=ON_ERROR_STOP=1', '--file', file]);
  }

  for (const name of ['owner', 'node']) {
    const file = join(secrets, name, `${name}.env`);
    const text = readFileSync(file, 'utf8')
      .replaceAll('@redis:6379', `@127.0.0.1:${redisPort}`)
      .replaceAll('@postgres:5432', `@127.0.0.1:${postgres.port}`);
    rmSync(file);
    writeFileSync(file, text);
  }
  const [program, ...migrate] = commandOf('migrate', join(secrets, 'owner'));
  expect((await run(program!, migrate)).stdout).toContain('stockade_app has the rights that a node needs');

  await using node = disposable(await ServerProcess.create({ name: 'compose-node', lastSignal: 'KILL' }));
  const [start, ...serve] = commandOf('node', join(secrets, 'node'));
  const dataDir = join(node.process.directory, 'data');
  const env = {
    ...services.node.environment,
    HOST: '127.0.0.1',
    PORT: '0',
    OPS_PORT: '0',
    DATA_DIR: dataDir,
  };
  const ready = async () =>
    (await node.process.log()).split('\n').find((line) => line.startsWith('{"ready"'));
  await node.process.launch(start!, [...serve, '--json'], async () => (await ready()) !== undefined, {
    PATH: process.env.PATH,
    ...env,
  });
  const { publicUrl, opsUrl } = JSON.parse((await ready())!);

  const ops = new OpsClient(loadConfig({ OPS_URL: opsUrl, DATA_DIR: dataDir }, {}));
  await ops.create({ id: 'tickets', stock: 5 }, BY.actor);
  await ops.disconnect();
  const token = (buyer: string) =>
    run(process.execPath, ['deploy/compose/buyer-token.mjs', buyer, join(secrets, 'node/node.env')]);
  const buy = async (authorization: string) => {
    const headers = { authorization };
    return (await fetch(`${publicUrl}/v1/sales/tickets/orders`, { method: 'POST', headers })).status;
  };
  expect(await buy(`Bearer ${(await token('anna')).stdout.trim()}`)).toBe(201);
  expect(await buy('Bearer none')).toBe(401);
  await node.process.end('SIGTERM');
  await until(() => !node.process.isUp, { what: 'it ends' });
  expect(node.process.lastEnd).toBe('exit code 0');
});

function disposable(process: ServerProcess) {
  return { process, [Symbol.asyncDispose]: () => process.remove() };
}
