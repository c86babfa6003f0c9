import type { Cluster } from 'ioredis';
import type { Watermark } from '../contract.ts';
import type { Keys } from '../redis/keys.ts';
import { RedisLog } from '../redis/redis-log.ts';
import type { Scripts } from '../redis/scripts.ts';
import type { SendAll } from '../redis/send-all.ts';

/** The order logs of a cluster: each read and trimmed where it lies. */
export class ClusterLog extends RedisLog {
  readonly #cluster: Cluster;
  readonly #keys: Keys;

  constructor(cluster: Cluster, scripts: Scripts, keys: Keys, sendAll: SendAll) {
    super(cluster, scripts, keys, sendAll, () => {});
    this.#cluster = cluster;
    this.#keys = keys;
  }

  /** The message goes another way than the cursors and would overtake them: who hears it and asks must find them. */
  override async advance(watermarks: readonly Watermark[]): Promise<void> {
    if (watermarks.length === 0) return;
    await Promise.all(this.note(watermarks));
    await this.#cluster.publish(this.#keys.watermarks, JSON.stringify(watermarks));
  }
}
