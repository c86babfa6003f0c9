import type { Cluster } from 'ioredis';
import type { Command, SendAll } from '../../redis/send-all.ts';
import type { LogPosition, LogRead, Watermark } from '../contract.ts';
import { BackendCorrupt } from '../errors.ts';
import type { Keys } from '../redis/protocol/keys.ts';
import type { RawEntry, RawRead, Scripts } from '../redis/protocol/scripts.ts';
import { HEAD_FIELDS, RedisLog } from '../redis/redis-log.ts';

/** The order logs of a cluster. Each is read and trimmed on its own server. */
export class ClusterLog extends RedisLog {
  readonly #cluster: Cluster;
  readonly #keys: Keys;
  readonly #sendAll: SendAll;

  constructor(cluster: Cluster, scripts: Scripts, keys: Keys, sendAll: SendAll) {
    // Nothing to cork: the commands leave over the connections of several servers.
    super(cluster, scripts, keys, () => {});
    this.#cluster = cluster;
    this.#sendAll = sendAll;
    this.#keys = keys;
  }

  /**
   * Head and entries are two commands, and the cluster client repeats each by itself if a server fails or redirects
   * it. So the head may be newer than the entries, and count some that were appended after the entries were read. If entries
   * are missing according to the head, they are read once more. Those that are still missing after that were lost.
   */
  override async readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]> {
    const reads = await super.readLog(positions, maxEntries);
    if (maxEntries === 0) return reads;
    return Promise.all(
      reads.map((read) => (lacksEntries(read) ? this.#readEntriesAgain(read, maxEntries) : read)),
    );
  }

  /** Two commands for each log, because a command can't name keys of several slots. @throws the error of a server, if one fails */
  protected override async read(positions: readonly LogPosition[], maxEntries: number): Promise<RawRead[]> {
    const commands: Command[] = positions.map((position) => [
      'hmget',
      this.#keys.segment(position).segment,
      ...HEAD_FIELDS,
    ]);
    for (const position of maxEntries > 0 ? positions : []) {
      const after = `(${position.generation}-${position.seq}`;
      const { log } = this.#keys.segment(position);
      // The range ends with this generation's last id: the log may be replaced between the two commands.
      commands.push(['xrange', log, after, position.generation, 'COUNT', maxEntries]);
    }
    const replies = await this.#sendAll(commands);
    return positions.map((_, i) => {
      const [headError, head] = replies[i]!;
      const [entriesError, entries] = replies[positions.length + i] ?? [null, []];
      const error = headError ?? entriesError;
      if (!error) return [null, head as (string | null)[], entries as RawEntry[]];
      // Any other error is about the server, which may be busy or lack a right, and says nothing about the log.
      if (!error.message.startsWith('WRONGTYPE')) throw error;
      return [new BackendCorrupt(error.message)];
    });
  }

  async #readEntriesAgain({ position, head }: LogRead, maxEntries: number): Promise<LogRead> {
    const [again] = await super.readLog([position], maxEntries);
    // The older head, because the newer one may again be ahead of its entries.
    return again!.head ? { ...again!, head } : again!;
  }

  /**
   * One command for each log, because a command can't name keys of several slots.
   *
   * The message travels on another connection than the cursors and could overtake them: a node that hears it and asks
   * must find the cursors.
   */
  override async advance(watermarks: readonly Watermark[]): Promise<void> {
    if (watermarks.length === 0) return;
    await Promise.all(this.note(watermarks, 1));
    await this.#cluster.publish(this.#keys.watermarks, JSON.stringify(watermarks));
  }
}

function lacksEntries({ position, head, entries }: LogRead): boolean {
  return entries.length === 0 && head !== undefined && head.seq > position.seq;
}
