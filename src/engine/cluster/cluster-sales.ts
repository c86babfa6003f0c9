import type { Cluster } from 'ioredis';
import type { Reply, SendAll } from '../../redis/send-all.ts';
import type { ExpectedSale, Removable, SaleRecord, SegmentSnapshot } from '../contract.ts';
import { StaleGeneration } from '../errors.ts';
import { AFTER_ALL_IDS } from '../limits.ts';
import { encodeDigest } from '../redis/protocol/codec.ts';
import type { Keys, SegmentKeys } from '../redis/protocol/keys.ts';
import { type Scripts, STALE } from '../redis/protocol/scripts.ts';
import { decodeSnapshot, RedisSales } from '../redis/redis-sales.ts';
import { rulesOf } from '../sale/rules.ts';
import { readUntilStable } from './stable-read.ts';
import { unarrived } from './unarrived.ts';

/**
 * Does segment by segment what one Redis does in one script for all segments of a sale. Everything else concerns one
 * segment, and is inherited.
 */
export class ClusterSales extends RedisSales {
  readonly #scripts: Scripts;
  readonly #keys: Keys;
  readonly #sendAll: SendAll;

  constructor(cluster: Cluster, scripts: Scripts, keys: Keys, sendAll: SendAll) {
    super(cluster, scripts, keys, sendAll, () => {});
    this.#scripts = scripts;
    this.#keys = keys;
    this.#sendAll = sendAll;
  }

  /**
   * Checks all segments first, so that a sale is left unchanged if one of its segments can't be changed. If the process
   * dies between two segments, they differ, and the record names the old state. Then the operator or the reconciler
   * repeats the change; a generation that was published in part was not announced, and is rebuilt.
   */
  protected override async applyToSegments(
    { sale, state, generation, revision = 0 }: Omit<SaleRecord, 'epoch'>,
    publish: boolean,
  ): Promise<number> {
    const keys = this.#keys.segments(sale.id, sale.segments);
    const states = await this.#sendAll(
      keys.map((key) => ['hmget', key, 'generation', 'state', 'loadedUpTo'] as const),
    );
    for (const [error, reply] of states) {
      if (error) throw error;
      const [current, stateNow, upTo] = reply as (string | null)[];
      const mayChange = publish ? stateNow === 'loaded' && upTo === AFTER_ALL_IDS : isPublished(stateNow);
      if (current !== String(generation) || !mayChange) throw new StaleGeneration(sale.id, generation);
    }
    const written = { rules: rulesOf(sale), limit: sale.perBuyerLimit, revision };
    const reached = await Promise.all(
      keys.map((key) => this.#scripts.setState([key], generation, state, written, publish)),
    );
    if (reached.includes(STALE)) throw new StaleGeneration(sale.id, generation);
    return Math.max(...reached.map(Number));
  }

  protected override async removePage(
    segments: readonly SegmentKeys[],
    generation: number,
    which: Removable,
  ): Promise<number | string> {
    const found = await Promise.all(
      segments.map((segment) => this.#scripts.removeSegments([segment], generation, which)),
    );
    if (found.includes(STALE)) return STALE;
    return found.reduce<number>((sum, keys) => sum + Number(keys), 0);
  }

  /** Each segment is read at an instant of its own. A sale that seems to differ is read again anyway. */
  override async matches(expected: readonly ExpectedSale[]): Promise<readonly boolean[]> {
    return Promise.all(
      expected.map(async (sale) => {
        const segments = this.#keys.segments(sale.saleId, sale.newest.length);
        const [record, ...lines] = await this.#sendAll([
          ['hmget', this.#keys.sale(sale.saleId), 'generation', 'state', 'rules'],
          ...segments.map(
            (key) => ['hmget', key, 'generation', 'state', 'rules', 'seq', 'tail', 'committed'] as const,
          ),
        ]);
        return [record!, ...lines].map(lineOf).join('\n') === encodeDigest(sale);
      }),
    );
  }

  /** Reads until no units were supplied to any segment between two reads. */
  override async snapshot(
    saleId: string,
    segments: number,
    generation: number,
  ): Promise<readonly SegmentSnapshot[]> {
    const { seen } = await readUntilStable(
      () => this.#readOnce(saleId, segments, generation),
      (read) => read.map(({ counters: c }) => c && [c.supplied, c.inTransit]),
    );
    return seen;
  }

  async #readOnce(saleId: string, segments: number, generation: number): Promise<SegmentSnapshot[]> {
    const keys = this.#keys.segments(saleId, segments);
    const replies = await Promise.all(keys.map((key) => this.#scripts.snapshot([key], generation)));
    return Promise.all(
      replies.map(async ([values = null], segment) => {
        // The last value is the donor's record of an open transfer.
        const inTransit = await unarrived(this.#sendAll, this.#keys, { saleId, segment }, values?.at(-1));
        return decodeSnapshot(segment, values, inTransit);
      }),
    );
  }
}

/** One line as in digest.lua. A reply error concerns that sale only; a connection error concerns all. */
function lineOf([error, reply]: Reply): string {
  if (error && error.name !== 'ReplyError') throw error;
  const values = error ? [null] : (reply as (string | null)[]);
  return values.includes(null) ? '' : values.join(' ');
}

function isPublished(state: string | null | undefined): boolean {
  return state === 'open' || state === 'paused' || state === 'closed';
}
