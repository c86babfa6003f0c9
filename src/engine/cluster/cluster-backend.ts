import type { Cluster } from 'ioredis';
import {
  clusterClient,
  connect,
  disconnectCluster,
  takeClient,
  watchConnection,
} from '../../redis/clients.ts';
import { scattered } from '../../redis/send-all.ts';
import type { Backend, BackendEvents, SyncChannel } from '../contract.ts';
import { Keys } from '../redis/protocol/keys.ts';
import { syncChannel } from '../redis/protocol/messages.ts';
import { Scripts } from '../redis/protocol/scripts.ts';
import type { RedisBackendOptions } from '../redis/redis-backend.ts';
import { RedisEvents } from '../redis/redis-events.ts';
import { RedisOwner } from '../redis/redis-owner.ts';
import { RedisTakes } from '../redis/take/redis-takes.ts';
import { ClusterAudits } from './cluster-audits.ts';
import { ClusterLog } from './cluster-log.ts';
import { ClusterSales } from './cluster-sales.ts';
import { ClusterSight } from './cluster-sight.ts';
import { ClusterSubscription } from './cluster-subscription.ts';
import { ClusterTakes, type ServerTakes } from './cluster-takes.ts';
import { ClusterTransfers } from './cluster-transfers.ts';
import { Primaries } from './primaries.ts';
import { Refill } from './refill.ts';
import { TransferScripts } from './transfer-scripts.ts';

export interface ClusterOptions extends Omit<RedisBackendOptions, 'url'> {
  /** Servers of the cluster, one at least. */
  readonly urls: readonly string[];
}

/** How long the start waits for all servers. After that, the backend starts without the missing ones. */
const START_MS = 2_000;

/** Stock in a Redis Cluster: a sale's segments are spread over all servers. Its durability is that of their AOFs. */
export class ClusterBackend implements Backend {
  readonly durable = true;
  readonly isSpread = true;
  readonly takes: ClusterTakes;
  readonly sales: ClusterSales;
  readonly log: ClusterLog;
  readonly transfers: ClusterTransfers;
  readonly audits: ClusterAudits;
  readonly events: RedisEvents;
  readonly owner: RedisOwner;
  readonly syncs: SyncChannel;
  readonly primaries: Primaries;
  readonly #cluster: Cluster;
  readonly #keys: Keys;
  readonly #subscriptions = new Set<ClusterSubscription>();
  readonly #subscribers = new Set<BackendEvents>();

  private constructor(options: ClusterOptions, cluster: Cluster) {
    const { keyPrefix, takeTimeoutMs } = options;
    const keys = new Keys(keyPrefix);
    const scripts = new Scripts(cluster);
    const primaries = new Primaries(cluster, options.urls[0]!);
    const sendAll = scattered(cluster);
    const sight = new ClusterSight(scattered(cluster, takeTimeoutMs / 2), keys);
    this.#cluster = cluster;
    this.#keys = keys;
    this.primaries = primaries;
    this.transfers = new ClusterTransfers(new TransferScripts(cluster), sight, keys);
    this.takes = new ClusterTakes({
      primaries,
      keys,
      refill: new Refill(this.transfers, sight),
      sight,
      connectTo: (server) => serverTakes(server, keys, options, () => this.#tellReconnected()),
      takeTimeoutMs,
    });
    this.sales = new ClusterSales(cluster, scripts, keys, sendAll);
    this.audits = new ClusterAudits(cluster, scripts, keys, sendAll);
    this.log = new ClusterLog(cluster, scripts, keys, sendAll);
    this.events = new RedisEvents(scripts, keys);
    this.owner = new RedisOwner(cluster, keys, this.sales);
    this.syncs = syncChannel(cluster, keys);
    cluster.on('refresh', () => this.takes.follow());
  }

  /** @throws NotExecuted if no server can be reached now */
  static async open(options: ClusterOptions): Promise<ClusterBackend> {
    const cluster = clusterClient(options.urls);
    try {
      await connect(cluster);
      const backend = new ClusterBackend(options, cluster);
      await backend.takes.allReady(START_MS);
      return backend;
    } catch (error) {
      disconnectCluster(cluster);
      throw error;
    }
  }

  async subscribe(events: BackendEvents): Promise<() => Promise<void>> {
    const subscription = new ClusterSubscription(() => this.primaries.all(), this.#keys, events);
    this.#subscriptions.add(subscription);
    this.#subscribers.add(events);
    await subscription.begin();
    return async () => {
      this.#subscribers.delete(events);
      this.#subscriptions.delete(subscription);
      await subscription.end();
    };
  }

  #tellReconnected(): void {
    for (const { reconnected } of this.#subscribers) reconnected?.();
  }

  async close(): Promise<void> {
    for (const subscription of this.#subscriptions) await subscription.end();
    this.takes.close();
    disconnectCluster(this.#cluster);
  }
}

/** A connection to one server that never sends a take twice. While it is down, its takes fail with NotExecuted. */
function serverTakes(url: string, keys: Keys, options: ClusterOptions, connected: () => void): ServerTakes {
  const client = takeClient(url);
  const takes = new RedisTakes(client, keys, options, { isCluster: true });
  watchConnection(client, options.connection);
  client.on('ready', () => void takes.whenReady(options.takeTimeoutMs).then(connected));
  connect(client).catch(() => {});
  return {
    takes,
    close: () => client.disconnect(),
  };
}
