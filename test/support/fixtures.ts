/** What tests share: a database and a key prefix of their own, waiting for a condition, a seed. */
import { randomBytes, randomInt } from 'node:crypto';
import { inject } from 'vitest';
import { createDatabase } from './servers/create-database.ts';

export { type UntilOptions, until } from './until.ts';

const seedLimit = 2 ** 31;

/** The url of a new, empty database on the run's Postgres. */
export function freshDatabase(): Promise<string> {
  return createDatabase(inject('postgresUrl'));
}

/** The url of the run's Redis; every key must begin with a `freshPrefix`. */
export function redisUrl(): string {
  return inject('redisUrl');
}

export function freshPrefix(): string {
  return `t${randomBytes(6).toString('hex')}:`;
}

/** The seed for a random test: the environment's SEED, or a new one. It is printed, so that a failure can be run again. */
export function seed(): number {
  const given = process.env.SEED;
  if (given !== undefined && !/^\d+$/.test(given))
    throw new Error(`SEED must be a whole number, not ${given}`);
  const value = given === undefined ? randomInt(seedLimit) : Number(given) % seedLimit;
  console.log(`seed ${value} (run again with SEED=${value})`);
  return value;
}
