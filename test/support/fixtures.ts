/** Fixtures for tests: fresh databases and key prefixes, and seeds. */
import { randomBytes, randomInt } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { APP_ROLE, asRedisAdmin, asRole } from './postgres/least-rights.ts';
import { dropUnused, newDatabase } from './servers/create-database.ts';

export { type UntilOptions, until } from './until.ts';

const MAX_SEED = 2 ** 31;

/** The databases of the test file that runs, by name. */
const created: string[] = [];
/** The administrator's connection of the test file that runs: to connect takes longer than to create a database. */
let administrator: Promise<pg.Client> | undefined;

/** A run creates 600 databases, of 9 MB each, so each file drops its own (after-each-file.ts). */
export async function dropDatabases(): Promise<void> {
  const client = await administrator;
  administrator = undefined;
  if (client === undefined) return;
  await dropUnused(client, created.splice(0));
  await client.end();
}

async function create(template?: string): Promise<string> {
  const url = new URL(inject('postgresUrl'));
  administrator ??= connect(url.href);
  const name = await newDatabase(await administrator, template === undefined ? {} : { template });
  created.push(name);
  url.pathname = `/${name}`;
  return url.href;
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

/**
 * Creates a database with all tables on the run's Postgres. Its url has the role with the least rights that serving needs; for
 * anything else use `asAdmin`.
 */
export async function freshDatabase(): Promise<string> {
  return asRole(await create(inject('migratedDatabase')), APP_ROLE);
}

/** The url of a new, empty database on the run's Postgres, as its administrator. */
export function emptyDatabase(): Promise<string> {
  return create();
}

/** The url of the run's Redis, as the user with the least rights; every key must begin with a `freshPrefix`. */
export function redisUrl(): string {
  return inject('redisUrl');
}

/** The url of the run's Redis as its administrator, for what only tests do. */
export function redisAdminUrl(): string {
  return asRedisAdmin(redisUrl());
}

/** A key prefix that the product's user in Redis may use. */
export function freshPrefix(): string {
  return `stockade:t${randomBytes(6).toString('hex')}:`;
}

/** The seed for a random test: the environment's SEED, or a new one. It is printed, so that a failure can be run again. */
export function seed(): number {
  const given = process.env.SEED;
  if (given !== undefined && !/^\d+$/.test(given))
    throw new Error(`SEED must be a whole number, not ${given}`);
  const value = given === undefined ? randomInt(MAX_SEED) : Number(given) % MAX_SEED;
  console.log(`seed ${value} (run again with SEED=${value})`);
  return value;
}
