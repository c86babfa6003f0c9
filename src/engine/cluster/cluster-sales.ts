import type { Cluster } from 'ioredis';
import type { Reply, SendAll } from '../../redis/send-all.ts';
import type { ExpectedSale, SaleRecord, SegmentSnapshot } from '../contract.ts';
import { StaleGeneration } from '../errors.ts';
import { encodeDigest } from '../redis/codec.ts';
import type { Keys } from '../redis/keys.ts';
import { decodeSnapshot, RedisSales } from '../redis/redis-sales.ts';
import { type Scripts, STALE } from '../redis/scripts.ts';
import { rulesOf } from '../sale/rules.ts';
import { standingStill } from './standing-still.ts';
import { unarrived } from './unarrived.ts';

/**
 * What one Redis does in one script for all segments of a sale, segment by segment. All else needs one segment only, and is
 * inherited.
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
   * Looks first, so that a sale of which one segment can't follow is left as it is. If it dies between two segments, they
   * differ, and the record names the state before: whoever made the change, or the sweep after him, makes it again; a
   * generation that was opened in part was told to nobody, and is built anew.
   */
  protected override async applyToSegments(
    { sale, state, generation }: Omit<SaleRecord, 'epoch'>,
    publish: boolean,
  ): Promise<void> {
    const keys = this.#keys.segments(sale.id, sale.segments);
    const states = await this.#sendAll(keys.map((key) => ['hmget', key, 'generation', 'state'] as const));
    for (const [error, reply] of states) {
      if (error) throw error;
      const [current, now] = reply as (string | null)[];
      if (current !== String(generation) || !follows(now, publish))
        throw new StaleGeneration(sale.id, generation);
    }
    const applied = await Promise.all(
      keys.map((key) => this.#scripts.setState([key], generation, state, rulesOf(sale), publish)),
    );
    if (applied.includes(STALE)) throw new StaleGeneration(sale.id, generation);
  }

  /** Each segment at an instant of its own: what is not as expected now is looked at more closely anyway. */
  override async matches(expected: readonly ExpectedSale[]): Promise<readonly boolean[]> {
    return Promise.all(
      expected.map(async (sale) => {
        const segments = this.#keys.segments(sale.saleId, sale.newest.length);
        const [record, ...lines] = await this.#sendAll([
          ['hmget', this.#keys.sale(sale.saleId), 'generation', 'state', 'rules'],
          ...segments.map((key) => ['hmget', key, 'generation', 'state', 'rules', 'seq', 'tail'] as const),
        ]);
        return [record!, ...lines].map(lineOf).join('\n') === encodeDigest(sale);
      }),
    );
  }

  /** Read until nothing was supplied to any segment between two looks. */
  override async snapshot(
    saleId: string,
    segments: number,
    generation: number,
  ): Promise<readonly SegmentSnapshot[]> {
    return standingStill(
      () => this.#look(saleId, segments, generation),
      (seen) => seen.map(({ counters: c }) => c && [c.supplied, c.inTransit]),
    );
  }

  async #look(saleId: string, segments: number, generation: number): Promise<SegmentSnapshot[]> {
    const keys = this.#keys.segments(saleId, segments);
    const replies = await Promise.all(keys.map((key) => this.#scripts.snapshot([key], generation)));
    return Promise.all(
      replies.map(async ([values = null], segment) => {
        const inTransit = await unarrived(this.#sendAll, this.#keys, { saleId, segment }, values?.at(-1));
        return decodeSnapshot(segment, values, inTransit);
      }),
    );
  }
}

/** As digest.lua has it. What one sale's keys are answered with is that sale's own; a connection that fails is everybody's. */
function lineOf([error, reply]: Reply): string {
  if (error && error.name !== 'ReplyError') throw error;
  const values = error ? [null] : (reply as (string | null)[]);
  return values.includes(null) ? '' : values.join(' ');
}

function follows(state: string | null | undefined, publish: boolean): boolean {
  return publish ? state === 'loaded' : state === 'open' || state === 'paused' || state === 'closed';
}
