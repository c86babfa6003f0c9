import type { Outcome } from './contract.ts';
import { Fifo } from './fifo.ts';
import { DEADLINE_SWEEP_MS } from './limits.ts';
import { monotonicMs } from './monotonic.ts';
import type { Pending } from './pending.ts';

/**
 * Ends every purchase by its deadline. All purchases have the same time to live, so that they expire in the order in
 * which they came: one queue and one timer serve them all, where a timer each would cost more than the rest of the road.
 */
export class Deadlines {
  readonly #queue = new Fifo<Pending>();
  readonly #durable: boolean;
  #timer: NodeJS.Timeout | undefined;

  /** @param durable whether a taken order outlives this process, and may be called accepted */
  constructor(durable: boolean) {
    this.#durable = durable;
  }

  add(pending: Pending): void {
    this.#queue.push(pending);
    this.#timer ??= setInterval(() => this.#sweep(), DEADLINE_SWEEP_MS);
  }

  /** Purchases that are not settled yet, at most. */
  get size(): number {
    return this.#queue.length;
  }

  #sweep(): void {
    const now = monotonicMs();
    for (
      let head = this.#queue.peek();
      head && (head.settled || head.deadline <= now);
      head = this.#queue.peek()
    ) {
      this.#queue.shift();
      if (!head.settled) head.settle(this.#expired(head));
    }
    if (this.#queue.length === 0) this.stop();
  }

  #expired({ phase, orderId, quantity }: Pending): Outcome {
    if (phase === 'queued') return { code: 'busy' };
    if (phase === 'taken' && this.#durable) return { code: 'accepted', orderId, quantity };
    return { code: 'unknown' };
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
