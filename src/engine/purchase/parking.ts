import { Fifo } from '../../lib/fifo.ts';
import type { LivePurchase } from './purchase.ts';

/**
 * After this time the purchases try their segments again, even without news: a message may have been lost, or data that was
 * missing in the backend may be back.
 */
export const PARKED_MAX_MS = 1_000;

/**
 * Holds purchases while their sale is rebuilt or resized, or has new rules that this worker does not know yet (rules.ts).
 * Meanwhile nothing is sent to the sale's segments.
 *
 *   empty ──a segment answers `stale`──> active ──the next generation, or PARKED_MAX_MS──> empty
 *         └──`outdated`──> active ──other rules, or PARKED_MAX_MS──> empty
 *
 * When it ends, all purchases that have not expired enter their lanes again. If those segments are stale too, they come back.
 */
export class Parking {
  readonly #waiting = new Fifo<LivePurchase>();
  readonly #timeUp: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** @param timeUp called when it has been active for PARKED_MAX_MS */
  constructor(timeUp: () => void) {
    this.#timeUp = timeUp;
  }

  get isActive(): boolean {
    return this.#timer !== undefined;
  }

  get size(): number {
    return this.#waiting.length;
  }

  add(purchase: LivePurchase): void {
    this.#timer ??= setTimeout(this.#timeUp, PARKED_MAX_MS);
    // Removes expired purchases, so that they do not pile up.
    while (this.#waiting.peek()?.settled) this.#waiting.shift();
    purchase.park();
    this.#waiting.push(purchase);
  }

  /** Ends the wait. @returns the purchases that have waited */
  end(): LivePurchase[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#waiting.drain();
  }
}
