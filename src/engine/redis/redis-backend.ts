import type { Redis } from 'ioredis';
import {
  type ConnectionEvents,
  connect,
  corking,
  subscriberClient,
  takeClient,
  watchConnection,
  workClient,
} from '../../redis/clients.ts';
import { pipelined } from '../../redis/send-all.ts';
import type { Backend, BackendEvents, SyncChannel } from '../contract.ts';
import { Keys } from './protocol/keys.ts';
import { syncChannel } from './protocol/messages.ts';
import { Scripts } from './protocol/scripts.ts';
import { listen } from './protocol/subscription.ts';
import { RedisAudits } from './redis-audits.ts';
import { RedisEvents } from './redis-events.ts';
import { RedisLog } from './redis-log.ts';
import { RedisOwner } from './redis-owner.ts';
import { RedisSales } from './redis-sales.ts';
import { RedisTransfers } from './redis-transfers.ts';
import { type RedisTakeOptions, RedisTakes } from './take/redis-takes.ts';

export interface RedisBackendOptions extends RedisTakeOptions {
  readonly url: string;
  /** Prefix of every key and channel, so that several installations can share one Redis. */
  readonly keyPrefix: string;
  /** Is told of the connections for takes: all others of the process share their fate. */
  readonly connection?: ConnectionEvents;
}

/** Stock in one Redis server. Its durability is that of the server's AOF. */
export class RedisBackend implements Backend {
  readonly durable = true;
  readonly takes: RedisTakes;
  readonly sales: RedisSales;
  readonly log: RedisLog;
  readonly transfers: RedisTransfers;
  readonly audits: RedisAudits;
  readonly events: RedisEvents;
  readonly owner: RedisOwner;
  readonly syncs: SyncChannel;
  readonly #url: string;
  readonly #takeTimeoutMs: number;
  readonly #keys: Keys;
  readonly #clients: Redis[];

  private constructor(options: RedisBackendOptions, keys: Keys, forTakes: Redis, forWork: Redis) {
    this.#url = options.url;
    this.#takeTimeoutMs = options.takeTimeoutMs;
    this.#keys = keys;
    this.#clients = [forTakes, forWork];
    const scripts = new Scripts(forWork);
    this.takes = new RedisTakes(forTakes, keys, options, { isCluster: false });
    const sendAll = pipelined(forWork);
    const cork = corking(forWork);
    this.sales = new RedisSales(forWork, scripts, keys, sendAll, cork);
    this.log = new RedisLog(forWork, scripts, keys, cork);
    this.transfers = new RedisTransfers(scripts, keys);
    this.audits = new RedisAudits(forWork, scripts, keys);
    this.events = new RedisEvents(scripts, keys);
    this.owner = new RedisOwner(forWork, keys, this.sales);
    this.syncs = syncChannel(forWork, keys);
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
    watchConnection(clients[0], options.connection);
    const backend = new RedisBackend(options, new Keys(options.keyPrefix), ...clients);
    await backend.takes.whenReady(options.takeTimeoutMs);
    return backend;
  }

  async subscribe(events: BackendEvents): Promise<() => Promise<void>> {
    const client = subscriberClient(this.#url);
    this.#clients.push(client);
    await connect(client);
    const end = await listen(client, this.#keys, events);
    client.on('ready', () => events.resubscribed?.());
    const reconnected = async () => {
      await this.takes.whenReady(this.#takeTimeoutMs);
      events.reconnected?.();
    };
    const [forTakes] = this.#clients;
    forTakes!.on('ready', reconnected);
    return async () => {
      forTakes!.off('ready', reconnected);
      await end();
    };
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.disconnect();
  }
}
