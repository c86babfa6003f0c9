/** The stores that the rows sell from. Redis and Postgres run all the time, the others only while a row needs them. */
import { Redis } from 'ioredis';
import pg from 'pg';
import type { Row, Stores } from '../../catalogue/parts/contract.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { PostgresServer } from '../../test/support/servers/postgres-server.ts';
import { RedisServer } from '../../test/support/servers/redis-server.ts';
import { ZooKeeperEnsemble } from '../../test/support/servers/zookeeper-ensemble.ts';
import { CallCounter } from './store-calls.ts';

/** The settings of a shop. Locks are stored with the same settings as stock. */
const REDIS = { appendonly: true, extraArgs: ['--appendfsync', 'everysec'] };
const QUORUM = 5;
const ENSEMBLE = 3;

export interface Stall {
  readonly stores: Stores;
  readonly calls: CallCounter;
}

export class StoreHouse {
  readonly #redis: RedisServer;
  readonly #postgres: PostgresServer;
  #stalls = 0;

  private constructor(redis: RedisServer, postgres: PostgresServer) {
    this.#redis = redis;
    this.#postgres = postgres;
  }

  static async open(teardown: Teardown): Promise<StoreHouse> {
    const redis = await startRedis(teardown);
    const postgres = await PostgresServer.start({
      settings: { shared_preload_libraries: 'pg_stat_statements' },
    });
    teardown.add(() => postgres[Symbol.asyncDispose]());
    const house = new StoreHouse(redis, postgres);
    const pool = house.#watcher();
    await pool.query('CREATE EXTENSION pg_stat_statements');
    await pool.end();
    return house;
  }

  /** Empty stores for a row: only those that it names. */
  async stall(row: Row, teardown: Teardown): Promise<Stall> {
    const wants = (name: Row['stores'][number]) => row.stores.includes(name);
    const locks: RedisServer[] = [];
    while (wants('lockRedis') && locks.length < QUORUM) locks.push(await startRedis(teardown));
    const zookeeper = wants('zookeeper') ? await ZooKeeperEnsemble.start(ENSEMBLE) : undefined;
    if (zookeeper) teardown.add(() => zookeeper[Symbol.asyncDispose]());
    const watched = [this.#redis, ...locks].map(({ url }) => new Redis(url));
    teardown.add(() => watched.forEach((redis) => void redis.disconnect()));
    await watched[0]!.flushall();
    const pool = this.#watcher();
    teardown.add(() => pool.end());
    const stores: Stores = {
      keyPrefix: `stall-${++this.#stalls}:`,
      ...(wants('redis') && { redis: this.#redis.url }),
      ...(wants('postgres') && { postgres: await this.#postgres.createDatabase('bench') }),
      ...(wants('lockRedis') && { lockRedis: locks.map(({ url }) => url) }),
      ...(zookeeper && { zookeeper: await zookeeper.servers() }),
    };
    return { stores, calls: new CallCounter(watched, pool) };
  }

  #watcher(): pg.Pool {
    return new pg.Pool({ connectionString: this.#postgres.url, max: 1 });
  }
}

async function startRedis(teardown: Teardown): Promise<RedisServer> {
  const redis = await RedisServer.start(REDIS);
  teardown.add(() => redis[Symbol.asyncDispose]());
  return redis;
}
