/**
 * Stock in the memory of this process: the embedded default, and the reference that the Redis backend is compared
 * with. Nothing survives the process; a sale is built again from Postgres at the next start.
 */
import type {
  Backend,
  BackendEvents,
  Compensation,
  Holding,
  LogHint,
  LogPosition,
  LogRead,
  OrderLog,
  Pulse,
  Recall,
  RefillReply,
  SaleRecord,
  SaleStore,
  SegmentLoad,
  SegmentRef,
  SegmentSnapshot,
  TakeBatch,
  TakeReply,
  TakeStore,
  Watermark,
} from '../contract.ts';
import { StaleGeneration } from '../errors.ts';
import { MemorySegment } from './memory-segment.ts';
import { refill } from './refill.ts';

interface MemorySale {
  record: SaleRecord | undefined;
  readonly segments: Map<number, MemorySegment>;
}

export interface MemoryBackendOptions {
  /** Orders that one segment's log may hold beyond the cursor before takes are refused as busy. */
  readonly maxLogOrders: number;
}

export class MemoryBackend implements Backend, TakeStore, SaleStore, OrderLog {
  readonly durable = false;
  readonly ready = true;
  readonly takes = this;
  readonly sales = this;
  readonly log = this;
  readonly #sales = new Map<string, MemorySale>();
  readonly #subscribers = new Set<BackendEvents>();
  readonly #maxLogOrders: number;

  constructor(options: MemoryBackendOptions) {
    this.#maxLogOrders = options.maxLogOrders;
  }

  async whenReady(): Promise<void> {}

  async take(batch: TakeBatch): Promise<TakeReply> {
    return this.#segment(batch)?.take(batch, this.#maxLogOrders) ?? { status: 'stale' };
  }

  async refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply> {
    const sale = this.#sales.get(batch.saleId);
    const all = Array.from({ length: segments }, (_, segment) => this.#segment({ ...batch, segment }));
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
    return this.#sales.get(saleId)?.record;
  }

  async pulse(saleIds: readonly string[]): Promise<readonly (Pulse | undefined)[]> {
    return saleIds.map((id) => this.#sales.get(id)?.record);
  }

  async freeze(saleId: string, segments: number, generation: number): Promise<void> {
    const sale = this.#saleOf(saleId);
    for (let segment = 0; segment < segments; segment++) {
      const current = sale.segments.get(segment);
      if (current && current.generation > generation) continue;
      const empty = new MemorySegment({ saleId, segment, generation, left: 0, perBuyerLimit: 0 });
      const frozen = current?.generation === generation ? current : empty;
      frozen.state = 'frozen';
      sale.segments.set(segment, frozen);
    }
  }

  async loadSegment(load: SegmentLoad): Promise<void> {
    const sale = this.#saleOf(load.saleId);
    const current = sale.segments.get(load.segment);
    if (current && current.generation >= load.generation)
      throw new StaleGeneration(load.saleId, load.generation);
    sale.segments.set(load.segment, new MemorySegment(load));
  }

  async loadHoldings(ref: SegmentRef, holdings: readonly Holding[]): Promise<void> {
    const segment = this.#segment(ref);
    if (segment?.state !== 'loaded') throw new StaleGeneration(ref.saleId, ref.generation);
    segment.load(holdings);
  }

  async publish(record: Omit<SaleRecord, 'epoch'>): Promise<void> {
    this.#applyState(record, true);
  }

  async setState(record: Omit<SaleRecord, 'epoch'>): Promise<void> {
    this.#applyState(record, false);
  }

  #applyState(record: Omit<SaleRecord, 'epoch'>, publish: boolean): void {
    const { sale, state, generation } = record;
    const stored = this.#sales.get(sale.id);
    const segments = Array.from({ length: sale.segments }, (_, segment) => stored?.segments.get(segment));
    const usable = segments.every(
      (s) => s?.generation === generation && (s.isPublished || (publish && s.state === 'loaded')),
    );
    if (!stored || !usable) throw new StaleGeneration(sale.id, generation);
    for (const segment of segments) segment!.state = state;
    stored.record = { ...record, epoch: (stored.record?.epoch ?? 0) + 1 };
    this.#tell((events) => events.saleChanged?.(sale.id));
  }

  async snapshot(saleId: string, segments: number, generation: number): Promise<readonly SegmentSnapshot[]> {
    return Array.from({ length: segments }, (_, segment) => {
      const found = this.#segment({ saleId, segment, generation });
      if (!found) return { segment, counters: undefined };
      const { left, seq, committed, taken, orders } = found;
      return { segment, counters: { left, seq, committed, taken, orders } };
    });
  }

  async recall(ref: SegmentRef, buyerIds: readonly string[]): Promise<Recall> {
    const segment = this.#segment(ref);
    if (!segment?.isPublished) throw new StaleGeneration(ref.saleId, ref.generation);
    return { committed: segment.committed, holdings: buyerIds.map((id) => segment.holding(id)) };
  }

  async readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]> {
    return positions.map((position) => {
      const segment = this.#segment(position);
      if (!segment) return { position, head: undefined, entries: [] };
      const { seq, tail, orders, state } = segment;
      const head = { seq, tail, orders, frozen: state === 'frozen' };
      return { position, head, entries: segment.entriesAfter(position.seq, maxEntries) };
    });
  }

  async advance(watermarks: readonly Watermark[]): Promise<void> {
    if (watermarks.length === 0) return;
    for (const w of watermarks) this.#segment(w)?.advance(w.seq, w.orders);
    this.#tell((events) => events.watermarks?.(watermarks));
  }

  async compensate(c: Compensation): Promise<void> {
    const segment = this.#segment(c);
    const sale = this.#sales.get(c.saleId);
    if (!segment || !sale?.record) throw new StaleGeneration(c.saleId, c.generation);
    segment.compensate(c.buyerId, c.orderId, c.units);
    if (c.units > 0) {
      sale.record = { ...sale.record, epoch: sale.record.epoch + 1 };
      this.#tell((events) => events.saleChanged?.(c.saleId));
    }
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

  #saleOf(saleId: string): MemorySale {
    const known = this.#sales.get(saleId);
    if (known) return known;
    const sale = { record: undefined, segments: new Map() };
    this.#sales.set(saleId, sale);
    return sale;
  }

  #segment({ saleId, segment, generation }: SegmentRef): MemorySegment | undefined {
    const found = this.#sales.get(saleId)?.segments.get(segment);
    return found?.generation === generation ? found : undefined;
  }

  #tell(event: (events: BackendEvents) => void): void {
    for (const events of this.#subscribers) event(events);
  }
}
