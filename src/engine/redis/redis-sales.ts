import { chunksOf } from '../../lib/chunks-of.ts';
import type { RedisClient } from '../../redis/clients.ts';
import type { SendAll } from '../../redis/send-all.ts';
import type {
  DraftRef,
  DraftStamp,
  ExpectedSale,
  GenerationRef,
  Holding,
  HoldingsPart,
  Recall,
  Removable,
  SaleRecord,
  SaleStore,
  SaleVersion,
  SegmentLoad,
  SegmentRef,
  SegmentSnapshot,
  Share,
} from '../contract.ts';
import { BackendCorrupt, StaleGeneration } from '../errors.ts';
import { AFTER_ALL_IDS, MAX_SEGMENTS } from '../limits.ts';
import { minId } from '../min-id.ts';
import { rulesOf } from '../sale/rules.ts';
import { reopenSale, tellChange } from './protocol/change-counter.ts';
import { decodeCount, decodeRecord, decodeWithdrawal, encodeDigest, encodeRecord } from './protocol/codec.ts';
import type { Keys, SegmentKeys } from './protocol/keys.ts';
import { decodeSaleRecord, decodeVersion, encodeDefinition } from './protocol/sale-record.ts';
import { type RawSnapshot, refuseStale, type Scripts } from './protocol/scripts.ts';

/** Records in one load call: well below the about 8,000 values that Lua can unpack. */
const LOAD_CHUNK_BUYERS = 1_000;
/**
 * Segments that a search reads at a time. They are numbered without gaps, except for those that Redis has lost. So the search ends
 * when all segments of a page are missing.
 */
const PAGE_SEGMENTS = 64;
/** The reply of freeze.lua for a segment that sold in an older generation. */
const SOLD_IN_OLDER = 'older';
/** Redis does nothing else while it compares sales. For this many keys it needs about 0.5 ms. */
const MAX_KEYS_OF_DIGEST = 512;

export class RedisSales implements SaleStore {
  readonly #redis: RedisClient;
  readonly #scripts: Scripts;
  readonly #keys: Keys;
  readonly #sendAll: SendAll;
  readonly #cork: () => void;

  /** @param cork called before commands that should leave in one write */
  constructor(redis: RedisClient, scripts: Scripts, keys: Keys, sendAll: SendAll, cork: () => void) {
    this.#redis = redis;
    this.#scripts = scripts;
    this.#keys = keys;
    this.#sendAll = sendAll;
    this.#cork = cork;
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
    return decodeSaleRecord(saleId, definition, decodeVersion(epoch, generation, state));
  }

  async versions(saleIds: readonly string[]): Promise<readonly (SaleVersion | undefined)[]> {
    if (saleIds.length === 0) return [];
    const asked = saleIds.map(
      (id) => ['hmget', this.#keys.sale(id), 'epoch', 'generation', 'state', 'rules'] as const,
    );
    return (await this.#sendAll(asked)).map(([error, reply]) => {
      // A reply error, such as for a key of another type, concerns one sale; a connection error concerns all.
      if (error && error.name !== 'ReplyError') throw error;
      const [epoch, generation, state, rules] = (error ? [] : reply) as (string | null)[];
      return unlessCorrupt(() => {
        const version = decodeVersion(epoch, generation, state);
        return version && rules ? { ...version, rules } : version;
      });
    });
  }

  async matches(expected: readonly ExpectedSale[]): Promise<readonly boolean[]> {
    this.#cork();
    const asked = expected.map(({ saleId, newest }) => ({
      segments: this.#keys.segments(saleId, newest.length),
      sale: this.#keys.sale(saleId),
    }));
    const found = await Promise.all(
      chunksOf(asked, MAX_KEYS_OF_DIGEST, ({ segments }) => segments.length + 1).map((chunk) =>
        this.#scripts.digest(chunk),
      ),
    );
    const digests = found.flat();
    return expected.map((sale, i) => digests[i] === encodeDigest(sale));
  }

  async changeCounter(): Promise<string> {
    return (await this.#redis.get(this.#keys.changes)) ?? '';
  }

  async freeze(saleId: string, segments: number, generation: number): Promise<void> {
    const replies = await Promise.all(
      this.#keys.segments(saleId, segments).map((key) => this.#scripts.freeze(key, generation)),
    );
    if (replies.includes(SOLD_IN_OLDER)) throw new StaleGeneration(saleId, generation);
  }

  async beginDraft(draft: DraftRef): Promise<void> {
    await this.#scripts.beginDraft(this.#keys.segment(draft), stampOf(draft.draft));
  }

  async draftHoldings({ draft, ...ref }: DraftRef, holdings: readonly Holding[]): Promise<void> {
    const keys = this.#keys.segment(ref);
    const before = { ...draft, writes: draft.writes - 1 };
    const chunks = writesOf(holdings);
    for (const [i, chunk] of chunks.entries()) {
      const stamp = i === chunks.length - 1 ? stampOf(draft) : stampOf(before, i + 1);
      refuseStale(await this.#scripts.draftHoldings(keys, stampOf(before, i), stamp, recordsOf(chunk)), ref);
    }
  }

  async loadSegment({ left, perBuyerLimit: limit, buyers, ...ref }: SegmentLoad): Promise<void> {
    const draft = buyers === undefined || buyers === 'none' ? '' : stampOf(buyers);
    const upTo = buyers === undefined ? '' : AFTER_ALL_IDS;
    const keys = this.#keys.segment(ref);
    const reply = await this.#scripts.loadSegment(keys, ref.generation, { left, limit }, { draft, upTo });
    refuseStale(reply, ref);
  }

  async loadHoldings(segment: SegmentRef, { after, upTo, holdings }: HoldingsPart): Promise<void> {
    const keys = this.#keys.segment(segment);
    const chunks = writesOf(holdings);
    let from = after;
    for (const [i, chunk] of chunks.entries()) {
      const range = { after: from, upTo: i === chunks.length - 1 ? upTo : chunk.at(-1)!.buyerId };
      const reply = await this.#scripts.loadHoldings(keys, segment.generation, range, recordsOf(chunk));
      refuseStale(reply, segment);
      from = range.upTo;
    }
  }

  async loadedUpTo({ saleId, generation }: GenerationRef, segments: number): Promise<string | undefined> {
    const keys = this.#keys.segments(saleId, segments);
    const asked = keys.map((key) => ['hmget', key, 'generation', 'state', 'loadedUpTo'] as const);
    const ids: string[] = [];
    for (const [error, reply] of await this.#sendAll(asked)) {
      if (error) throw error;
      const [current, state, upTo] = reply as (string | null)[];
      if (current !== String(generation) || state !== 'loaded') return undefined;
      ids.push(upTo ?? '');
    }
    return minId(ids);
  }

  async olderSegments({ saleId, generation }: GenerationRef, from: number): Promise<readonly SegmentRef[]> {
    const found: SegmentRef[] = [];
    for (let at = from; at < MAX_SEGMENTS; at += PAGE_SEGMENTS) {
      const replies = await this.#sendAll(
        this.#page(saleId, at).map(({ segment }) => ['hget', segment, 'generation'] as const),
      );
      let isEmpty = true;
      for (const [i, [error, current]] of replies.entries()) {
        if (error) throw error;
        if (current === null) continue;
        isEmpty = false;
        if (Number(current) < generation)
          found.push({ saleId, segment: at + i, generation: Number(current) });
      }
      if (isEmpty) break;
    }
    return found;
  }

  async removeSegments(
    { saleId, generation }: GenerationRef,
    from: number,
    which: Removable = 'all',
  ): Promise<void> {
    for (let at = from; at < MAX_SEGMENTS; at += PAGE_SEGMENTS) {
      const found = await this.removePage(this.#page(saleId, at), generation, which);
      refuseStale(found, { saleId, generation });
      if (found === 0) return;
    }
  }

  /** The keys of a page of segments. */
  #page(saleId: string, from: number): SegmentKeys[] {
    return Array.from({ length: PAGE_SEGMENTS }, (_, i) => this.#keys.segment({ saleId, segment: from + i }));
  }

  /** @returns how many keys of the segments existed; STALE if one may not be removed */
  protected removePage(
    segments: readonly SegmentKeys[],
    generation: number,
    which: Removable,
  ): Promise<number | string> {
    return this.#scripts.removeSegments(segments, generation, which);
  }

  /**
   * The record goes last: a Redis that comes back from a copy of a time in between still has it, and is archived again.
   */
  async archive(sale: GenerationRef, which: Removable = 'all'): Promise<void> {
    await this.removeSegments(sale, 0, which);
    await this.#scripts.archiveSale(this.#keys.sale(sale.saleId), sale.generation);
    await tellChange(this.#redis, this.#keys, sale.saleId);
  }

  async publish(record: Omit<SaleRecord, 'epoch'>): Promise<void> {
    await this.#applyState(record, true);
  }

  async setState(record: Omit<SaleRecord, 'epoch'>): Promise<number> {
    return this.#applyState(record, false);
  }

  async #applyState(record: Omit<SaleRecord, 'epoch'>, publish: boolean): Promise<number> {
    const { sale, state, generation, revision = 0 } = record;
    const reached = await this.applyToSegments(record, publish);
    if (reached > revision) return reached;
    const published = await this.#scripts.publishSale(
      this.#keys.sale(sale.id),
      { generation, state, definition: encodeDefinition(sale), rules: rulesOf(sale), revision },
      publish,
    );
    refuseStale(published, { saleId: sale.id, generation });
    await tellChange(this.#redis, this.#keys, sale.id);
    return reached;
  }

  /** Changes all segments or none. @returns the revision that they have now @throws StaleGeneration */
  protected async applyToSegments(
    { sale, state, generation, revision = 0 }: Omit<SaleRecord, 'epoch'>,
    publish: boolean,
  ): Promise<number> {
    const segments = this.#keys.segments(sale.id, sale.segments);
    const written = { rules: rulesOf(sale), limit: sale.perBuyerLimit, revision };
    const reached = await this.#scripts.setState(segments, generation, state, written, publish);
    refuseStale(reached, { saleId: sale.id, generation });
    return reached;
  }

  async credit({ movement, units, ...ref }: Share): Promise<void> {
    const { segment } = this.#keys.segment(ref);
    refuseStale(await this.#scripts.credit(segment, ref.generation, movement, units), ref);
  }

  async withdraw({ movement, units, ...ref }: Share): Promise<number> {
    const { segment } = this.#keys.segment(ref);
    const out = await this.#scripts.withdraw(segment, ref.generation, movement, units);
    refuseStale(out, ref);
    return out;
  }

  async giveBack({ movement, ...ref }: Omit<Share, 'units'>): Promise<void> {
    const { segment } = this.#keys.segment(ref);
    refuseStale(await this.#scripts.giveBack(segment, ref.generation, movement), ref);
  }

  async reopen(saleId: string): Promise<void> {
    await reopenSale(this.#redis, this.#keys, saleId);
  }

  async snapshot(saleId: string, segments: number, generation: number): Promise<readonly SegmentSnapshot[]> {
    const reply = await this.#scripts.snapshot(this.#keys.segments(saleId, segments), generation);
    return reply.map((values, segment) => decodeSnapshot(segment, values));
  }

  async recall(segment: SegmentRef, buyerIds: readonly string[]): Promise<Recall> {
    const reply = await this.#scripts.recall(this.#keys.segment(segment), segment.generation, buyerIds);
    refuseStale(reply, segment);
    const [committed, ...records] = reply;
    const holdings = buyerIds.map((buyerId, i) => ({ buyerId, orders: decodeRecord(records[i] ?? null) }));
    return { committed, holdings };
  }
}

/** @param inTransit units that have left the segment and not arrived; 0 where a transfer is one step */
export function decodeSnapshot(segment: number, values: RawSnapshot, inTransit = 0): SegmentSnapshot {
  if (!values) return { segment, counters: undefined };
  const counts = values.slice(0, 6).map(decodeCount) as [number, number, number, number, number, number];
  const [left, seq, committed, taken, orders, supplied] = counts;
  const withdrawal = decodeWithdrawal(values[6]!);
  return { segment, counters: { left, seq, committed, taken, orders, supplied, withdrawal, inTransit } };
}

/** A sale that can't be decoded is `undefined` here; `read` of that sale throws the reason. */
function unlessCorrupt<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof BackendCorrupt)) throw error;
    return undefined;
  }
}

/** The holdings in parts of a write: at least one, which says that there are none. */
function writesOf(holdings: readonly Holding[]): readonly Holding[][] {
  return holdings.length > 0 ? chunksOf(holdings, LOAD_CHUNK_BUYERS) : [[]];
}

/** @param chunks of the next write that are in the draft already */
function stampOf({ id, writes }: DraftStamp, chunks = 0): string {
  return `${id} ${writes} ${chunks}`;
}

function recordsOf(holdings: readonly Holding[]): string[] {
  return holdings.flatMap(({ buyerId, orders }) => [buyerId, encodeRecord(orders)]);
}
