/**
 * Gives places in batches: what is asked for while a batch of a sale is under way goes with the next one.
 *
 *   asked ──> in the batch that grows ──the one before has ended, and the turn of the event loop──> under way ──> answered
 *                                   └──its time is over──> unavailable
 *
 * To repeat a request is always safe: a buyer keeps its place. So a batch without an answer is not repeated here, and a buyer that
 * was answered `unavailable` may have a place.
 */
import { Busy, StockadeError } from '../../engine/errors.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { TickScheduler } from '../../lib/tick-scheduler.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { LimitReached } from '../held-units.ts';
import type { Place, PlaceWish } from '../place.ts';
import { deferred } from './deferred.ts';

/** Wishes in one call of Postgres. */
const MAX_BATCH = 1_024;
/** Fewer are not worth two calls. */
const MIN_BATCH = 64;
/** Wishes of one sale that may wait in one worker: some seconds of work for Postgres. */
const MAX_WAITING = 32_768;

/** The buyer's place, or that with these units it could hold too many. */
export type Given = Place | LimitReached;

export interface PlaceLanesParts {
  /** What becomes of each wish, by buyer. A buyer is missing if the queue is full, off, or over. */
  readonly give: (saleId: string, wishes: readonly PlaceWish[]) => Promise<ReadonlyMap<string, Given>>;
  /** How long a buyer waits for its place at most, in milliseconds. */
  readonly deadlineMs: number;
  /** Called with the error of a batch that failed. */
  readonly fault: (error: unknown) => void;
  /** Wishes in one batch at most. Default MAX_BATCH. */
  readonly maxBatch?: number;
  /** Buyers of one sale that may wait. Default MAX_WAITING. */
  readonly maxWaiting?: number;
}

export class PlaceLanes {
  readonly #parts: PlaceLanesParts;
  readonly #lanes = new Map<string, PlaceLane>();
  readonly #turns = new TickScheduler();

  constructor(parts: PlaceLanesParts) {
    this.#parts = parts;
  }

  /**
   * The buyer's place: a new one, or the one that it has.
   * @param saleId of a sale that exists
   * @param waitMs how long this caller waits
   * @returns `undefined` if the queue is full, off, or over
   * @throws Busy if too many wait; StockadeError if there is no answer in time, or Postgres has failed
   */
  ask(saleId: string, wish: PlaceWish, waitMs = this.#parts.deadlineMs): Promise<Given | undefined> {
    const lane = this.#lanes.get(saleId) ?? this.#open(saleId);
    return withTimeout(waitMs, lane.ask(wish));
  }

  #open(saleId: string): PlaceLane {
    const lane = new PlaceLane(saleId, this.#parts, this.#turns, () => this.#lanes.delete(saleId));
    this.#lanes.set(saleId, lane);
    return lane;
  }
}

/** A buyer's wish. If it asks more than once, all are answered together. */
interface Waiting {
  readonly wish: PlaceWish;
  readonly since: number;
  readonly given: Promise<Given | undefined>;
  answer(given: Given | undefined): void;
  fail(error: Error): void;
}

class PlaceLane {
  readonly #saleId: string;
  readonly #parts: PlaceLanesParts;
  readonly #turns: TickScheduler;
  readonly #emptied: () => void;
  /** By buyer, in the order in which they came. A map from which items were deleted one by one keeps them (lib/linked-list.ts). */
  #waiting = new Map<string, Waiting>();
  #isRunning = false;

  /** @param emptied called when nobody waits, and nothing is under way */
  constructor(saleId: string, parts: PlaceLanesParts, turns: TickScheduler, emptied: () => void) {
    this.#saleId = saleId;
    this.#parts = parts;
    this.#turns = turns;
    this.#emptied = emptied;
  }

  ask(wish: PlaceWish): Promise<Given | undefined> {
    const known = this.#waiting.get(wish.buyerId);
    if (known) return known.given;
    if (this.#waiting.size >= (this.#parts.maxWaiting ?? MAX_WAITING))
      return Promise.reject(new Busy(`${this.#waiting.size} buyers wait for a place: try again later`));
    const waiting = waitingFor(wish);
    this.#waiting.set(wish.buyerId, waiting);
    if (!this.#isRunning) void this.#run();
    return waiting.given;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    await this.#turns.next();
    let answer = await this.#give(this.#next());
    while (this.#waiting.size > 0) {
      const giving = this.#give(this.#next());
      // In this turn the batch is sent. So Postgres works on it while this thread answers the one before.
      await this.#turns.next();
      answer();
      answer = await giving;
    }
    answer();
    this.#isRunning = false;
    this.#emptied();
  }

  #next(): Waiting[] {
    const batch: Waiting[] = [];
    const oldest = monotonicMs() - this.#parts.deadlineMs;
    const maxBatch = this.#batchSize();
    const later = new Map<string, Waiting>();
    for (const [buyerId, waiting] of this.#waiting) {
      if (batch.length === maxBatch) later.set(buyerId, waiting);
      // Nobody waits for the answer any more.
      else if (waiting.since < oldest) waiting.fail(new StockadeError('timed_out', 'no place in time'));
      else batch.push(waiting);
    }
    this.#waiting = later;
    return batch;
  }

  /** Half of those who wait, so that the others can be on their way to Postgres while these are answered. */
  #batchSize(): number {
    const half = Math.max(MIN_BATCH, Math.ceil(this.#waiting.size / 2));
    return Math.min(half, this.#parts.maxBatch ?? MAX_BATCH);
  }

  /** @returns what answers the batch */
  async #give(batch: readonly Waiting[]): Promise<() => void> {
    if (batch.length === 0) return () => {};
    try {
      const wishes = batch.map(({ wish }) => wish);
      const given = await withTimeout(this.#parts.deadlineMs, this.#parts.give(this.#saleId, wishes));
      return () => {
        for (const waiting of batch) waiting.answer(given.get(waiting.wish.buyerId));
      };
    } catch (error) {
      if (!(error instanceof StockadeError)) this.#parts.fault(error);
      const failed = new StockadeError('unavailable', 'places can’t be given now', { cause: error });
      return () => {
        for (const waiting of batch) waiting.fail(failed);
      };
    }
  }
}

function waitingFor(wish: PlaceWish): Waiting {
  const { promise, resolve, reject } = deferred<Given | undefined>();
  // The caller may have stopped waiting.
  promise.catch(() => {});
  return { wish, since: monotonicMs(), given: promise, answer: resolve, fail: reject };
}
