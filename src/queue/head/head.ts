/**
 * The head of all queues: one process of the shop, which makes the offers. The others stand by (events/sole-loop.ts).
 *
 * Its lock may be lost during a round, and it may take a moment to notice that. Two heads do no harm: they offer the same units to the
 * same places, and an offer to a place is made once (queue/offers.ts). Nothing is kept in memory that Postgres does not have.
 */
import pLimit from 'p-limit';
import type { Backend, Outcome, Purchase } from '../../engine/contract.ts';
import { unitsLeft } from '../../engine/sale/units-left.ts';
import { SoleLoop } from '../../events/sole-loop.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { type Database, rows } from '../../postgres/database.ts';
import type { SaleLocks } from '../../postgres/sale-locks.ts';
import { makeDraw, orderOf } from '../drawing.ts';
import { DrawnLine, FifoLine, type Line } from '../line.ts';
import { EVERYBODY, forgiveOutage, judgePresent, tidyPresence } from '../presence.ts';
import { NEAR_RANKS, type QueueState, readQueue } from '../queue-state.ts';
import { endAbsentees } from './absentees.ts';
import { beginOffers, settleOffers } from './begun-offers.ts';
import type { HeadEvents } from './head-events.ts';
import { offerUnits, type RoundOf } from './round.ts';
import { type Standing, writeAlive, writeStanding } from './standing.ts';
import { Turns } from './turns.ts';
import { type HeadMemory, type QueuedSale, readKnown, readWork, tellQuiet } from './work.ts';

/** From one round to the next. Units that come back wait for at most two of them. */
const EVERY_MS = 250;
/** While no sale has a queue, the head looks for one this often. Units of the first queue must not lie free for longer than a second. */
const IDLE_MS = 750;
/** Offers of one sale in one round, so that the other sales get their turn. */
const MAX_OFFERS = NEAR_RANKS;
/** Sales that are served at a time. */
const PARALLEL_SALES = 8;
/**
 * A round waits for one sale for at most this time, because somebody may have its rows locked. The sale is served again when it is
 * free, and the others do not wait for that.
 */
const SALE_WAIT_MS = 1_500;
/**
 * Each sale that a round has stopped waiting for holds a connection to Postgres, of which a process has five by default. From this
 * number of such sales on, a round begins only with sales that it finds unlocked, so that the number does not grow.
 */
const MAX_LATE_SALES = 2;
/** While there are queues, the head looks this often whether any is left, and which quiet ones are to be told of (work.ts). */
const LOOK_EVERY_MS = 500;
/** A sale that failed is not reported for this time, so that those that fail do not take the turns of all others. */
const REST_MS = 1_000;

export interface QueueHeadOptions {
  readonly db: Database;
  readonly backend: Backend;
  readonly locks: SaleLocks;
  readonly buy: (purchase: Purchase) => Promise<Outcome>;
  readonly events: HeadEvents;
}

export class QueueHead {
  readonly #options: QueueHeadOptions;
  readonly #loop: SoleLoop;
  /** When it looks again whether there are queues, while there are. */
  #looksAgainAt = 0;
  /** By sale: the order of the draw with this hash. */
  readonly #lines = new Map<string, { readonly entriesHash: string; readonly line: Line }>();
  /** By sale: when it failed last. */
  readonly #failedAt = new Map<string, number>();
  /** By sale: what is done for it now. */
  readonly #serving = new Map<string, Promise<boolean>>();
  /** How many of them the rounds no longer wait for. */
  #late = 0;
  /** By sale: the draw under way. */
  readonly #drawing = new Map<string, Promise<void>>();
  /**
   * By sale: the turns that have come, of which not all absent places are ended yet. Empty: all of them are. No entry: this head has not
   * looked yet.
   */
  readonly #turns = new Map<string, Turns>();

  constructor(options: QueueHeadOptions) {
    this.#options = options;
    this.#loop = new SoleLoop({
      locks: options.locks,
      name: ':queues',
      // Buyers wait for it, so it never waits for them.
      backpressure: { isLoadHigh: () => false, maxMs: 0 },
      step: (signal) => this.#step(signal),
      crashed: (error, retryMs) => options.events.crashed({ error, retryMs }),
    });
  }

  start(): void {
    this.#loop.start();
  }

  /** Ends after the round and the draws under way. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    // A round may begin a draw.
    await Promise.all(this.#serving.values());
    await Promise.all(this.#drawing.values());
  }

  /** @returns how long to rest */
  async #step(signal: AbortSignal): Promise<number> {
    if (!(await this.#lookForQueues())) return IDLE_MS;
    const { sales, isMore } = await readWork(this.#options.db, this.#memory());
    const idle = sales.filter(({ sale }) => !this.#serving.has(sale.id));
    const free = this.#late < MAX_LATE_SALES ? idle : await this.#unlockedOf(idle);
    const served = await pLimit(PARALLEL_SALES).map(
      free,
      (sale) => !signal.aborted && this.#serveInTime(sale),
    );
    return isMore || served.includes(true) ? 0 : EVERY_MS;
  }

  /** Looks now and then whether there are queues, forgets those that are gone, and tells of the quiet ones. */
  async #lookForQueues(): Promise<boolean> {
    const { db } = this.#options;
    const now = monotonicMs();
    if (now < this.#looksAgainAt) return true;
    const maps = [this.#lines, this.#turns, this.#failedAt];
    const { hasQueues, queued } = await readKnown(db, [...new Set(maps.flatMap((map) => [...map.keys()]))]);
    for (const map of maps) for (const saleId of map.keys()) if (!queued.has(saleId)) map.delete(saleId);
    if (!hasQueues) return false;
    await tellQuiet(db, this.#memory());
    this.#looksAgainAt = now + LOOK_EVERY_MS;
    return true;
  }

  #memory(): HeadMemory {
    const since = monotonicMs() - REST_MS;
    const failed = [...this.#failedAt].filter(([, at]) => at > since);
    return {
      unfinished: [...this.#turns].filter(([, turns]) => !turns.isEmpty).map(([saleId]) => saleId),
      drawn: [...this.#lines.keys()],
      resting: [...this.#serving.keys(), ...failed.map(([saleId]) => saleId)],
    };
  }

  /** @returns whether the next round is to follow at once */
  async #serveInTime(row: QueuedSale): Promise<boolean> {
    const saleId = row.sale.id;
    const serving = this.#serve(row).finally(() => this.#serving.delete(saleId));
    this.#serving.set(saleId, serving);
    return withTimeout(SALE_WAIT_MS, serving).catch(() => {
      this.#late++;
      void serving.then(() => this.#late--);
      return false;
    });
  }

  /**
   * The sales whose rows nobody has locked at this moment. Buyers who get places lock them too, for some milliseconds: such a sale may have
   * to wait for the next round.
   */
  async #unlockedOf(sales: readonly QueuedSale[]): Promise<QueuedSale[]> {
    const found = await rows<{ id: string }>(
      this.#options.db,
      'SELECT sale_id AS id FROM queues WHERE sale_id = ANY (?) FOR UPDATE SKIP LOCKED',
      [sales.map(({ sale }) => sale.id)],
    );
    const unlocked = new Set(found.map(({ id }) => id));
    return sales.filter(({ sale }) => unlocked.has(sale.id));
  }

  /** Never rejects. @returns whether the next round is to follow at once */
  async #serve(row: QueuedSale): Promise<boolean> {
    const saleId = row.sale.id;
    try {
      const state = await readQueue(this.#options.db, saleId);
      return state !== undefined && (await this.#round(row, state));
    } catch (error) {
      this.#failedAt.set(saleId, monotonicMs());
      this.#options.events.saleFailed({ saleId, error });
      return false;
    }
  }

  async #round(row: QueuedSale, state: QueueState): Promise<boolean> {
    const { db, backend, buy, events } = this.#options;
    const { sale, generation } = row;
    const { presenceSeconds, fit } = sale.queue!;
    const line = row.hasOpened ? this.#lineOf(row, state) : undefined;
    if (!line && !row.isDue) return false;
    const free = unitsLeft(await backend.sales.snapshot(sale.id, sale.segments, generation));
    // Before the line is known, or while the sale is being rebuilt, nobody's turn has come.
    if (!line || free === undefined) {
      if (row.isDue) await this.#reportAlive(row, state, free === undefined);
      return false;
    }
    const present = presenceSeconds === 0 ? EVERYBODY : await judgePresent(db, sale.id, presenceSeconds);
    const stillBegun = await settleOffers(db, sale.id);
    const isOpen = row.state === 'open';
    const round: RoundOf = {
      saleId: sale.id,
      queue: state,
      line,
      fit,
      present,
      free: { units: free, offers: isOpen ? mayOffer(state) : 0 },
      head: state.head,
      reach: state.reach,
      last: state.lastNumber,
      begun: isOpen ? stillBegun : new Set(),
    };
    const begin = (numbers: readonly number[]) => beginOffers(db, state, numbers);
    const made = await offerUnits({ db, buy, events, begin }, round);
    if (made.offers > 0) await settleOffers(db, sale.id);
    const isMore = await this.#endAbsentees(round, made.turns);
    const passes = fit === 'pass' && sale.perBuyerLimit > 1;
    await this.#report(row, state, { line, present, passes, made: made.offers, free: free - made.units });
    return made.offers === MAX_OFFERS || isMore;
  }

  /** @returns whether there are more */
  async #endAbsentees(round: RoundOf, turns: Turns): Promise<boolean> {
    const { db, events } = this.#options;
    const { saleId, fit, reach } = round;
    const known = this.#turns.get(saleId);
    if (known) turns.add(known);
    // The head before this one may have left places that are absent, up to the reach. At least one unit was free there.
    else turns.come(reach, fit === 'pass' ? 1 : undefined);
    const { absent, isMore } = await endAbsentees(db, { ...round, turns });
    if (absent > 0) events.passedOver({ saleId, absent, limited: 0 });
    this.#turns.set(saleId, isMore ? turns : new Turns());
    return isMore;
  }

  /** @returns `undefined` until the places are drawn, and the order is known */
  #lineOf({ sale }: QueuedSale, state: QueueState): Line | undefined {
    const { drawn } = state.draw;
    // Once it is drawn, the order stays, also if the sale is set to another order now.
    if (sale.queue!.order === 'fifo' && !drawn) return new FifoLine(sale.id);
    const known = this.#lines.get(sale.id);
    if (drawn && known?.entriesHash === drawn.entriesHash) return known.line;
    if (!this.#drawing.has(sale.id)) this.#drawing.set(sale.id, this.#drawAside(state));
    return undefined;
  }

  /** Many places take seconds. The other sales do not wait for that. */
  async #drawAside(state: QueueState): Promise<void> {
    const { db, events } = this.#options;
    const { saleId, draw } = state;
    const began = monotonicMs();
    try {
      const drawn = draw.drawn ?? (await makeDraw(db, state));
      if (!drawn) return;
      const line = new DrawnLine(saleId, await orderOf(draw.seed, drawn));
      this.#lines.set(saleId, { entriesHash: drawn.entriesHash, line });
      this.#turns.delete(saleId);
      if (!draw.drawn) events.drawn({ saleId, entries: drawn.entries, tookMs: monotonicMs() - began });
    } catch (error) {
      events.saleFailed({ saleId, error });
    } finally {
      this.#drawing.delete(saleId);
    }
  }

  /** Writes how the queue stands, for the nodes, which tell those who wait. */
  async #report(row: QueuedSale, state: QueueState, now: Standing): Promise<void> {
    if (now.made === 0 && !row.isDue) return;
    await this.#keepPresence(row);
    await writeStanding(this.#options.db, state, now);
  }

  /** Writes that there is a head, while there is nothing else to report. */
  async #reportAlive(row: QueuedSale, state: QueueState, isBeingRebuilt: boolean): Promise<void> {
    const { presenceSeconds } = row.sale.queue!;
    if (presenceSeconds > 0) await forgiveOutage(this.#options.db, row.sale.id, presenceSeconds);
    await this.#keepPresence(row);
    await writeAlive(this.#options.db, state, isBeingRebuilt);
  }

  async #keepPresence({ sale }: QueuedSale): Promise<void> {
    const { presenceSeconds } = sale.queue!;
    if (presenceSeconds > 0) await tidyPresence(this.#options.db, sale.id, presenceSeconds);
  }
}

/** How many offers may be begun in this round, as far as operators and MAX_OFFERS allow. */
function mayOffer({ isStopped, allowed, perMinute, pace }: QueueState): number {
  const most = isStopped ? allowed : perMinute === undefined ? MAX_OFFERS : Math.floor(pace);
  return Math.min(most, MAX_OFFERS);
}
