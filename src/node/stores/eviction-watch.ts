/**
 * Redis must not evict keys. A process that is to work on one that may does not start; one that runs when the policy is
 * changed goes on, since nothing is lost yet, and says so in its log and its metrics until somebody has put it right.
 */
import { Gauge, type Registry } from 'prom-client';
import type { Config } from '../../config/config.ts';
import { ConfigError } from '../../config/load-config.ts';
import { redisUrls } from '../../config/values/redis-urls.ts';
import type { Teardown } from '../../lib/teardown.ts';
import { type EvictingServer, type EvictionLook, lookForEviction } from '../../redis/eviction.ts';
import type { Log } from '../process/log.ts';

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
  teardown: Teardown,
): Promise<void> {
  if (!config.redisUrl) return;
  const urls = redisUrls(config.redisUrl.reveal());
  const { evicting } = await lookForEviction(urls);
  if (evicting.length > 0) {
    throw new ConfigError(evicting.map((one) => ({ field: 'REDIS_URL', problem: problemOf(one) })));
  }
  const gauge = new Gauge({
    name: 'stockade_redis_evicting_servers',
    help: 'Servers of Redis whose maxmemory-policy lets them evict keys; anything but 0 loses stock',
    registers: [registry],
  });
  const alarm = new EvictionAlarm();
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    // While no Redis can be asked, what was known last stands.
    const found = await lookForEviction(urls).catch(() => undefined);
    if (found) {
      const before = alarm.text;
      alarm.learn(found);
      gauge.set(alarm.servers.length);
      if (alarm.text !== '' && alarm.text !== before) log.error({ evicting: alarm.servers }, alarm.text);
      if (alarm.text === '' && before !== '') log.info('Redis keeps all keys again');
    }
    if (timer) timer = setTimeout(look, LOOK_EVERY_MS).unref();
  };
  timer = setTimeout(look, LOOK_EVERY_MS).unref();
  teardown.add(() => {
    clearTimeout(timer);
    timer = undefined;
  });
}

/** What is known of the servers: one that does not answer is as it was when it did. */
export class EvictionAlarm {
  servers: readonly EvictingServer[] = [];

  learn({ evicting, silent }: EvictionLook): void {
    const kept = this.servers.filter(({ server }) => silent.includes(server));
    this.servers = [...evicting, ...kept].sort((a, b) => a.server.localeCompare(b.server));
  }

  /** `''`: there is nothing to say. */
  get text(): string {
    return this.servers.map((one) => `REDIS_URL ${problemOf(one)}`).join('; ');
  }
}

function problemOf({ server, policy }: EvictingServer): string {
  return (
    `leads to the Redis at ${server}, whose maxmemory-policy is ${policy}: set it to noeviction there ` +
    '(CONFIG SET maxmemory-policy noeviction, and in redis.conf), because a key that is evicted is stock that is gone'
  );
}
