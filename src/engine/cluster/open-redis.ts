import { connect, singleUseClient } from '../../redis/clients.ts';
import { NotExecuted } from '../errors.ts';
import { RedisBackend, type RedisBackendOptions } from '../redis/redis-backend.ts';
import { ClusterBackend } from './cluster-backend.ts';

export type RedisKind = 'redis' | 'redis cluster';

export interface OpenRedisOptions extends Omit<RedisBackendOptions, 'url'> {
  /** The servers of one cluster, or one Redis. At least one. */
  readonly urls: readonly string[];
}

/**
 * Opens one Redis or a Redis Cluster, depending on the first server that answers.
 * @throws NotExecuted if no server can be reached now, or if several servers are named that form no cluster
 */
export async function openRedis(
  options: OpenRedisOptions,
): Promise<{ readonly backend: RedisBackend | ClusterBackend; readonly kind: RedisKind }> {
  const { urls, ...others } = options;
  if (await isCluster(urls)) {
    return { backend: await ClusterBackend.open(options), kind: 'redis cluster' };
  }
  if (urls.length > 1) {
    throw new NotExecuted(
      `REDIS_URL names ${urls.length} servers, but the one that answered is not part of a Redis Cluster: name only one server`,
    );
  }
  return { backend: await RedisBackend.open({ ...others, url: urls[0]! }), kind: 'redis' };
}

/** @throws NotExecuted with the last server's error */
async function isCluster(urls: readonly string[]): Promise<boolean> {
  let fault: unknown;
  for (const url of urls) {
    const client = singleUseClient(url);
    try {
      await connect(client);
      return (await client.info('cluster')).includes('cluster_enabled:1');
    } catch (error) {
      fault = error;
    } finally {
      client.disconnect();
    }
  }
  throw fault;
}
