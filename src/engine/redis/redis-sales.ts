import type { Redis } from 'ioredis';
import type {
  Holding,
  Pulse,
  Recall,
  Sale,
  SaleRecord,
  SaleState,
  SaleStore,
  SegmentLoad,
  SegmentRef,
  SegmentSnapshot,
} from '../contract.ts';
import { StaleGeneration } from '../errors.ts';
import { decodeCount, decodeRecord, encodeRecord } from './codec.ts';
import type { Keys } from './keys.ts';
import { type Scripts, STALE } from './scripts.ts';

/** Records in one load call: well below the some 8,000 values that Lua can unpack. */
const LOAD_CHUNK_BUYERS = 1_000;

export class RedisSales implements SaleStore {
  readonly #redis: Redis;
  readonly #scripts: Scripts;
  readonly #keys: Keys;

  constructor(redis: Redis, scripts: Scripts, keys: Keys) {
    this.#redis = redis;
    this.#scripts = scripts;
    this.#keys = keys;
  }

  async read(saleId: string): Promise<SaleRecord | undefined> {
    const key = this.#keys.sale(saleId);
    const [definition, state, generation, epoch] = await this.#redis.hmget(
      key,
      'definition',
      'state',
      'generation',
      'epoch',
    );
    if (!definition || !state || !generation || !epoch) return undefined;
    return {
      sale: JSON.parse(definition) as Sale,
      state: state as SaleState,
      generation: Number(generation),
      epoch: Number(epoch),
    };
  }

  async pulse(saleIds: readonly string[]): Promise<readonly (Pulse | undefined)[]> {
    const pipeline = this.#redis.pipeline();
    for (const id of saleIds) pipeline.hmget(this.#keys.sale(id), 'epoch', 'generation', 'state');
    return ((await pipeline.exec()) ?? []).map(([error, reply]) => {
      // A key of another type is one sale's misfortune; a connection that fails is everybody's.
      if (error && error.name !== 'ReplyError') throw error;
      const [epoch, generation, state] = (error ? [] : reply) as (string | null)[];
      if (!epoch || !generation || !state) return undefined;
      return { epoch: Number(epoch), generation: Number(generation), state: state as SaleState };
    });
  }

  async freeze(saleId: string, segments: number, generation: number): Promise<void> {
    await Promise.all(
      this.#keys.segments(saleId, segments).map((key) => this.#scripts.freeze(key, generation)),
    );
  }

  async loadSegment(load: SegmentLoad): Promise<void> {
    const reply = await this.#scripts.loadSegment(
      this.#keys.segment(load),
      load.generation,
      load.left,
      load.perBuyerLimit,
    );
    refuseStale(reply, load);
  }

  async loadHoldings(segment: SegmentRef, holdings: readonly Holding[]): Promise<void> {
    const keys = this.#keys.segment(segment);
    for (let at = 0; at === 0 || at < holdings.length; at += LOAD_CHUNK_BUYERS) {
      const chunk = holdings.slice(at, at + LOAD_CHUNK_BUYERS);
      const records = chunk.flatMap((holding) => [holding.buyerId, encodeRecord(holding.orders)]);
      refuseStale(await this.#scripts.loadHoldings(keys, segment.generation, records), segment);
    }
  }

  async publish(record: Omit<SaleRecord, 'epoch'>): Promise<void> {
    await this.#applyState(record, true);
  }

  async setState(record: Omit<SaleRecord, 'epoch'>): Promise<void> {
    await this.#applyState(record, false);
  }

  async #applyState(record: Omit<SaleRecord, 'epoch'>, publish: boolean): Promise<void> {
    const { sale, state, generation } = record;
    const segments = this.#keys.segments(sale.id, sale.segments);
    const applied = await this.#scripts.setState(segments, generation, state, publish);
    refuseStale(applied, { saleId: sale.id, generation });
    const published = await this.#scripts.publishSale(
      this.#keys.sale(sale.id),
      generation,
      state,
      JSON.stringify(sale),
    );
    refuseStale(published, { saleId: sale.id, generation });
    await this.#redis.publish(this.#keys.sales, sale.id);
  }

  async snapshot(saleId: string, segments: number, generation: number): Promise<readonly SegmentSnapshot[]> {
    const reply = await this.#scripts.snapshot(this.#keys.segments(saleId, segments), generation);
    return reply.map((values, segment) => {
      if (!values) return { segment, counters: undefined };
      const counters = values.map(decodeCount) as [number, number, number, number, number];
      const [left, seq, committed, taken, orders] = counters;
      return { segment, counters: { left, seq, committed, taken, orders } };
    });
  }

  async recall(segment: SegmentRef, buyerIds: readonly string[]): Promise<Recall> {
    const reply = await this.#scripts.recall(this.#keys.segment(segment), segment.generation, buyerIds);
    if (typeof reply === 'string') throw new StaleGeneration(segment.saleId, segment.generation);
    const [committed, ...records] = reply;
    const holdings = buyerIds.map((buyerId, i) => ({ buyerId, orders: decodeRecord(records[i] ?? null) }));
    return { committed, holdings };
  }
}

function refuseStale(reply: number | string, ref: Pick<SegmentRef, 'saleId' | 'generation'>): void {
  if (reply === STALE) throw new StaleGeneration(ref.saleId, ref.generation);
}
