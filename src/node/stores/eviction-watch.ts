/**
 * Redis must not evict keys. If its policy allows eviction, a process refuses to start. If the policy is changed later, a
 * running process continues, because nothing is lost yet. It reports the policy in its log and its metrics until it is corrected.
 */
import { Gauge, type Registry } from 'prom-client';
import type { Config } from '../../config/config.ts';
import { ConfigError } from '../../config/load-config.ts';
import { redisUrls } from '../../config/values/redis-urls.ts';
import type { Teardown } from '../../lib/teardown.ts';
import { type EvictionFindings, lookForEviction, type ServerPolicy } from '../../redis/eviction.ts';
import type { Log } from '../process/log.ts';

const CHECK_EVERY_MS = 5_000;

export interface EvictionWatchParts {
  readonly config: Config;
  readonly log: Log;
  readonly registry: Registry;
}

/**
 * Refuses a Redis that may evict keys, and checks every few seconds whether it may now. Does nothing for the in-process
 * backend.
 * @throws ConfigError that names the servers and their policies
 */
export async function refuseEviction(
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
    help: 'Redis servers whose maxmemory-policy lets them evict keys; stock may be lost if this is not 0',
    registers: [registry],
  });
  const alarm = new EvictionAlarm();
  let timer: NodeJS.Timeout | undefined;
  const check = async () => {
    // While no Redis answers, the last result stays.
    const found = await lookForEviction(urls).catch(() => undefined);
    if (found) {
      const before = alarm.text;
      alarm.learn(found);
      gauge.set(alarm.servers.length);
      if (alarm.text !== '' && alarm.text !== before) log.error({ evicting: alarm.servers }, alarm.text);
      if (alarm.text === '' && before !== '') log.info('Redis keeps all keys again');
    }
    if (timer) timer = setTimeout(check, CHECK_EVERY_MS).unref();
  };
  timer = setTimeout(check, CHECK_EVERY_MS).unref();
  teardown.add(() => {
    clearTimeout(timer);
    timer = undefined;
  });
}

/** The servers that may evict keys. A server that does not answer keeps its last state. */
export class EvictionAlarm {
  servers: readonly ServerPolicy[] = [];

  learn({ evicting, silent }: EvictionFindings): void {
    const kept = this.servers.filter(({ server }) => silent.includes(server));
    this.servers = [...evicting, ...kept].sort((a, b) => a.server.localeCompare(b.server));
  }

  /** The message of the alarm; `''` if no server may evict keys. */
  get text(): string {
    return this.servers.map((one) => `REDIS_URL ${problemOf(one)}`).join('; ');
  }
}

function problemOf({ server, policy }: ServerPolicy): string {
  return (
    `leads to the Redis at ${server}, whose maxmemory-policy is ${policy}: set it to noeviction there ` +
    '(CONFIG SET maxmemory-policy noeviction, and in redis.conf), because stock is lost with each evicted key'
  );
}
