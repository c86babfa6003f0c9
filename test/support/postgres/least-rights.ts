/**
 * The product runs in tests as it should in earnest: in Postgres as the role that deploy/postgres-roles.sql makes, in Redis
 * as the user of deploy/redis-users.acl. What it does beyond these rights fails.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDatabase } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { createDatabase } from '../servers/create-database.ts';

const deploy = fileURLToPath(new URL('../../../deploy/', import.meta.url));

export const OWNER_ROLE = 'stockade_owner';
export const APP_ROLE = 'stockade_app';

/** The same database, or server, as another user. */
export function asUser(url: string, user: string, password = ''): string {
  const other = new URL(url);
  other.username = user;
  other.password = password;
  return other.href;
}

/** The administrator of a Postgres that tests have started. */
export function asAdmin(databaseUrl: string): string {
  return asUser(databaseUrl, 'postgres');
}

/**
 * A database with all tables, owned by one role and granted to the other, on the server of this administrator's url; its
 * name. Nobody is connected to it: others are made as its copies.
 * @param encrypted makes of a url one over TLS, where the server lets others than its administrator in by that only
 */
export async function createMigratedDatabase(
  serverUrl: string,
  { encrypted = (url: string) => url } = {},
): Promise<string> {
  const url = await createDatabase(serverUrl, { label: 'migrated' });
  await onDatabase(url, (db) => db.raw(readFileSync(join(deploy, 'postgres-roles.sql'), 'utf8')));
  await onDatabase(encrypted(asUser(url, OWNER_ROLE)), (db) => migrate(db, { grantee: APP_ROLE }));
  return new URL(url).pathname.slice(1);
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
/** Of the product's user on every Redis that tests have started. */
export const REDIS_PASSWORD = 'redis-password-of-the-tests';

/** deploy/redis-users.acl with that password. Its `default`, who is nobody there, is here the tests' administrator. */
export function usersOfRedis(): string {
  const hash = createHash('sha256').update(REDIS_PASSWORD).digest('hex');
  return readFileSync(join(deploy, 'redis-users.acl'), 'utf8')
    .replaceAll(/#SHA256-OF-[A-Z-]+/g, `#${hash}`)
    .replace(/^user default .*$/m, 'user default on nopass ~* &* +@all');
}
