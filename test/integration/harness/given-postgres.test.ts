import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { APP_ROLE, asAdmin, asRole, createMigratedDatabase } from '../../support/postgres/least-rights.ts';
import { createDatabase, onServer } from '../../support/servers/create-database.ts';
import { GivenPostgres } from '../../support/servers/given-postgres.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { query } from '../../support/shop/truth.ts';

let folder: string;
let server: PostgresServer;
/** Like a managed Postgres: its administrator is no superuser, and everybody needs a password. */
let url: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'stockade-given-'));
  const rules = join(folder, 'pg_hba.conf');
  // The server may run as another user.
  await chmod(folder, 0o755);
  await writeFile(rules, 'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n');
  server = await PostgresServer.start();
  await query(server.url, "CREATE ROLE ann LOGIN CREATEDB CREATEROLE PASSWORD 'p%ss'");
  await query(server.url, `ALTER SYSTEM SET hba_file = '${rules}'`);
  await server.restart();
  url = server.url.replace('//postgres@', '//ann:p%25ss@');
});

afterEach(() => vi.unstubAllEnvs());

afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const databases = () =>
  onServer(server.url, async (client) => {
    const { rows } = await client.query('SELECT datname FROM pg_database WHERE NOT datistemplate ORDER BY 1');
    return rows.map(({ datname }) => datname as string);
  });

test('tests get their databases and roles there, and nothing is left of them', async () => {
  vi.stubEnv('TEST_POSTGRES_URL', url);
  const others = await createDatabase(url);
  {
    await using given = await GivenPostgres.claim(url);
    const template = await createMigratedDatabase(given.url);
    const database = await createDatabase(given.url, { template });
    const app = asRole(database, APP_ROLE);
    await query(app, "INSERT INTO settings VALUES ('a', 'b')");
    await expect(query(app, 'TRUNCATE settings')).rejects.toThrow('permission denied');
    await query(asAdmin(app), 'TRUNCATE settings');
    expect(await databases()).toHaveLength(4);
  }
  expect(await databases()).toEqual(['postgres', new URL(others).pathname.slice(1)]);
  await using again = await GivenPostgres.claim(url);
  expect(again.url).toBe(url);
});

test('a server that has such a role is refused, and the role stays', async () => {
  await query(server.url, `CREATE ROLE ${APP_ROLE}`);
  await expect(GivenPostgres.claim(url)).rejects.toThrow(
    'TEST_POSTGRES_URL is refused: it has the roles stockade_app, so a Stockade may use it',
  );
  await query(server.url, `DROP ROLE ${APP_ROLE}`);
});

test('a user that may not create databases is refused', async () => {
  await query(server.url, "CREATE ROLE ben LOGIN PASSWORD 'p'");
  await expect(GivenPostgres.claim(server.url.replace('//postgres@', '//ben:p@'))).rejects.toThrow(
    'TEST_POSTGRES_URL is refused: its user may not create databases and roles',
  );
});

test('a server that can’t be reached is refused', async () => {
  await server.stop();
  await expect(GivenPostgres.claim(url)).rejects.toThrow('TEST_POSTGRES_URL is refused');
  await server.restart();
});
