/**
 * Redis must not evict keys. A process that is to work on one that may does not start; one that runs when the policy is
 * changed goes on, since nothing is lost yet, and says so in its log and its metrics until somebody has put it right.
 */
import { Gauge, type Registry } from 'prom-client';
import { type Config, ConfigError } from '../config/config.ts';
import { redisUrls } from '../config/redis-urls.ts';
import { type EvictingServer, evictingServers } from '../engine/cluster/eviction.ts';
import type { Log } from './log.ts';
import type { Releasers } from './releasers.ts';

const LOOK_EVERY_MS = 5_000;

export interface EvictionWatchParts {
  readonly config: Config;
  readonly log: Log;
  readonly registry: Registry;
}

/**
 * Refuses a Redis that may evict keys, and watches for a change from then on. Does nothing for the in-process backend.
 * @throws ConfigError that names the servers and their policies
 */
export async function keepFromEviction(
  { config, log, registry }: EvictionWatchParts,
  releasers: Releasers,
): Promise<void> {
  if (!config.redisUrl) return;
  const urls = redisUrls(config.redisUrl.reveal());
  const found = await evictingServers(urls);
  if (found.length > 0) {
    throw new ConfigError(found.map((one) => ({ field: 'REDIS_URL', problem: problemOf(one) })));
  }
  const gauge = new Gauge({
    name: 'stockade_redis_evicting_servers',
    help: 'Servers of Redis whose maxmemory-policy lets them evict keys; anything but 0 loses stock',
    registers: [registry],
  });
  let known = '';
  const look = async () => {
    const evicting = await evictingServers(urls);
    gauge.set(evicting.length);
    const now = evicting.map(problemOf).join('; ');
    if (now !== '' && now !== known) log.error({ evicting }, `REDIS_URL ${now}`);
    if (now === '' && known !== '') log.info('Redis keeps all keys again');
    known = now;
  };
  // While Redis can't be asked, what was known last stands.
  const timer = setInterval(() => look().catch(() => {}), LOOK_EVERY_MS);
  timer.unref();
  releasers.add(() => clearInterval(timer));
}

function problemOf({ server, policy }: EvictingServer): string {
  return (
    `leads to the Redis at ${server}, whose maxmemory-policy is ${policy}: set it to noeviction there ` +
    '(CONFIG SET maxmemory-policy noeviction, and in redis.conf), because a key that is evicted is stock that is gone'
  );
}
