/**
 * The engine of one worker: takes a purchase from the request to its outcome (src/engine/contract.ts has the words).
 *
 *   sale known? -> quantity within the limit? -> board: sold out? -> window, pause -> token -> lane of the home segment
 *
 * A purchase with an idempotency key may be the repetition of one that succeeded. So what this node alone would refuse
 * (sold out, ended, paused) is refused only after the buyer's record was asked whether it knows the key.
 */
import pLimit from 'p-limit';
import { monotonicMs } from '../../lib/monotonic.ts';
import { TickScheduler } from '../../lib/tick-scheduler.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Board } from '../board/board.ts';
import type { Directory, SaleView } from '../board/directory.ts';
import type { Backend, LogHint, Outcome, Purchase, Sale, TokenFault, Watermark } from '../contract.ts';
import { isBusy } from '../errors.ts';
import { QUEUE_SHARE } from '../limits.ts';
import { Deadlines } from './deadlines.ts';
import { isFinal } from './final-refusal.ts';
import { LiveSale, type LiveSaleHost } from './live-sale.ts';
import { LogHints } from './log-hints.ts';
import { Pending } from './pending.ts';
import { Repeats } from './repeats.ts';
import type { TakenOrder } from './uncommitted-orders.ts';

/** Buyers' records that are read side by side to find orders, for whatever many ask for theirs. */
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
  /** What is wrong with the token of a purchase from a sale that requires one. Missing: none is asked for. */
  readonly checkToken?: (purchase: Purchase, generation: number) => TokenFault | undefined;
  readonly onBatch?: (orders: number) => void;
  /** The sale has been built anew, and it is not known here whether these orders of its past are committed or lost. */
  readonly onOutlived?: (saleId: string, orders: readonly TakenOrder[]) => void;
  /** Must not throw. */
  readonly onFault?: (error: unknown, saleId: string, segment?: number) => void;
  /** As `BackendEvents.foreign`. */
  readonly onForeign?: (error: unknown) => void;
}

export class Engine {
  readonly #options: EngineOptions;
  readonly #deadlines: Deadlines;
  readonly #repeats: Repeats;
  readonly #hints: LogHints;
  readonly #turns = new TickScheduler();
  readonly #host: LiveSaleHost;
  readonly #sales = new Map<string, LiveSale>();
  readonly #recalls = pLimit(PARALLEL_RECALLS);
  #unsubscribe: (() => Promise<void>) | undefined;
  #inFlight = 0;
  #whenIdle: (() => void)[] = [];

  private constructor(options: EngineOptions) {
    this.#options = options;
    this.#deadlines = new Deadlines(options.backend.durable);
    this.#hints = new LogHints(
      () => this.#turns.next(),
      (hint) => this.#sendHint(hint),
    );
    this.#host = {
      takes: options.backend.takes,
      board: options.board,
      durable: options.backend.durable,
      worker: options.worker,
      laneCapacity: options.laneCapacity,
      maxQueueMs: options.requestDeadlineMs * QUEUE_SHARE,
      nextOrderId: options.nextOrderId,
      nextTurn: () => this.#turns.next(),
      taken: (saleId, segment, awaited) => this.#hints.grew(saleId, segment, awaited),
      outlived: (saleId, orders) => options.onOutlived?.(saleId, orders),
      stranded: (pendings, saleId, generation) => this.#sales.get(saleId)!.park(pendings, generation),
      outdated: (pendings, saleId) => this.#sales.get(saleId)!.letInAnew(pendings),
      enterAgain: (pending) => this.#enterAgain(pending),
      look: (saleId, generation) => void this.#look(saleId, generation),
      confirm: (pending) => void this.#repeats.confirm(this.#sales.get(pending.saleId)!, pending),
      refused: (pending, outcome) => {
        if (isFinal(outcome, pending)) pending.settle(outcome);
        else void this.#repeats.recall(this.#sales.get(pending.saleId)!, pending, outcome);
      },
      batchSent: (orders) => options.onBatch?.(orders),
      fault: (error, saleId, segment) => options.onFault?.(error, saleId, segment),
    };
    this.#repeats = new Repeats(options.backend.sales, this.#host);
  }

  static async start(options: EngineOptions): Promise<Engine> {
    const engine = new Engine(options);
    options.directory.onChange((view) => engine.#learn(view));
    engine.#unsubscribe = await options.backend.subscribe({
      watermarks: (watermarks) => engine.#advance(watermarks),
      reconnected: () => {
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
    if (!sale) return void this.#buyUnknown(this.#begin(purchase, done), purchase);
    const refusal = this.#refusal(sale, purchase);
    if (refusal && isFinal(refusal, purchase)) {
      done(refusal);
      return;
    }
    const barred = this.#bar(sale, purchase);
    if (barred && isFinal(barred, purchase)) {
      done(barred);
      return;
    }
    const pending = this.#begin(purchase, done);
    pending.barred = barred;
    pending.rules = sale.rules;
    this.#enter(sale, pending, refusal ?? barred);
  }

  /** Whether a purchase that comes now has to show a token: not if this worker knows that the sale wants none. */
  asksForToken(saleId: string): boolean {
    return this.#sales.get(saleId)?.record.sale.requireToken ?? true;
  }

  /** Whether a purchase of this sale would be answered `busy` now, whoever asks. Costs next to nothing. */
  isShedding(saleId: string): boolean {
    const sale = this.#sales.get(saleId);
    return sale?.isShedding === true && !this.#options.board.isSoldOut(sale.slot);
  }

  /** The sale's view, as a buyer may see it. */
  async view(saleId: string): Promise<SaleView | undefined> {
    const sale = await this.#find(saleId);
    return sale && { record: sale.record, slot: sale.slot };
  }

  /**
   * An order in the buyer's records of the sales that this worker knows; for orders too new for Postgres.
   * @param recordMs for reading each record
   * @throws what a record could not be read for, if the order is in none of the others
   */
  async findOrder(
    buyerId: string,
    orderId: string,
    recordMs: number,
  ): Promise<{ saleId: string; quantity: number } | undefined> {
    let order: { saleId: string; quantity: number } | undefined;
    let fault: { readonly error: unknown } | undefined;
    const look = async (sale: LiveSale) => {
      if (order) return;
      const held = await withTimeout(recordMs, this.#repeats.orderOf(sale, buyerId, orderId));
      if (held) order = { saleId: sale.record.sale.id, quantity: held.quantity };
    };
    await new Promise<void>((done) => {
      // Who has found it waits for no other.
      const looked = this.#recalls.map([...this.#sales.values()], (sale) =>
        look(sale).then(
          () => order && done(),
          (error: unknown) => {
            fault = { error };
          },
        ),
      );
      void looked.then(() => done());
    });
    if (order) return order;
    if (fault) throw fault.error;
    return undefined;
  }

  /** Purchases queued per lane, for the metrics. */
  *laneDepths(): Generator<{ saleId: string; queued: number; waiting: number }> {
    for (const { record, lanes, parked } of this.#sales.values()) {
      let [queued, waiting] = [parked, 0];
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
    for (const sale of this.#sales.values()) sale.close();
    await this.#unsubscribe?.();
  }

  #refusal({ record, slot }: LiveSale, { quantity, retake = false }: Purchase): Outcome | undefined {
    const { sale, state } = record;
    if (!Number.isInteger(quantity) || quantity < 1 || quantity > sale.perBuyerLimit) {
      return {
        code: 'invalid_request',
        detail: `quantity must be a whole number from 1 to ${sale.perBuyerLimit}`,
      };
    }
    if (!retake && this.#options.board.isSoldOut(slot)) return { code: 'sold_out' };
    if (state === 'closed') return { code: 'ended', endedAt: sale.endsAt };
    const outside = retake ? undefined : outsideWindow(sale);
    if (outside) return outside;
    if (state === 'paused') return { code: 'paused' };
    return undefined;
  }

  /**
   * What is asked of a purchase before anything is read for it. Once: one that was let in stays so, although the sale may be
   * built anew while it waits; unless the rules have changed.
   */
  #bar({ record }: LiveSale, purchase: Purchase): Outcome | undefined {
    const { checkToken } = this.#options;
    if (!record.sale.requireToken || purchase.retake || !checkToken) return undefined;
    if (!purchase.token) return { code: 'token_required' };
    const reason = checkToken(purchase, record.generation);
    return reason && { code: 'token_invalid', reason };
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
  async #buyUnknown(pending: Pending, purchase: Purchase): Promise<void> {
    if (!this.#host.takes.ready) return pending.settle({ code: 'unavailable' });
    try {
      const sale = await this.#find(pending.saleId);
      if (!sale) return pending.settle({ code: 'unknown_sale' });
      if (pending.settled) return;
      const refusal = this.#refusal(sale, pending);
      pending.barred = this.#bar(sale, purchase);
      pending.rules = sale.rules;
      if (refusal && isFinal(refusal, pending)) pending.settle(refusal);
      else if (pending.barred && isFinal(pending.barred, pending)) pending.settle(pending.barred);
      else this.#enter(sale, pending, refusal ?? pending.barred);
    } catch (error) {
      pending.settle({ code: isBusy(error) ? 'busy' : 'unavailable' });
    }
  }

  #enter(sale: LiveSale, pending: Pending, refusal: Outcome | undefined): void {
    if (sale.standsStill) this.#park(sale, pending);
    else if (refusal) void this.#repeats.recall(sale, pending, refusal);
    else sale.laneOf(pending.buyerId).push(pending);
  }

  /** Those who come while a sale stands still have the room of its lanes. */
  #park(sale: LiveSale, pending: Pending): void {
    const capacity = this.#options.laneCapacity * sale.lanes.length;
    if (!this.#host.takes.ready) pending.settle({ code: 'unavailable' });
    else if (sale.parked >= capacity) pending.settle({ code: 'busy' });
    else sale.park([pending], sale.record.generation);
  }

  /** What is in doubt may have been taken: only its home segment can say more. */
  #enterAgain(pending: Pending): void {
    if (pending.settled) return;
    const sale = this.#sales.get(pending.saleId)!;
    const hasOtherRules = pending.rules !== sale.rules;
    if (hasOtherRules) {
      pending.barred = this.#bar(sale, pending);
      pending.rules = sale.rules;
    }
    const refusal =
      pending.inDoubt && !hasOtherRules ? undefined : (this.#refusal(sale, pending) ?? pending.barred);
    if (!refusal) sale.laneOf(pending.buyerId).readmit(pending);
    // To ask for it again might take what the new rules refuse.
    else if (pending.inDoubt) pending.settle({ code: 'unknown' });
    else if (isFinal(refusal, pending)) pending.settle(refusal);
    else void this.#repeats.recall(sale, pending, refusal);
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
    if (known) {
      known.learn(view);
      return known;
    }
    const sale = new LiveSale(this.#host, view);
    this.#sales.set(id, sale);
    return sale;
  }

  async #look(saleId: string, generation: number): Promise<void> {
    try {
      const view = await this.#options.directory.refresh(saleId, generation);
      // A change within a generation is told by onChange, and what is told then may be newer than this answer.
      const known = this.#sales.get(saleId)?.record.generation ?? 0;
      if (view && view.record.generation > known) this.#learn(view);
    } catch {
      // The next message or poll will tell.
    }
  }

  #advance(watermarks: readonly Watermark[]): void {
    for (const watermark of watermarks) {
      this.#sales.get(watermark.saleId)?.lanes[watermark.segment]?.advance(watermark);
    }
  }

  #sendHint(hint: LogHint): void {
    try {
      this.#host.takes.hint(hint);
    } catch (error) {
      this.#options.onFault?.(error, hint.saleId);
    }
  }
}

function outsideWindow({ startsAt, endsAt }: Sale): Outcome | undefined {
  const now = Date.now();
  if (now < startsAt) return { code: 'not_started', startsAt };
  if (endsAt !== undefined && now >= endsAt) return { code: 'ended', endedAt: endsAt };
  return undefined;
}
