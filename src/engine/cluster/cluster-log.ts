import { type Cluster, ReplyError } from 'ioredis';
import type { Watermark } from '../contract.ts';
import { BackendCorrupt } from '../errors.ts';
import type { Keys } from '../redis/protocol/keys.ts';
import type { LogArguments, RawRead, Scripts } from '../redis/protocol/scripts.ts';
import { RedisLog } from '../redis/redis-log.ts';

/** A command can't name keys of several slots. */
const LOGS_OF_COMMAND = 1;

/** The order logs of a cluster. Each is read and trimmed on its own server. */
export class ClusterLog extends RedisLog {
  readonly #cluster: Cluster;
  readonly #keys: Keys;

  constructor(cluster: Cluster, scripts: Scripts, keys: Keys) {
    // Nothing to cork: the commands leave over the connections of several servers.
    super(cluster, scripts, keys, () => {}, LOGS_OF_COMMAND);
    this.#cluster = cluster;
    this.#keys = keys;
  }

  /** What a server refuses, for example because it loads its data, concerns its own logs alone. */
  protected override async readTogether(
    logs: readonly LogArguments[],
    maxEntries: number,
  ): Promise<RawRead[]> {
    try {
      return await super.readTogether(logs, maxEntries);
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      return logs.map(() => [new BackendCorrupt((error as Error).message)]);
    }
  }

  /**
   * The message travels on another connection than the cursors and could overtake them: a node that hears it and asks
   * must find the cursors.
   */
  override async advance(watermarks: readonly Watermark[]): Promise<void> {
    if (watermarks.length === 0) return;
    await Promise.all(this.note(watermarks));
    await this.#cluster.publish(this.#keys.watermarks, JSON.stringify(watermarks));
  }
}
