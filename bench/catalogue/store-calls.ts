/** Counts the commands and statements that the stores execute, by their own statistics. */
import type { Redis } from 'ioredis';
import type pg from 'pg';

export interface StoreCalls {
  /** Commands that all Redis servers have executed, including those within scripts. */
  readonly redis: number;
  /** Statements that Postgres has executed, including BEGIN and COMMIT. */
  readonly postgres: number;
}

/** Commands of connecting, of monitoring a connection, and of the bench itself. */
const NOT_COUNTED = /^(info|config|ping|client|hello|command|subscribe|unsubscribe|script|flushall)\b/;

export class CallCounter {
  readonly #redis: readonly Redis[];
  readonly #postgres: pg.Pool;

  /** @param postgres connected to another database than the one that is counted */
  constructor(redis: readonly Redis[], postgres: pg.Pool) {
    this.#redis = redis;
    this.#postgres = postgres;
  }

  /** Begins to count. @returns a function that returns the calls since */
  async start(databaseUrl: string | undefined): Promise<() => Promise<StoreCalls>> {
    const before = await this.#read(databaseUrl);
    return async () => {
      const after = await this.#read(databaseUrl);
      return { redis: after.redis - before.redis, postgres: after.postgres - before.postgres };
    };
  }

  async #read(databaseUrl: string | undefined): Promise<StoreCalls> {
    const commands = await Promise.all(this.#redis.map(executed));
    return {
      redis: commands.reduce((sum, calls) => sum + calls, 0),
      postgres: databaseUrl === undefined ? 0 : await this.#statements(databaseUrl),
    };
  }

  async #statements(databaseUrl: string): Promise<number> {
    const { rows } = await this.#postgres.query(
      `SELECT coalesce(sum(calls), 0)::float8 AS calls FROM pg_stat_statements
       JOIN pg_database ON pg_database.oid = dbid WHERE datname = $1`,
      [new URL(databaseUrl).pathname.slice(1)],
    );
    return rows[0].calls;
  }
}

async function executed(redis: Redis): Promise<number> {
  const stats = await redis.info('commandstats');
  return [...stats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)]
    .filter(([, name]) => !NOT_COUNTED.test(name!))
    .reduce((sum, [, , calls]) => sum + Number(calls), 0);
}
