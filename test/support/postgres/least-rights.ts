/**
 * The product runs in tests with the rights that it has in production: in Postgres as the role of deploy/postgres-roles.sql, in
 * Redis as the user of deploy/redis-users.acl. Whatever goes beyond these rights fails.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { grantTo } from '../../../src/postgres/app-role.ts';
import { openDatabase } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { createDatabase } from '../servers/create-database.ts';

const deploy = fileURLToPath(new URL('../../../deploy/', import.meta.url));

export const OWNER_ROLE = 'stockade_owner';
export const APP_ROLE = 'stockade_app';
/** On a Postgres that tests have started. */
const ADMINISTRATOR = 'postgres';

/** The url with another user. */
export function asUser(url: string, user: string, password = ''): string {
  const other = new URL(url);
  other.username = user;
  other.password = password;
  return other.href;
}

/** The url of the administrator. */
export function asAdmin(databaseUrl: string): string {
  const given = givenServer(databaseUrl);
  return given ? asUser(databaseUrl, given.username, given.password) : asUser(databaseUrl, ADMINISTRATOR);
}

/** The url of one of the two roles. */
export function asRole(databaseUrl: string, role: typeof OWNER_ROLE | typeof APP_ROLE): string {
  const given = givenServer(databaseUrl);
  return asUser(databaseUrl, role, given && passwordOfRoles(given));
}

/** The server of TEST_POSTGRES_URL, if the database is there. A Postgres that tests have started needs no password. */
function givenServer(databaseUrl: string): URL | undefined {
  const given = process.env.TEST_POSTGRES_URL;
  if (given === undefined) return undefined;
  const server = new URL(given);
  return server.host === new URL(databaseUrl).host ? server : undefined;
}

/** As hard to guess as the administrator's own, and the same in all processes of a run. */
function passwordOfRoles(server: URL): string {
  return createHash('sha256').update(`the roles of the tests at ${server.href}`).digest('hex');
}

/**
 * Creates a database with all tables, owned by one role and granted to the other, and returns its name. No session is connected
 * to it, so that it can be copied.
 * @param encrypted turns a url into one over TLS, for servers that only let their administrator in without
 */
export async function createMigratedDatabase(
  serverUrl: string,
  { encrypted = (url: string) => url } = {},
): Promise<string> {
  const url = await createDatabase(serverUrl, { label: 'migrated' });
  await onDatabase(url, (db) => db.raw(readFileSync(join(deploy, 'postgres-roles.sql'), 'utf8')));
  const given = givenServer(url);
  if (given) await onDatabase(url, (db) => admitRoles(db, passwordOfRoles(given)));
  await onDatabase(encrypted(asRole(url, OWNER_ROLE)), (db) => migrate(db, { grantee: APP_ROLE }));
  return new URL(url).pathname.slice(1);
}

/** An administrator that is no superuser may do with the tables what it may do as their owner. */
async function admitRoles(db: ReturnType<typeof openDatabase>, password: string): Promise<void> {
  for (const role of [OWNER_ROLE, APP_ROLE]) await db.raw(`ALTER ROLE ${role} PASSWORD '${password}'`);
  await db.raw(`GRANT ${OWNER_ROLE}, ${APP_ROLE} TO CURRENT_USER`);
}

/** Lets the product delete sales in this database. */
export function allowDeleting(databaseUrl: string): Promise<void> {
  return onDatabase(asAdmin(databaseUrl), (db) => grantTo(db, APP_ROLE, true));
}

async function onDatabase(
  url: string,
  work: (db: ReturnType<typeof openDatabase>) => Promise<unknown>,
): Promise<void> {
  const db = openDatabase({ url, maxConnections: 1 });
  try {
    await work(db);
  } finally {
    await db.destroy();
  }
}

export const REDIS_USER = 'stockade';
/** The password of the product's user on every Redis that tests have started. */
export const REDIS_PASSWORD = 'redis-password-of-the-tests';

/** The url of the administrator of a Redis that tests have started. Any other Redis has one user for all. */
export function asRedisAdmin(url: string): string {
  return new URL(url).password === REDIS_PASSWORD ? asUser(url, '') : url;
}

/** deploy/redis-users.acl with that password. With an administrator, the disabled user `default` is that administrator. */
export function usersOfRedis(administrator: boolean): string {
  const hash = createHash('sha256').update(REDIS_PASSWORD).digest('hex');
  const users = readFileSync(join(deploy, 'redis-users.acl'), 'utf8').replaceAll(
    /#SHA256-OF-[A-Z-]+/g,
    `#${hash}`,
  );
  return administrator ? users.replace(/^user default .*$/m, 'user default on nopass ~* &* +@all') : users;
}
