/**
 * The engine of one worker: takes a purchase from the request to its outcome (src/engine/contract.ts defines the terms).
 *
 *   sale known? ──> judge (refuse.ts) ──> lane of the home segment ──> commit
 *      (engine.ts)                           (live-sale.ts, lane.ts, settle.ts)
 *
 * The states of a purchase, and which files may change them, are in purchase.ts.
 */
import pLimit from 'p-limit';
import { TickScheduler } from '../../lib/tick-scheduler.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Board } from '../board/board.ts';
import type { Directory, SaleView } from '../board/directory.ts';
import type { Backend, Outcome, Purchase, SaleRecord, Watermark } from '../contract.ts';
import { isBusy } from '../errors.ts';
import { QUEUE_SHARE } from '../limits.ts';
import type { EngineEvents } from './events.ts';
import { LiveSale, type LiveSaleParts } from './live-sale.ts';
import { LogHints } from './log-hints.ts';
import type { LivePurchase } from './purchase.ts';
import { PurchaseResolver } from './purchase-resolver.ts';
import { type BuyersRecord, RecordLookup } from './record-lookup.ts';
import { type CheckToken, judge } from './refuse.ts';
import { PurchasesUnderWay } from './under-way.ts';

/** How many buyers' records are read at a time to find orders, over all requests. */
const PARALLEL_LOOKUPS = 16;

export interface EngineOptions extends EngineEvents {
  readonly backend: Backend;
  readonly directory: Directory;
  readonly board: Board;
  /** This worker's number, by which the backend tells its lanes from those of other workers. */
  readonly worker: number;
  /** @throws if this worker may not name orders now */
  readonly nextOrderId: () => string;
  /** A purchase is answered within this time, in milliseconds. */
  readonly requestDeadlineMs: number;
  /** Purchases that one lane may hold. */
  readonly laneCapacity: number;
  /** Checks the token of a purchase from a sale that requires one. Without it, tokens are not checked. */
  readonly checkToken?: CheckToken;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #underWay: PurchasesUnderWay;
  readonly #lookup: RecordLookup;
  readonly #parts: LiveSaleParts;
  readonly #sales = new Map<string, LiveSale>();
  readonly #lookups = pLimit(PARALLEL_LOOKUPS);
  #unsubscribe: (() => Promise<void>) | undefined;

  private constructor(options: EngineOptions) {
    const { backend, directory, board, worker, nextOrderId, requestDeadlineMs, laneCapacity } = options;
    const { takes, durable } = backend;
    const ticks = new TickScheduler();
    const lookup = new RecordLookup(backend.sales);
    this.#options = options;
    this.#underWay = new PurchasesUnderWay(requestDeadlineMs, durable, options);
    this.#lookup = lookup;
    this.#parts = {
      ...{ takes, durable, directory, board, worker, nextOrderId, laneCapacity, ticks },
      events: options,
      checkToken: options.checkToken,
      maxQueueMs: requestDeadlineMs * QUEUE_SHARE,
      hints: new LogHints(ticks, takes, options),
      resolver: new PurchaseResolver({ takes, lookup, events: options }),
    };
  }

  static async start(options: EngineOptions): Promise<Engine> {
    const engine = new Engine(options);
    options.directory.listen({
      changed: (view) => engine.#learn(view),
      gone: (saleId) => engine.#forget(saleId),
    });
    engine.#unsubscribe = await options.backend.subscribe({
      watermarks: (watermarks) => engine.#advance(watermarks),
      reconnected: () => {
        // The node's own connection may have stayed, so nobody else may have noticed.
        options.board.reopenAll();
        for (const sale of engine.#sales.values()) sale.check();
      },
      foreign: (error) => options.onForeign?.(error),
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
    if (!sale) return void this.#buyUnknown(this.#underWay.begin(purchase, done));
    const verdict = judge(purchase, sale);
    // Most purchases of a rush end here. They are not even counted as under way.
    if (verdict.refusal && verdict.isFinal) done(verdict.refusal);
    else sale.enter(this.#underWay.begin(purchase, done), verdict);
  }

  /**
   * Whether a purchase needs a token, or may have that of an offer, as far as this worker knows; true for a sale that it does not
   * know yet.
   */
  asksForToken(saleId: string): boolean {
    return this.#sales.get(saleId)?.asksForToken ?? true;
  }

  /** Whether any purchase of this sale would be answered `busy` now. Costs next to nothing. */
  isShedding(saleId: string): boolean {
    return this.#sales.get(saleId)?.isShedding === true;
  }

  /** The sale's record, if this worker knows the sale already. */
  knownRecord(saleId: string): SaleRecord | undefined {
    return this.#sales.get(saleId)?.record;
  }

  /** The sale's view, as a buyer may see it. */
  async view(saleId: string): Promise<SaleView | undefined> {
    const sale = await this.#find(saleId);
    return sale && { record: sale.record, slot: sale.slot };
  }

  /**
   * An order in the buyer's records of the sales that this worker knows; for orders too new for Postgres.
   * @param recordMs limit for reading each record, in milliseconds
   * @throws the error of a record that could not be read, if no other record has the order
   */
  async findOrder(
    buyerId: string,
    orderId: string,
    recordMs: number,
  ): Promise<{ saleId: string; quantity: number } | undefined> {
    let isFound = false;
    const find = async (sale: LiveSale) => {
      if (isFound) return undefined;
      const { orders } = await withTimeout(recordMs, this.#lookup.ask(sale.homeOf(buyerId), buyerId));
      const order = orders.find((held) => held.orderId === orderId);
      if (!order) return undefined;
      isFound = true;
      return { saleId: sale.record.sale.id, quantity: order.quantity };
    };
    return firstFound([...this.#sales.values()].map((sale) => this.#lookups(find, sale)));
  }

  /**
   * What the buyer holds in the sale, from the record in the home segment; `undefined`: no such sale.
   * @throws the backend's error
   */
  async recordOf(saleId: string, buyerId: string): Promise<BuyersRecord | undefined> {
    const sale = await this.#find(saleId);
    return sale && this.#lookup.ask(sale.homeOf(buyerId), buyerId);
  }

  /** By sale, for the metrics: purchases that are queued in its lanes or parked, and those that wait for their commit. */
  *laneDepths(): Generator<{ saleId: string; queued: number; waiting: number }> {
    for (const { record, lanes, parked } of this.#sales.values()) {
      let [queued, waiting] = [parked, 0];
      for (const lane of lanes) {
        queued += lane?.depth ?? 0;
        waiting += lane?.settlement.waiters.size ?? 0;
      }
      yield { saleId: record.sale.id, queued, waiting };
    }
  }

  /** Resolves when every purchase under way has been answered. The caller must not let new ones come. */
  idle(): Promise<void> {
    return this.#underWay.idle();
  }

  async close(): Promise<void> {
    await this.idle();
    this.#underWay.stop();
    for (const sale of this.#sales.values()) sale.close();
    await this.#unsubscribe?.();
  }

  /** The lookup counts against the purchase's deadline. Without a connection to the backend it would fail, so it is not tried. */
  async #buyUnknown(purchase: LivePurchase): Promise<void> {
    if (!this.#parts.takes.ready) return purchase.refuse({ code: 'unavailable' });
    try {
      const sale = await this.#find(purchase.saleId);
      if (!sale) purchase.refuse({ code: 'unknown_sale' });
      else if (!purchase.settled) sale.enter(purchase, judge(purchase, sale));
    } catch (error) {
      purchase.refuse({ code: isBusy(error) ? 'busy' : 'unavailable' });
    }
  }

  async #find(saleId: string): Promise<LiveSale | undefined> {
    if (!this.#sales.has(saleId)) await this.#options.directory.lookup(saleId);
    return this.#sales.get(saleId);
  }

  #learn(view: SaleView): void {
    const { id } = view.record.sale;
    const known = this.#sales.get(id);
    if (known) known.learn(view);
    else this.#sales.set(id, new LiveSale(this.#parts, view));
  }

  /** Purchases that are still under way in the sale keep it in memory until they are answered. */
  #forget(saleId: string): void {
    const sale = this.#sales.get(saleId);
    this.#sales.delete(saleId);
    sale?.end();
  }

  #advance(watermarks: readonly Watermark[]): void {
    for (const watermark of watermarks) this.#sales.get(watermark.saleId)?.advance(watermark);
  }
}

const NOT_FOUND = Symbol('not found');

/**
 * The first result that is not `undefined`. It does not wait for the other searches.
 * @throws the error of a search, if no search has a result
 */
async function firstFound<T>(searches: readonly Promise<T | undefined>[]): Promise<T | undefined> {
  try {
    return await Promise.any(searches.map(async (search) => (await search) ?? Promise.reject<T>(NOT_FOUND)));
  } catch (error) {
    const fault = (error as AggregateError).errors.find((each) => each !== NOT_FOUND);
    if (fault !== undefined) throw fault;
    return undefined;
  }
}
