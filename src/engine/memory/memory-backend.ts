/**
 * Stock in the memory of this process: the embedded default, and the reference with which the Redis backend is
 * compared. Nothing survives the process; at the next start a sale is rebuilt from Postgres.
 */

import type {
  Backend,
  BackendEvents,
  Compensation,
  DraftRef,
  DraftStamp,
  ExpectedSale,
  GenerationRef,
  Holding,
  HoldingsPart,
  LogHint,
  LogPosition,
  LogRead,
  OrderLog,
  Recall,
  RefillReply,
  Removable,
  SaleRecord,
  SaleStore,
  SaleVersion,
  SegmentLoad,
  SegmentRef,
  SegmentSnapshot,
  Share,
  TakeBatch,
  TakeReply,
  TakeServer,
  TakeStore,
  Watermark,
} from '../contract.ts';
import { StaleGeneration } from '../errors.ts';
import { AFTER_ALL_IDS } from '../limits.ts';
import { minId } from '../min-id.ts';
import { rulesOf } from '../sale/rules.ts';
import { MemoryAudits } from './memory-audits.ts';
import { MemorySegment } from './memory-segment.ts';
import { type MemoryDraft, MemoryStock } from './memory-stock.ts';
import { MemoryTransfers } from './memory-transfers.ts';
import { refill } from './refill.ts';

export interface MemoryBackendOptions {
  /** Orders that one segment's log may hold beyond the cursor. Beyond that, takes are refused as busy. */
  readonly maxLogOrders: number;
}

/** It loses nothing before this process ends, and its buyers' requests end with it. */
const THIS_PROCESS: TakeServer = { isSame: () => true };

export class MemoryBackend implements Backend, TakeStore, SaleStore, OrderLog {
  readonly durable = false;
  readonly ready = true;
  readonly takes = this;
  readonly sales = this;
  readonly log = this;
  readonly #stock = new MemoryStock();
  readonly transfers = new MemoryTransfers(this.#stock);
  readonly audits = new MemoryAudits(this.#stock);
  readonly #subscribers = new Set<BackendEvents>();
  #changes = 0;
  readonly #maxLogOrders: number;

  constructor(options: MemoryBackendOptions) {
    this.#maxLogOrders = options.maxLogOrders;
  }

  async whenReady(): Promise<void> {}

  async take(batch: TakeBatch): Promise<TakeReply> {
    batch.sending?.(batch.orders, THIS_PROCESS);
    return this.#stock.segment(batch)?.take(batch, this.#maxLogOrders) ?? { status: 'stale' };
  }

  async refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply> {
    const sale = this.#stock.sale(batch.saleId);
    const all = Array.from({ length: segments }, (_, segment) => this.#stock.segment({ ...batch, segment }));
    if (!sale?.record || !all.every((segment) => segment?.isPublished)) return { status: 'stale' };
    const present = all as MemorySegment[];
    refill(present, batch.segment, batch.orders);
    const take = await this.take(batch);
    const total = present.reduce((sum, s) => sum + s.left, 0);
    return { status: 'refilled', take, total, epoch: sale.record.epoch };
  }

  hint(hint: LogHint): void {
    this.#tell((events) => events.hint?.(hint));
  }

  async read(saleId: string): Promise<SaleRecord | undefined> {
    return this.#stock.sale(saleId)?.record;
  }

  async versions(saleIds: readonly string[]): Promise<readonly (SaleVersion | undefined)[]> {
    return saleIds.map((id) => this.#stock.sale(id)?.record);
  }

  async matches(expected: readonly ExpectedSale[]): Promise<readonly boolean[]> {
    // The record of a published sale has the generation, state and rules of its segments.
    return expected.map(({ saleId, generation, state, rules, newest }) =>
      newest.every(({ seq, tail }, segment) => {
        const found = this.#stock.segment({ saleId, segment, generation });
        if (found?.state !== state || found.rules !== rules) return false;
        return found.seq === seq && found.tail === tail && found.committed === seq;
      }),
    );
  }

  async changeCounter(): Promise<string> {
    return String(this.#changes);
  }

  async freeze(saleId: string, segments: number, generation: number): Promise<void> {
    const sale = this.#stock.saleFor(saleId);
    let soldInOlder = false;
    for (let segment = 0; segment < segments; segment++) {
      const current = sale.segments.get(segment);
      if (current && current.generation > generation) continue;
      if (current && current.generation < generation && current.isPublished) {
        current.state = 'frozen';
        soldInOlder = true;
        continue;
      }
      const empty = new MemorySegment({ saleId, segment, generation, left: 0, perBuyerLimit: 0 });
      const frozen = current?.generation === generation ? current : empty;
      frozen.state = 'frozen';
      sale.segments.set(segment, frozen);
    }
    if (soldInOlder) throw new StaleGeneration(saleId, generation);
  }

  async beginDraft({ saleId, segment, draft }: DraftRef): Promise<void> {
    this.#stock.saleFor(saleId).drafts.set(segment, { stamp: draft, holdings: new Map() });
  }

  async draftHoldings(ref: DraftRef, holdings: readonly Holding[]): Promise<void> {
    const before = ref.draft.writes - 1;
    const draft = this.#draftOf(ref, ({ writes }) => writes === before || writes === before + 1);
    draft.stamp = ref.draft;
    for (const holding of holdings) {
      if (holding.orders.length > 0) draft.holdings.set(holding.buyerId, holding);
      else draft.holdings.delete(holding.buyerId);
    }
  }

  #draftOf(
    { saleId, segment, generation, draft }: DraftRef,
    fits: (stamp: DraftStamp) => boolean,
  ): MemoryDraft {
    const found = this.#stock.saleFor(saleId).drafts.get(segment);
    if (found?.stamp.id !== draft.id || !fits(found.stamp)) throw new StaleGeneration(saleId, generation);
    return found;
  }

  async loadSegment(load: SegmentLoad): Promise<void> {
    const sale = this.#stock.saleFor(load.saleId);
    const current = sale.segments.get(load.segment);
    if (current && (current.generation >= load.generation || current.isPublished))
      throw new StaleGeneration(load.saleId, load.generation);
    const { buyers } = load;
    const segment = new MemorySegment(load);
    if (buyers !== undefined) {
      const drafted =
        buyers === 'none'
          ? []
          : this.#draftOf(
              { ...load, draft: buyers },
              ({ writes }) => writes === buyers.writes,
            ).holdings.values();
      segment.load({ after: '', upTo: AFTER_ALL_IDS, holdings: [...drafted] });
    }
    sale.segments.set(load.segment, segment);
    sale.drafts.delete(load.segment);
  }

  async loadHoldings(ref: SegmentRef, part: HoldingsPart): Promise<void> {
    const segment = this.#stock.segment(ref);
    if (segment?.state !== 'loaded' || !segment.load(part))
      throw new StaleGeneration(ref.saleId, ref.generation);
  }

  async loadedUpTo(sale: GenerationRef, segments: number): Promise<string | undefined> {
    const all = Array.from({ length: segments }, (_, segment) => this.#stock.segment({ ...sale, segment }));
    if (!all.every((segment) => segment?.state === 'loaded')) return undefined;
    return minId(all.map((segment) => segment!.loadedUpTo));
  }

  async olderSegments({ saleId, generation }: GenerationRef, from: number): Promise<readonly SegmentRef[]> {
    const all = [...(this.#stock.sale(saleId)?.segments ?? [])];
    return all
      .filter(([segment, { generation: current }]) => segment >= from && current < generation)
      .map(([segment, { generation: current }]) => ({ saleId, segment, generation: current }));
  }

  async removeSegments(
    { saleId, generation }: GenerationRef,
    from: number,
    which: Removable = 'all',
  ): Promise<void> {
    const { segments, drafts } = this.#stock.saleFor(saleId);
    const older = await this.olderSegments({ saleId, generation }, from);
    if (which === 'idle' && older.some(({ segment }) => segments.get(segment)?.isPublished))
      throw new StaleGeneration(saleId, generation);
    for (const number of [...segments.keys(), ...drafts.keys()]) {
      const isLater = (segments.get(number)?.generation ?? 0) >= generation;
      if (number < from || isLater) continue;
      segments.delete(number);
      drafts.delete(number);
    }
  }

  async archive({ saleId, generation }: GenerationRef, which: Removable = 'all'): Promise<void> {
    const sale = this.#stock.saleFor(saleId);
    await this.removeSegments({ saleId, generation }, 0, which);
    if (!sale.record || sale.record.generation < generation) {
      sale.record = undefined;
      sale.archivedIn = Math.max(sale.archivedIn, generation);
    }
    this.#changed(saleId);
  }

  async publish(record: Omit<SaleRecord, 'epoch'>): Promise<void> {
    this.#applyState(record, true);
  }

  async setState(record: Omit<SaleRecord, 'epoch'>): Promise<number> {
    return this.#applyState(record, false);
  }

  #applyState(record: Omit<SaleRecord, 'epoch'>, publish: boolean): number {
    const { sale, state, generation, revision = 0 } = record;
    const stored = this.#stock.sale(sale.id);
    const segments = Array.from({ length: sale.segments }, (_, segment) => stored?.segments.get(segment));
    const usable = segments.every(
      (s) => s?.generation === generation && (publish ? s.isPublishable : s.isPublished),
    );
    if (!stored || !usable || generation <= stored.archivedIn) throw new StaleGeneration(sale.id, generation);
    const reached = stored.record?.generation === generation ? (stored.record.revision ?? 0) : 0;
    if (!publish && reached > revision) return reached;
    const rules = rulesOf(sale);
    const { perBuyerLimit } = sale;
    for (const segment of segments) Object.assign(segment!, { state, rules, perBuyerLimit });
    stored.record = { ...record, rules, epoch: (stored.record?.epoch ?? 0) + 1 };
    this.#changed(sale.id);
    return revision;
  }

  async credit({ movement, units, ...ref }: Share): Promise<void> {
    this.#stock.published(ref).credit(movement, units);
  }

  async withdraw({ movement, units, ...ref }: Share): Promise<number> {
    return this.#stock.published(ref).withdraw(movement, units);
  }

  async giveBack({ movement, ...ref }: Omit<Share, 'units'>): Promise<void> {
    this.#stock.published(ref).giveBack(movement);
  }

  async reopen(saleId: string): Promise<void> {
    const sale = this.#stock.sale(saleId);
    if (!sale?.record) return;
    sale.record = { ...sale.record, epoch: sale.record.epoch + 1 };
    this.#changed(saleId);
  }

  async snapshot(saleId: string, segments: number, generation: number): Promise<readonly SegmentSnapshot[]> {
    return Array.from({ length: segments }, (_, segment) => {
      const found = this.#stock.segment({ saleId, segment, generation });
      if (!found) return { segment, counters: undefined };
      const { left, seq, committed, taken, orders, supplied, withdrawal } = found;
      const counters = { left, seq, committed, taken, orders, supplied, withdrawal, inTransit: 0 };
      return { segment, counters };
    });
  }

  async recall(ref: SegmentRef, buyerIds: readonly string[]): Promise<Recall> {
    const segment = this.#stock.published(ref);
    return { committed: segment.committed, holdings: buyerIds.map((id) => segment.holding(id)) };
  }

  async readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]> {
    return positions.map((position) => {
      const segment = this.#stock.segment(position);
      if (!segment) return { position, head: undefined, entries: [] };
      const { seq, tail, orders, committed, state, rules } = segment;
      const head = { seq, tail, orders, committed, state, rules };
      return { position, head, entries: segment.entriesAfter(position.seq, maxEntries) };
    });
  }

  async advance(watermarks: readonly Watermark[]): Promise<void> {
    if (watermarks.length === 0) return;
    for (const w of watermarks) this.#stock.segment(w)?.advance(w.seq, w.orders);
    this.#tell((events) => events.watermarks?.(watermarks));
  }

  async compensate(c: Compensation): Promise<void> {
    this.#stock.published(c).compensate(c.buyerId, c.orderId, c.units);
    if (c.units > 0) await this.reopen(c.saleId);
  }

  async subscribe(events: BackendEvents): Promise<() => Promise<void>> {
    this.#subscribers.add(events);
    return async () => {
      this.#subscribers.delete(events);
    };
  }

  async close(): Promise<void> {
    this.#subscribers.clear();
  }

  #changed(saleId: string): void {
    this.#changes++;
    this.#tell((events) => events.saleChanged?.(saleId));
  }

  #tell(event: (events: BackendEvents) => void): void {
    for (const events of this.#subscribers) event(events);
  }
}
