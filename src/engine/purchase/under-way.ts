import { LinkedList } from '../../lib/linked-list.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import type { Outcome, Purchase } from '../contract.ts';
import { DEADLINE_SWEEP_MS } from '../limits.ts';
import type { EngineEvents } from './events.ts';
import { LivePurchase, type PurchaseEnds } from './purchase.ts';

/**
 * The purchases of a worker that are not answered yet. Each is answered by its deadline at the latest.
 *
 * All purchases have the same time to live, so they expire in the order in which they came. One list, which keeps that order, and
 * one timer serve them all. A timer for each would cost more than the rest of a purchase. So would keeping settled purchases until
 * their deadline, because they would outlive the young generation of the heap.
 */
export class PurchasesUnderWay implements PurchaseEnds {
  readonly #purchases = new LinkedList<LivePurchase>();
  readonly #deadlineMs: number;
  readonly #durable: boolean;
  readonly #events: EngineEvents;
  #timer: NodeJS.Timeout | undefined;
  #whenIdle: (() => void)[] = [];

  /**
   * @param deadlineMs each purchase is answered within this time, in milliseconds
   * @param durable whether a taken order outlives this process, and may be called accepted
   */
  constructor(deadlineMs: number, durable: boolean, events: EngineEvents) {
    this.#deadlineMs = deadlineMs;
    this.#durable = durable;
    this.#events = events;
  }

  get size(): number {
    return this.#purchases.length;
  }

  /** Adds a purchase; its time to live begins. */
  begin(purchase: Purchase, done: (outcome: Outcome) => void): LivePurchase {
    const live = new LivePurchase(purchase, monotonicMs() + this.#deadlineMs, this, done);
    this.#purchases.push(live);
    this.#timer ??= setInterval(() => this.#sweep(), DEADLINE_SWEEP_MS);
    return live;
  }

  /** Answers the caller. An error that the caller throws must not reach the code that settles other purchases. */
  ended(purchase: LivePurchase, outcome: Outcome): void {
    this.#purchases.remove(purchase);
    try {
      purchase.done(outcome);
    } catch (error) {
      this.#events.onFault?.(error, purchase.saleId);
    }
    if (this.#purchases.length === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  /** Resolves when no purchase is under way. The caller must not let new ones come. */
  async idle(): Promise<void> {
    if (this.#purchases.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle.push(resolve);
    });
  }

  /** Call it when no purchase is under way. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #sweep(): void {
    const now = monotonicMs();
    for (let first = this.#purchases.first; first && first.deadline <= now; first = this.#purchases.first) {
      first.expire(this.#durable);
    }
    if (this.#purchases.length === 0) this.stop();
  }
}
