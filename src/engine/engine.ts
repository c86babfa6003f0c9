/**
 * The engine of one worker: takes a purchase from the request to its outcome (src/engine/contract.ts has the words).
 *
 *   sale known? -> quantity within the limit? -> board: sold out? -> window, pause -> lane of the home segment
 *
 * A purchase with an idempotency key may be the repetition of one that succeeded. So what this node alone would refuse
 * (sold out, ended, paused) is refused only after the buyer's record was asked whether it knows the key.
 */
import pLimit from 'p-limit';
import type { Board } from './board.ts';
import type { Backend, HeldOrder, Outcome, Purchase, SaleRecord, Watermark } from './contract.ts';
import { Deadlines } from './deadlines.ts';
import type { Directory, SaleView } from './directory.ts';
import { BackendCorrupt } from './errors.ts';
import { homeSegment } from './home-segment.ts';
import { Lane, type LaneHost, type LaneSale } from './lane.ts';
import { monotonicMs } from './monotonic.ts';
import { Pending } from './pending.ts';
import { Recaller } from './recaller.ts';
import { Turns } from './turns.ts';

/** Sales asked side by side for one buyer's order. */
const PARALLEL_RECALLS = 16;

export interface EngineOptions {
  readonly backend: Backend;
  readonly directory: Directory;
  readonly board: Board;
  /** This worker's number: names its lanes to the backend. */
  readonly worker: number;
  /** @throws if this worker may not name orders now */
  readonly nextOrderId: () => string;
  /** A purchase is answered within this time, in milliseconds. */
  readonly requestDeadlineMs: number;
  /** Purchases that one lane may hold. */
  readonly laneCapacity: number;
  readonly onBatch?: (orders: number) => void;
  /** Must not throw. */
  readonly onFault?: (error: unknown, saleId: string, segment?: number) => void;
}

/** A sale in this worker, with its lanes. The view is replaced when the sale changes. */
class LiveSale implements LaneSale {
  record: SaleRecord;
  slot: number;
  readonly lanes: (Lane | undefined)[];
  readonly refills = pLimit(1);
  readonly #host: LaneHost;

  constructor(host: LaneHost, view: SaleView) {
    this.#host = host;
    this.record = view.record;
    this.slot = view.slot;
    this.lanes = new Array(view.record.sale.segments);
  }

  laneOf(buyerId: string): Lane {
    const segment = homeSegment(buyerId, this.record.sale.segments);
    this.lanes[segment] ??= new Lane(this.#host, this, segment);
    return this.lanes[segment]!;
  }

  /** @returns the purchases that wait for a commit of an older generation */
  learn(view: SaleView): Pending[] {
    const { generation } = this.record;
    if (view.record.generation < generation) return [];
    this.record = view.record;
    this.slot = view.slot;
    if (view.record.generation === generation) return [];
    return this.lanes.flatMap((lane) => lane?.waiters.reset() ?? []);
  }
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #deadlines: Deadlines;
  readonly #recaller: Recaller;
  readonly #turns = new Turns();
  readonly #host: LaneHost;
  readonly #sales = new Map<string, LiveSale>();
  readonly #grown = new Map<string, { readonly segments: Set<number>; awaited: boolean }>();
  #unsubscribe: (() => Promise<void>) | undefined;
  #inFlight = 0;
  #whenIdle: (() => void)[] = [];

  private constructor(options: EngineOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.backend.durable);
    this.#recaller = new Recaller(options.backend.sales);
    this.#host = {
      takes: options.backend.takes,
      board: options.board,
      durable: options.backend.durable,
      worker: options.worker,
      laneCapacity: options.laneCapacity,
      nextOrderId: options.nextOrderId,
      nextTurn: () => this.#turns.next(),
      taken: (saleId, segment, awaited) => this.#hint(saleId, segment, awaited),
      stale: (saleId, generation) => this.#refresh(saleId, generation),
      confirm: (pending) => void this.#confirm(this.#sales.get(pending.saleId)!, pending),
      refused: (pending, outcome) => {
        if (isFinal(outcome, pending)) pending.settle(outcome);
        else void this.#recall(this.#sales.get(pending.saleId)!, pending, outcome);
      },
      batchSent: (orders) => options.onBatch?.(orders),
      fault: (error, saleId, segment) => options.onFault?.(error, saleId, segment),
    };
  }

  static async start(options: EngineOptions): Promise<Engine> {
    const engine = new Engine(options);
    options.directory.onChange((view) => engine.#learn(view));
    engine.#unsubscribe = await options.backend.subscribe({
      watermarks: (watermarks) => engine.#advance(watermarks),
    });
    return engine;
  }

  /** The purchase's outcome, within the request deadline. Never rejects. */
  purchase(purchase: Purchase): Promise<Outcome> {
    return new Promise((resolve) => this.buy(purchase, resolve));
  }

  /** As `purchase`, for callers who can't afford a promise per request. `done` may be called before `buy` returns. */
  buy(purchase: Purchase, done: (outcome: Outcome) => void): void {
    const sale = this.#sales.get(purchase.saleId);
    if (!sale) return void this.#buyUnknown(this.#begin(purchase, done));
    const refusal = this.#refusal(sale, purchase);
    if (refusal && isFinal(refusal, purchase)) {
      done(refusal);
      return;
    }
    this.#enter(sale, this.#begin(purchase, done), refusal);
  }

  /** The sale's view, as a buyer may see it. */
  async view(saleId: string): Promise<SaleView | undefined> {
    const sale = await this.#find(saleId);
    return sale && { record: sale.record, slot: sale.slot };
  }

  /** An order in the buyer's records of the sales that this worker knows; for orders too new for Postgres. */
  async findOrder(
    buyerId: string,
    orderId: string,
  ): Promise<{ saleId: string; quantity: number } | undefined> {
    const found = await pLimit(PARALLEL_RECALLS).map([...this.#sales.values()], async ({ record }) => {
      const { id: saleId, segments } = record.sale;
      const ref = { saleId, segment: homeSegment(buyerId, segments), generation: record.generation };
      const { orders } = await this.#recaller.ask(ref, buyerId);
      const order = orders.find((o) => o.orderId === orderId);
      return order && { saleId, quantity: order.quantity };
    });
    return found.find((order) => order !== undefined);
  }

  /** Purchases queued per lane, for the metrics. */
  *laneDepths(): Generator<{ saleId: string; queued: number; waiting: number }> {
    for (const { record, lanes } of this.#sales.values()) {
      let [queued, waiting] = [0, 0];
      for (const lane of lanes) {
        queued += lane?.depth ?? 0;
        waiting += lane?.waiters.size ?? 0;
      }
      yield { saleId: record.sale.id, queued, waiting };
    }
  }

  /** Resolves when every purchase under way has been answered. The caller sees to it that no more come. */
  async idle(): Promise<void> {
    if (this.#inFlight === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle.push(resolve);
    });
  }

  async close(): Promise<void> {
    await this.idle();
    this.#deadlines.stop();
    await this.#unsubscribe?.();
  }

  #refusal({ record, slot }: LiveSale, { quantity }: Purchase): Outcome | undefined {
    const { sale, state } = record;
    if (!Number.isInteger(quantity) || quantity < 1 || quantity > sale.perBuyerLimit) {
      return {
        code: 'invalid_request',
        detail: `quantity must be a whole number from 1 to ${sale.perBuyerLimit}`,
      };
    }
    if (this.#options.board.isSoldOut(slot)) return { code: 'sold_out' };
    if (state === 'closed') return { code: 'ended', endedAt: sale.endsAt };
    const now = Date.now();
    if (now < sale.startsAt) return { code: 'not_started', startsAt: sale.startsAt };
    if (sale.endsAt !== undefined && now >= sale.endsAt) return { code: 'ended', endedAt: sale.endsAt };
    if (state === 'paused') return { code: 'paused' };
    return undefined;
  }

  #begin(purchase: Purchase, done: (outcome: Outcome) => void): Pending {
    this.#inFlight++;
    const deadline = monotonicMs() + this.#options.requestDeadlineMs;
    const pending = new Pending(purchase, deadline, (outcome) => {
      this.#deadlines.remove(pending);
      this.#answer(pending, done, outcome);
      if (--this.#inFlight === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    });
    this.#deadlines.add(pending);
    return pending;
  }

  /** What a caller throws must not become the fate of the purchases beside his. */
  #answer({ saleId }: Pending, done: (outcome: Outcome) => void, outcome: Outcome): void {
    try {
      done(outcome);
    } catch (error) {
      this.#options.onFault?.(error, saleId);
    }
  }

  /** Its deadline runs while the sale is looked up. Without the backend there is nothing to look for. */
  async #buyUnknown(pending: Pending): Promise<void> {
    if (!this.#host.takes.ready) return pending.settle({ code: 'unavailable' });
    try {
      const sale = await this.#find(pending.saleId);
      if (!sale) return pending.settle({ code: 'unknown_sale' });
      if (pending.settled) return;
      const refusal = this.#refusal(sale, pending);
      if (refusal && isFinal(refusal, pending)) pending.settle(refusal);
      else this.#enter(sale, pending, refusal);
    } catch {
      pending.settle({ code: 'unavailable' });
    }
  }

  #enter(sale: LiveSale, pending: Pending, refusal: Outcome | undefined): void {
    if (refusal) void this.#recall(sale, pending, refusal);
    else sale.laneOf(pending.buyerId).push(pending);
  }

  /** Answers with what the key's order became, if the buyer's record knows the key; else with the refusal. */
  async #recall(sale: LiveSale, pending: Pending, refusal: Outcome): Promise<void> {
    const lane = sale.laneOf(pending.buyerId);
    const { generation } = sale.record;
    if (!this.#host.takes.ready) return pending.settle({ code: 'unavailable' });
    try {
      const ref = { saleId: pending.saleId, segment: lane.segment, generation };
      const { committed, orders } = await this.#recaller.ask(ref, pending.buyerId);
      const order = orders.find((o) => o.key === pending.key);
      if (!order) pending.settle(refusal);
      else if (order.quantity !== pending.quantity) pending.settle(mismatch(order));
      else lane.replayed(pending, order, committed, generation);
    } catch {
      pending.settle({ code: 'unavailable' });
    }
  }

  async #find(saleId: string): Promise<LiveSale | undefined> {
    const known = this.#sales.get(saleId);
    if (known) return known;
    const view = await this.#options.directory.lookup(saleId);
    return view && this.#learn(view);
  }

  #learn(view: SaleView): LiveSale {
    const { id } = view.record.sale;
    const known = this.#sales.get(id);
    if (!known) this.#sales.set(id, new LiveSale(this.#host, view));
    for (const pending of known?.learn(view) ?? []) void this.#confirm(known!, pending);
    return this.#sales.get(id)!;
  }

  /**
   * No watermark can settle the purchase: the sale was built anew from Postgres while it waited, or its log entry is not
   * the one that was committed. The buyer's record holds the order, if the backend has not lost it.
   */
  async #confirm(sale: LiveSale, pending: Pending): Promise<void> {
    pending.phase = 'sent';
    const lane = sale.laneOf(pending.buyerId);
    const { generation } = sale.record;
    try {
      const ref = { saleId: pending.saleId, segment: lane.segment, generation };
      const { committed, orders } = await this.#recaller.ask(ref, pending.buyerId);
      const order = orders.find((o) => o.orderId === pending.orderId);
      if (order) return lane.replayed(pending, order, committed, generation);
      pending.settle({ code: 'unavailable' });
      // The order of a repeated purchase may have been given back meanwhile. Of a loss, he is told who took it.
      if (pending.entry === '') return;
      const lost = new BackendCorrupt(`order ${pending.orderId} was taken, and the backend has lost it`);
      this.#options.onFault?.(lost, pending.saleId, lane.segment);
    } catch {
      // The sale is being built anew, or the backend is away.
      if (sale.record.generation === generation) lane.waiters.doubt(pending);
      else void this.#confirm(sale, pending);
    }
  }

  async #refresh(saleId: string, generation: number): Promise<void> {
    try {
      const view = await this.#options.directory.refresh(saleId, generation);
      if (view) this.#learn(view);
    } catch {
      // The lane works with what it knows.
    }
  }

  #advance(watermarks: readonly Watermark[]): void {
    for (const watermark of watermarks) {
      this.#sales.get(watermark.saleId)?.lanes[watermark.segment]?.advance(watermark);
    }
  }

  /** One hint per sale and turn of the event loop; it leaves together with the takes of that turn. */
  #hint(saleId: string, segment: number, awaited: boolean): void {
    const grown = this.#grown.get(saleId);
    if (grown) {
      grown.segments.add(segment);
      grown.awaited ||= awaited;
    } else {
      if (this.#grown.size === 0) void this.#turns.next().then(() => this.#sendHints());
      this.#grown.set(saleId, { segments: new Set([segment]), awaited });
    }
  }

  #sendHints(): void {
    const grown = [...this.#grown];
    this.#grown.clear();
    for (const [saleId, { segments, awaited }] of grown) {
      try {
        this.#host.takes.hint({ saleId, segments: [...segments], awaited });
      } catch (error) {
        this.#options.onFault?.(error, saleId);
      }
    }
  }
}

/** Whether the refusal is the answer, whatever the buyer's record knows of the key. */
function isFinal(refusal: Outcome, { key }: Purchase): boolean {
  return key === '' || refusal.code === 'invalid_request';
}

function mismatch({ orderId, quantity }: HeldOrder): Outcome {
  return { code: 'idempotency_mismatch', orderId, quantity };
}
