import { monotonicMs } from '../../lib/monotonic.ts';
import type { Outcome } from '../contract.ts';
import { DEADLINE_SWEEP_MS } from '../limits.ts';
import type { Pending } from './pending.ts';

/**
 * Ends every purchase by its deadline. All purchases have the same time to live, so that they expire in the order in
 * which they came: one set, which remembers that order, and one timer serve them all. A timer each would cost more than
 * the rest of the road; so would keeping the settled ones until their time, because they would outlive the young
 * generation.
 */
export class Deadlines {
  readonly #pending = new Set<Pending>();
  readonly #durable: boolean;
  #timer: NodeJS.Timeout | undefined;

  /** @param durable whether a taken order outlives this process, and may be called accepted */
  constructor(durable: boolean) {
    this.#durable = durable;
  }

  add(pending: Pending): void {
    this.#pending.add(pending);
    this.#timer ??= setInterval(() => this.#sweep(), DEADLINE_SWEEP_MS);
  }

  /** The purchase is settled. */
  remove(pending: Pending): void {
    this.#pending.delete(pending);
  }

  /** Purchases that are not settled yet. */
  get size(): number {
    return this.#pending.size;
  }

  #sweep(): void {
    const now = monotonicMs();
    for (const pending of this.#pending) {
      if (pending.deadline > now) break;
      this.#pending.delete(pending);
      pending.settle(this.#expired(pending));
    }
    if (this.#pending.size === 0) this.stop();
  }

  #expired({ phase, orderId, quantity }: Pending): Outcome {
    if (phase === 'queued') return { code: 'busy' };
    if (phase === 'parked') return { code: 'unavailable' };
    if (phase === 'taken' && this.#durable) return { code: 'accepted', orderId, quantity };
    return { code: 'unknown' };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
