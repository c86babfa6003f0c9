import type { Cluster } from 'ioredis';
import type { SendAll } from '../../redis/send-all.ts';
import type { LogPosition, LogRead, Watermark } from '../contract.ts';
import type { Keys } from '../redis/keys.ts';
import { RedisLog } from '../redis/redis-log.ts';
import type { Scripts } from '../redis/scripts.ts';

/** The order logs of a cluster: each read and trimmed where it lies. */
export class ClusterLog extends RedisLog {
  readonly #cluster: Cluster;
  readonly #keys: Keys;

  constructor(cluster: Cluster, scripts: Scripts, keys: Keys, sendAll: SendAll) {
    super(cluster, scripts, keys, sendAll, () => {});
    this.#cluster = cluster;
    this.#keys = keys;
  }

  /**
   * Head and entries are two commands, and a cluster's client sends each again by itself where a server is away or redirects
   * it: the head may be read long after the entries, and tell of some that were not there yet. So entries that are missing
   * by the head are read once more. Behind a head, what is missing then is missing.
   */
  override async readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]> {
    const reads = await super.readLog(positions, maxEntries);
    if (maxEntries === 0) return reads;
    return Promise.all(reads.map((read) => (lacksEntries(read) ? this.#readBehind(read, maxEntries) : read)));
  }

  async #readBehind({ position, head }: LogRead, maxEntries: number): Promise<LogRead> {
    const [again] = await super.readLog([position], maxEntries);
    // With the older head: the newer one may again be ahead of its entries.
    return again!.head ? { ...again!, head } : again!;
  }

  /** The message goes another way than the cursors and would overtake them: who hears it and asks must find them. */
  override async advance(watermarks: readonly Watermark[]): Promise<void> {
    if (watermarks.length === 0) return;
    await Promise.all(this.note(watermarks));
    await this.#cluster.publish(this.#keys.watermarks, JSON.stringify(watermarks));
  }
}

function lacksEntries({ position, head, entries }: LogRead): boolean {
  return entries.length === 0 && head !== undefined && head.seq > position.seq;
}
