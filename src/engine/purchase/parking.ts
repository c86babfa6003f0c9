import { Fifo } from '../../lib/fifo.ts';
import type { LivePurchase } from './purchase.ts';

/**
 * The segments are asked again after this time, whatever was heard: a message may be lost, and what was missing in the
 * backend may be back as it was.
 */
export const PARKED_MAX_MS = 1_000;

/**
 * Where purchases wait while their sale is built anew (a rebuild, a resize), or has rules that this worker is still to hear of
 * (rules.ts): nothing is sent to its segments meanwhile.
 *
 *   empty ──a segment answers `stale`──> standing still ──the next generation, or PARKED_MAX_MS──> empty
 *         └──`outdated`──> standing still ──other rules, or PARKED_MAX_MS──> empty
 *
 * Then all that have not expired go to their lanes again; if those segments are stale too, they come back.
 */
export class Parking {
  readonly #waiting = new Fifo<LivePurchase>();
  readonly #timeUp: () => void;
  #timer: NodeJS.Timeout | undefined;

  /** @param timeUp it has lasted for PARKED_MAX_MS */
  constructor(timeUp: () => void) {
    this.#timeUp = timeUp;
  }

  get standsStill(): boolean {
    return this.#timer !== undefined;
  }

  get size(): number {
    return this.#waiting.length;
  }

  add(purchase: LivePurchase): void {
    this.#timer ??= setTimeout(this.#timeUp, PARKED_MAX_MS);
    // The expired must not pile up.
    while (this.#waiting.peek()?.settled) this.#waiting.shift();
    purchase.park();
    this.#waiting.push(purchase);
  }

  /** The sale does not stand still any more. @returns the purchases that have waited */
  end(): LivePurchase[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#waiting.drain();
  }
}
