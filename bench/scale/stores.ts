/** The stores of a run: a single Redis, a cluster of three primaries, and one Postgres. */
import type { Teardown } from '../../src/lib/teardown.ts';
import { RedisCluster } from '../../test/support/servers/redis-cluster.ts';
import { NO_REWRITE_OF_AOF, type StoreServers, startStoreServers } from '../support/stores.ts';
import type { ShopSize } from './points.ts';

/** Additional time for the end of a cluster: three servers, on busy cores. */
const CLUSTER_END_MS = 20_000;

export interface Place extends StoreServers {
  readonly redisUrl: string;
  /** Of all primaries together. */
  redisCpuSeconds(): number;
}

export type Places = Readonly<Record<ShopSize['primaries'], Place>>;

export async function startPlaces(teardown: Teardown): Promise<Places> {
  const stores = await startStoreServers(teardown, ...NO_REWRITE_OF_AOF);
  const cluster = await RedisCluster.start({
    extraArgs: ['--appendfsync', 'everysec', ...NO_REWRITE_OF_AOF],
  });
  teardown.add(() => cluster[Symbol.asyncDispose](), CLUSTER_END_MS);
  return {
    1: { ...stores, redisUrl: stores.redis.url, redisCpuSeconds: () => stores.redis.cpuSeconds() },
    3: {
      ...stores,
      redisUrl: `redis://${cluster.primaries.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
      redisCpuSeconds: () => cluster.primaries.reduce((sum, primary) => sum + primary.cpuSeconds(), 0),
    },
  };
}
