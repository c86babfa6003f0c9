/**
 * A lane: the bounded queue of one worker in front of one segment, in one generation. One batch is under way at a time;
 * purchases that arrive meanwhile are the next batch. A batch starts in the turn of the event loop after its first purchase,
 * so it holds all purchases that one turn has read. The batches of all lanes start together and leave in one write
 * (tick-scheduler.ts).
 *
 *   queue ──next turn──> batch ──attempt──> settled (settle.ts)
 *                          ^        ├──reply lost, short of stock──┐
 *                          └────────────────────────────────────────┘
 *                                   └──left without an answer: returned to the sale, which runs the lane
 *
 * A lane does not run itself: `push` and `check` leave work in it, and `run`, called by live-sale.ts, does that work.
 *
 * When the connection to the store was lost, the store may have lost orders that it had confirmed to this lane. To find that out
 * even if no further purchase comes, the lane then sends an empty take: as in any take, the segment compares what it has with
 * what the lane was told.
 *
 * When the sale has been rebuilt, its lanes are retired: no purchase enters them any more, their queues are handed over, and
 * purchases under way are settled or leave when the reply arrives.
 */

import { Fifo } from '../../lib/fifo.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import type { TickScheduler } from '../../lib/tick-scheduler.ts';
import type { Board } from '../board/board.ts';
import type { Watermark } from '../contract.ts';
import { NotExecuted, OutcomeUnknown } from '../errors.ts';
import { LEAST_TIME_TO_TAKE_MS, MAX_BATCH_ORDERS } from '../limits.ts';
import { NO_RULES } from '../sale/rules.ts';
import { type LivePurchase, NO_PURCHASES } from './purchase.ts';
import { isRefusedWhenSoldOut } from './refuse.ts';
import {
  type AttemptReply,
  type HandedBack,
  type SaleNow,
  Settlement,
  type SettlementParts,
} from './settle.ts';
import { TakeAttempts, type TakeAttemptsParts } from './take-attempts.ts';

/** Pause before an unconfirmed batch is sent again although the store can be reached. */
const UNCONFIRMED_PAUSE_MS = 20;

/**
 * A purchase is sent only if its remaining time is at least this many times as long as the last attempt took. Otherwise, in a crowd
 * that has little time left, the first purchase of each batch might make the whole batch late.
 */
const TIME_FOR_ATTEMPT = 1.25;

/** What the lanes of a worker share. */
export interface LaneParts extends TakeAttemptsParts, SettlementParts {
  readonly board: Board;
  readonly ticks: TickScheduler;
  /** Purchases that a lane may hold. */
  readonly laneCapacity: number;
  /** New purchases are refused while the head of the queue has waited longer than this, in milliseconds. */
  readonly maxQueueMs: number;
  /** @throws if this worker may not name orders now */
  readonly nextOrderId: () => string;
}

export interface LaneSale extends SaleNow {
  /** Runs one refill of the sale at a time. A refill reads all segments, so its result may make the next one unnecessary. */
  readonly refills: <T>(work: () => Promise<T>) => Promise<T>;
}

export class Lane {
  readonly settlement: Settlement;
  readonly #parts: LaneParts;
  readonly #sale: LaneSale;
  readonly #segments: number;
  readonly #attempts: TakeAttempts;
  readonly #queue = new Fifo<LivePurchase>();
  /** The purchases of the batch under way that are not settled yet. */
  #batch: readonly LivePurchase[] = NO_PURCHASES;
  /** The batch was served, and the segment was short of units for the rest of it: the next attempt comes with a refill. */
  #isShort = false;
  /** How long the last answered attempt took, in milliseconds. */
  #attemptMs = 0;
  #isRunning = false;
  #isShedding = false;
  /** The store may have lost orders that it confirmed to this lane, and must be asked. */
  #mayHaveLost = false;

  /** Makes a lane of the sale's present generation. */
  constructor(parts: LaneParts, sale: LaneSale, segment: number) {
    const { sale: definition, generation } = sale.record;
    const place = { saleId: definition.id, segment, generation };
    this.#parts = parts;
    this.#sale = sale;
    this.#segments = definition.segments;
    this.#attempts = new TakeAttempts(parts, place);
    this.settlement = new Settlement(parts, sale, place);
  }

  get depth(): number {
    return this.#queue.length;
  }

  /** A purchase was refused because the lane was full, and none has left the queue since: the next one would be refused too. */
  get isShedding(): boolean {
    return this.#isShedding;
  }

  /** Whether `run` must be called: there is work, and no `run` is under way. */
  get isWaiting(): boolean {
    return !this.#isRunning && this.#hasWork;
  }

  push(purchase: LivePurchase): void {
    if (!this.#parts.takes.ready) purchase.refuse({ code: 'unavailable' });
    else if (this.#isFull) {
      this.#isShedding = true;
      purchase.refuse({ code: 'busy' });
    } else this.readmit(purchase);
  }

  /** Queues a purchase that was in a lane before, even if this lane is full: it was let in once. */
  readmit(purchase: LivePurchase): void {
    purchase.queuedAt = monotonicMs();
    this.#queue.push(purchase);
  }

  /** Call it when the store is connected again. If it may have lost orders of this lane, the next `run` asks it. */
  check(): void {
    if (!this.settlement.isRetired && this.settlement.hasUncommitted) this.#mayHaveLost = true;
  }

  /** Empties the queue. @returns its purchases */
  drain(): LivePurchase[] {
    this.#isShedding = false;
    return this.#queue.drain();
  }

  /** @returns the purchases that must be checked */
  advance(watermark: Watermark): readonly LivePurchase[] {
    const toCheck = this.settlement.advance(watermark);
    if (!this.#isRunning) this.settlement.waiters.forget();
    return toCheck;
  }

  /**
   * Serves the queue until it is empty, or until purchases leave without an answer. Never rejects.
   * @returns the purchases that leave. If there are any, call `run` again; otherwise there is no more work
   */
  async run(): Promise<readonly HandedBack[]> {
    const handedBack: HandedBack[] = [];
    if (this.#isRunning) return handedBack;
    this.#isRunning = true;
    try {
      while (handedBack.length === 0 && this.#hasWork) {
        if (this.#batch.length > 0) await this.#attempt(handedBack);
        else {
          await this.#parts.ticks.next();
          this.#makeBatch(handedBack);
          if (this.#batch.length === 0 && this.#mayHaveLost) await this.#askForLosses(handedBack);
        }
      }
    } catch (error) {
      // This is a bug. Deadlines answer the remaining purchases, and the next purchase runs the lane again.
      this.settlement.fault(error);
    }
    this.#isRunning = false;
    if (handedBack.length === 0) {
      this.#isShedding = false;
      this.settlement.waiters.forget();
    }
    return handedBack;
  }

  get #hasWork(): boolean {
    return this.#batch.length > 0 || this.#queue.length > 0 || this.#mayHaveLost;
  }

  get #isFull(): boolean {
    const first = this.#queue.peek();
    if (!first) return false;
    const { laneCapacity, maxQueueMs } = this.#parts;
    return this.#queue.length >= laneCapacity || monotonicMs() - first.queuedAt > maxQueueMs;
  }

  /** Sends an empty take. The segment then checks whether it has lost writes; if it has, it stops selling and is rebuilt. */
  async #askForLosses(handedBack: HandedBack[]): Promise<void> {
    this.#mayHaveLost = false;
    try {
      await this.#attempts.take([]);
    } catch (error) {
      if (error instanceof NotExecuted || error instanceof OutcomeUnknown)
        handedBack.push({ why: 'unchecked' });
      else this.settlement.fault(error);
    }
  }

  /** Makes the next batch from the head of the queue. Purchases with other rules than the sale's are handed back. */
  #makeBatch(handedBack: HandedBack[]): void {
    const batch: LivePurchase[] = [];
    const outdated: LivePurchase[] = [];
    const { rules = NO_RULES } = this.#sale.record;
    this.#isShedding = false;
    const isSoldOut = this.#parts.board.isSoldOut(this.#sale.slot);
    while (batch.length < MAX_BATCH_ORDERS) {
      const purchase = this.#queue.shift();
      if (!purchase) break;
      if (purchase.settled) continue;
      if (isSoldOut && isRefusedWhenSoldOut(purchase)) purchase.refuse({ code: 'sold_out' });
      else if (purchase.rules !== rules) outdated.push(purchase);
      else if (this.#name(purchase)) batch.push(purchase);
    }
    if (outdated.length > 0) handedBack.push({ why: 'outdated', purchases: outdated });
    this.#batch = batch;
    this.#isShort = false;
  }

  /** Gives the order its id, once. A worker without a valid lease of its number must not name orders. */
  #name(purchase: LivePurchase): boolean {
    try {
      if (purchase.orderId === '') purchase.name(this.#parts.nextOrderId());
      return true;
    } catch (error) {
      purchase.refuse({ code: 'unavailable' });
      this.settlement.fault(error);
      return false;
    }
  }

  /** Sends the batch. Purchases that are neither settled by the reply nor leave the lane stay in the batch for the next attempt. */
  async #attempt(handedBack: HandedBack[]): Promise<void> {
    const asked = this.#inTime();
    if (asked.length === 0) return;
    const began = monotonicMs();
    try {
      if (this.settlement.isRetired) {
        this.#batch = NO_PURCHASES;
        this.settlement.handBack('stale', asked, handedBack);
        return;
      }
      const answer = this.#isShort ? await this.#refill(asked) : { reply: await this.#attempts.take(asked) };
      if (answer) {
        this.#attemptMs = monotonicMs() - began;
        this.#batch = this.settlement.onReply(asked, answer, this.#attempts.mark, handedBack);
        if (answer.reply.status === 'served') this.#isShort = true;
      }
    } catch (error) {
      this.settlement.onNoReply(asked, error, this.#attempts.mark);
      await this.#pause();
    }
    this.#batch = this.#unsettled(this.#batch);
  }

  /**
   * Takes those purchases out of the batch that have too little time left. Nothing of an unsent one is on its way, so it is answered at
   * once. The others wait for their deadlines: until then the segment may still execute an earlier attempt.
   * @returns the batch
   */
  #inTime(): readonly LivePurchase[] {
    const needed = Math.max(LEAST_TIME_TO_TAKE_MS, TIME_FOR_ATTEMPT * this.#attemptMs);
    // At most the longest wait in the queue is demanded. So a purchase that has just come is always sent, however long the last attempt
    // took.
    const soon = monotonicMs() + Math.min(needed, this.#parts.maxQueueMs);
    const isLate = (purchase: LivePurchase) => purchase.deadline < soon;
    if (!this.#batch.some(isLate)) return this.#batch;
    const inTime: LivePurchase[] = [];
    for (const purchase of this.#batch) {
      if (!isLate(purchase)) inTime.push(purchase);
      else if (purchase.isUnsent) purchase.expire(this.#parts.durable);
    }
    this.#batch = inTime;
    return inTime;
  }

  #unsettled(purchases: readonly LivePurchase[]): readonly LivePurchase[] {
    return purchases.length === 0 ? NO_PURCHASES : purchases.filter((purchase) => !purchase.settled);
  }

  /** @returns `undefined` if nothing was sent, because some purchases were settled while they waited; the next attempt sends the rest */
  #refill(asked: readonly LivePurchase[]): Promise<AttemptReply | undefined> {
    return this.#sale.refills(async () => {
      if (this.settlement.isRetired) return undefined;
      if (this.#parts.board.isSoldOut(this.#sale.slot)) {
        for (const purchase of asked)
          if (isRefusedWhenSoldOut(purchase)) purchase.refuse({ code: 'sold_out' });
      }
      const open = this.#unsettled(asked);
      return open.length === asked.length ? this.#refillAndTake(asked) : undefined;
    });
  }

  async #refillAndTake(asked: readonly LivePurchase[]): Promise<AttemptReply> {
    const began = monotonicMs();
    const refilled = await this.#attempts.refillAndTake(asked, this.#segments);
    if (refilled.status === 'stale') return { reply: refilled };
    const { take: reply, total, epoch } = refilled;
    // Read after the reply: the slot that the sale had before may belong to another one by now.
    const { slot } = this.#sale;
    if (total === 0 && !this.settlement.isRetired) this.#parts.board.close(slot, epoch, began);
    return { reply, total };
  }

  /** Waits before unconfirmed purchases are sent again: until the store is connected, then for a pause. */
  async #pause(): Promise<void> {
    const unconfirmed = this.#unsettled(this.#batch);
    if (unconfirmed.length === 0) return;
    const last = Math.max(...unconfirmed.map((purchase) => purchase.deadline));
    const { takes } = this.#parts;
    if (!takes.ready) await takes.whenReady(Math.max(0, last - monotonicMs()));
    await new Promise((resolve) => setTimeout(resolve, UNCONFIRMED_PAUSE_MS));
  }
}
