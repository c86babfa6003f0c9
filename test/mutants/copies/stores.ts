/**
 * The Redis and Postgres that are shared by the tests of many mutants. A store that a mutant has damaged is replaced.
 */
import { Redis } from 'ioredis';
import pg from 'pg';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';

const ANSWER_LIMIT_MS = 5_000;
/** Each test leaves a database behind, so Postgres is replaced after this many mutants. */
const MUTANTS_OF_ONE_POSTGRES = 25;

export interface StoreUrls {
  readonly redisUrl: string;
  readonly postgresUrl: string;
}

export class Stores implements AsyncDisposable {
  #redis: RedisServer | undefined;
  #postgres: PostgresServer | undefined;
  #mutants = 0;

  /** Prepares the stores for the next mutant. */
  async fresh(): Promise<StoreUrls> {
    if (this.#mutants++ % MUTANTS_OF_ONE_POSTGRES === 0 || !(await this.#postgresAnswers())) {
      await this.#postgres?.[Symbol.asyncDispose]();
      this.#postgres = undefined;
      this.#postgres = await PostgresServer.start();
    }
    if (!(await this.#redisAnswers())) {
      await this.#redis?.[Symbol.asyncDispose]();
      this.#redis = undefined;
      this.#redis = await RedisServer.start();
    }
    return { redisUrl: this.#redis!.productUrl, postgresUrl: this.#postgres!.url };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#redis?.[Symbol.asyncDispose](), this.#postgres?.[Symbol.asyncDispose]()]);
  }

  /** Empties Redis. A script that does not end keeps it busy. */
  async #redisAnswers(): Promise<boolean> {
    if (!this.#redis) return false;
    const redis = new Redis(this.#redis.url, {
      lazyConnect: true,
      commandTimeout: ANSWER_LIMIT_MS,
      retryStrategy: () => null,
    });
    redis.on('error', () => {});
    try {
      await redis.connect();
      await redis.flushall();
      await redis.script('FLUSH');
      return true;
    } catch {
      return false;
    } finally {
      redis.disconnect();
    }
  }

  async #postgresAnswers(): Promise<boolean> {
    const client = new pg.Client({
      connectionString: this.#postgres!.url,
      connectionTimeoutMillis: ANSWER_LIMIT_MS,
      query_timeout: ANSWER_LIMIT_MS,
    });
    client.on('error', () => {});
    try {
      await client.connect();
      // Sessions of tests that were killed hold locks.
      await client.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL',
      );
      return true;
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
  }
}
