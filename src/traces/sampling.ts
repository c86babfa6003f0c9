/**
 * Decides which purchases are traced, before anything is made for a trace: a purchase that is not traced costs a random number.
 *
 * The buyers' port takes requests from everybody, so no client may make the node trace without limit. A client that says that it
 * traces is believed for a bounded number of purchases a second; beyond them the purchase counts as one without a trace of its
 * own. Shares are drawn by chance and not from the trace id, which the client chooses.
 */
import { monotonicMs } from '../lib/monotonic.ts';
import type { TraceSettings } from './settings.ts';

/** Purchases that are traced in one second, in one worker, for no other reason than that their clients trace them. */
export const MAX_ASKED_PER_SECOND = 1_000;
const SECOND_MS = 1_000;

export class Sampling {
  readonly #followsParent: boolean;
  readonly #share: number;
  readonly #random: () => number;
  readonly #now: () => number;
  #secondBegan = Number.NEGATIVE_INFINITY;
  #asked = 0;

  /** @param random from 0 to below 1 @param now in milliseconds, on a clock that never steps back */
  constructor(
    { sampler, share }: Pick<TraceSettings, 'sampler' | 'share'>,
    random: () => number = Math.random,
    now: () => number = monotonicMs,
  ) {
    this.#followsParent = sampler.startsWith('parentbased_');
    this.#share = sampler.endsWith('traceidratio') ? share : sampler.endsWith('always_on') ? 1 : 0;
    this.#random = random;
    this.#now = now;
  }

  /** @param parent whether the client traces the request; `undefined`: it does not say */
  isSampled(parent: boolean | undefined): boolean {
    if (parent !== undefined && this.#followsParent) {
      if (!parent) return false;
      if (this.#isWithinLimit()) return true;
    }
    return this.#random() < this.#share;
  }

  #isWithinLimit(): boolean {
    const now = this.#now();
    if (now - this.#secondBegan >= SECOND_MS) {
      this.#secondBegan = now;
      this.#asked = 0;
    }
    return ++this.#asked <= MAX_ASKED_PER_SECOND;
  }
}
