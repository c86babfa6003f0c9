import { monotonicMs } from '../../lib/monotonic.ts';
import type { Outcome, Purchase } from '../contract.ts';
import { DEADLINE_SWEEP_MS } from '../limits.ts';
import type { EngineEvents } from './events.ts';
import { LivePurchase, type PurchaseEnds } from './purchase.ts';

/**
 * The purchases of a worker that are not answered yet. Each is answered by its deadline at the latest.
 *
 * All purchases have the same time to live, so they expire in the order in which they came: one set, which remembers that
 * order, and one timer serve them all. A timer each would cost more than the rest of the road; so would keeping the settled
 * ones until their time, because they would outlive the young generation.
 */
export class PurchasesUnderWay implements PurchaseEnds {
  readonly #purchases = new Set<LivePurchase>();
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
    return this.#purchases.size;
  }

  /** Its time begins. */
  begin(purchase: Purchase, done: (outcome: Outcome) => void): LivePurchase {
    const live = new LivePurchase(purchase, monotonicMs() + this.#deadlineMs, this, done);
    this.#purchases.add(live);
    this.#timer ??= setInterval(() => this.#sweep(), DEADLINE_SWEEP_MS);
    return live;
  }

  /** What a caller throws must not become the fate of the purchases beside its own. */
  ended(purchase: LivePurchase, outcome: Outcome): void {
    this.#purchases.delete(purchase);
    try {
      purchase.done(outcome);
    } catch (error) {
      this.#events.onFault?.(error, purchase.saleId);
    }
    if (this.#purchases.size === 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
  }

  /** Resolves when none is under way. The caller sees to it that no more come. */
  async idle(): Promise<void> {
    if (this.#purchases.size === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle.push(resolve);
    });
  }

  /** When none is under way. */
  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #sweep(): void {
    const now = monotonicMs();
    for (const purchase of this.#purchases) {
      if (purchase.deadline > now) break;
      purchase.expire(this.#durable);
    }
    if (this.#purchases.size === 0) this.stop();
  }
}
