/**
 * Servers of Redis that throw keys away when their memory is full. Such a key is stock that is gone, or a buyer's record or
 * a log that is forgotten. INFO tells the policy to everybody; CONFIG is often forbidden.
 */
import type { Redis } from 'ioredis';
import { clusterClient, connect, singleUseClient } from '../redis/clients.ts';

const KEEPS_ALL = 'noeviction';

export interface EvictingServer {
  /** `host:port`. */
  readonly server: string;
  /** Its `maxmemory-policy`. */
  readonly policy: string;
}

/**
 * The primaries with another `maxmemory-policy` than `noeviction`, whether or not they have a limit now: one may be set at
 * any time. A server that does not tell its policy is not among them.
 * @param urls as REDIS_URL names them
 * @throws NotExecuted if none can be reached
 */
export async function evictingServers(urls: readonly string[]): Promise<EvictingServer[]> {
  const first = await firstThatAnswers(urls);
  try {
    if (!(await first.info('cluster')).includes('cluster_enabled:1')) return await evicting([first]);
  } finally {
    first.disconnect();
  }
  const cluster = await connect(clusterClient(urls));
  try {
    return await evicting(cluster.nodes('master'));
  } finally {
    cluster.disconnect();
  }
}

async function firstThatAnswers(urls: readonly string[]): Promise<Redis> {
  let fault: unknown;
  for (const url of urls) {
    const client = singleUseClient(url);
    try {
      return await connect(client);
    } catch (error) {
      client.disconnect();
      fault = error;
    }
  }
  throw fault;
}

async function evicting(servers: readonly Redis[]): Promise<EvictingServer[]> {
  const found = await Promise.all(
    servers.map(async (redis) => {
      const policy = /^maxmemory_policy:(\S+)/m.exec(await redis.info('memory'))?.[1] ?? KEEPS_ALL;
      return { server: `${redis.options.host}:${redis.options.port}`, policy };
    }),
  );
  return found.filter(({ policy }) => policy !== KEEPS_ALL);
}
