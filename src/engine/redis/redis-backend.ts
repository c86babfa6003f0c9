import type { Redis } from 'ioredis';
import type { Backend, BackendEvents, Watermark } from '../contract.ts';
import { connect, subscriberClient, takeClient, workClient } from './clients.ts';
import { decodeHint } from './codec.ts';
import { Keys } from './keys.ts';
import { RedisLog } from './redis-log.ts';
import { RedisSales } from './redis-sales.ts';
import { type RedisTakeOptions, RedisTakes } from './redis-takes.ts';
import { Scripts } from './scripts.ts';

const HEARTBEAT_MS = 2_000;

export interface RedisBackendOptions extends RedisTakeOptions {
  readonly url: string;
  /** Put before every key and channel, so that several installations can share one Redis. */
  readonly keyPrefix: string;
}

/** Stock in one Redis server. Durable as far as that server's AOF is. */
export class RedisBackend implements Backend {
  readonly durable = true;
  readonly takes: RedisTakes;
  readonly sales: RedisSales;
  readonly log: RedisLog;
  readonly #url: string;
  readonly #keys: Keys;
  readonly #clients: Redis[];

  private constructor(options: RedisBackendOptions, keys: Keys, forTakes: Redis, forWork: Redis) {
    this.#url = options.url;
    this.#keys = keys;
    this.#clients = [forTakes, forWork];
    const scripts = new Scripts(forWork);
    this.takes = new RedisTakes(forTakes, keys, options);
    this.sales = new RedisSales(forWork, scripts, keys);
    this.log = new RedisLog(forWork, scripts, keys);
  }

  /** @throws the connection's error if Redis can't be reached now */
  static async open(options: RedisBackendOptions): Promise<RedisBackend> {
    const clients = [takeClient(options.url), workClient(options.url)] as const;
    try {
      await Promise.all(clients.map(connect));
    } catch (error) {
      for (const client of clients) client.disconnect();
      throw error;
    }
    return new RedisBackend(options, new Keys(options.keyPrefix), ...clients);
  }

  async subscribe(events: BackendEvents): Promise<() => Promise<void>> {
    const client = subscriberClient(this.#url);
    this.#clients.push(client);
    await connect(client);
    const { watermarks, hints, sales } = this.#keys;
    client.on('message', (channel: string, message: string) => {
      if (channel === watermarks) events.watermarks?.(JSON.parse(message) as Watermark[]);
      else if (channel === sales) events.saleChanged?.(message);
      else if (channel === hints) events.hint?.(decodeHint(message));
    });
    const wanted = [events.watermarks && watermarks, events.hint && hints, events.saleChanged && sales];
    await client.subscribe(...wanted.filter((channel) => channel !== undefined));
    // A subscriber sends nothing by itself, and would never notice that its connection is dead.
    const heartbeat = setInterval(() => client.ping().catch(() => {}), HEARTBEAT_MS);
    heartbeat.unref();
    return async () => {
      clearInterval(heartbeat);
      client.removeAllListeners('message');
      client.disconnect();
    };
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
  }
}
