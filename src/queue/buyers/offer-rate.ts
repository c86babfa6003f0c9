/** How fast a queue moves, from the offers of the last minute; and how long a place waits if it goes on like that. */
import type { SaleRecord } from '../../engine/contract.ts';
import type { QueueState } from '../queue-state.ts';

const WINDOW_MS = 60_000;
/** From a shorter time, nothing is estimated. */
const MIN_WINDOW_MS = 5_000;
/** From fewer offers, nothing is estimated. */
const MIN_OFFERS = 2;

export interface Estimate {
  readonly seconds: number;
  /** The standard error of `seconds`. */
  readonly errorSeconds: number;
}

interface Sample {
  readonly atMs: number;
  /** Offers made since the queue began. */
  readonly offers: number;
}

/** Whether offers are made, as far as units are there. The head tells of free units from the opening on. */
export function isMoving(
  { freeUnits, isStopped }: Pick<QueueState, 'freeUnits' | 'isStopped'>,
  { state }: Pick<SaleRecord, 'state'>,
): boolean {
  return freeUnits !== undefined && !isStopped && state === 'open';
}

export class OfferRate {
  #samples: Sample[] = [];

  /**
   * @param nowMs of a clock that is never set back
   * @param offers as counted since the queue began
   * @param isMoving whether offers are made now. If not, the time up to now says nothing about the time to come
   */
  note(nowMs: number, offers: number, isMoving: boolean): void {
    const last = this.#samples.at(-1);
    // A count that falls is that of another queue.
    if (!isMoving || (last && offers < last.offers)) this.#samples = [];
    if (!isMoving) return;
    this.#samples.push({ atMs: nowMs, offers });
    while (this.#samples[0]!.atMs < nowMs - WINDOW_MS) this.#samples.shift();
  }

  /**
   * How long until this number of further offers is made. Offers come in bursts, so the error has two sources: the rate is known from
   * one minute only, and the offers to come vary as those of that minute did.
   * @returns `undefined` if too little is known
   */
  until(offers: number): Estimate | undefined {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || !last) return undefined;
    const [windowS, made] = [(last.atMs - first.atMs) / 1_000, last.offers - first.offers];
    if (windowS * 1_000 < MIN_WINDOW_MS || made < MIN_OFFERS) return undefined;
    const rate = made / windowS;
    const seconds = offers / rate;
    const variance = this.#variancePerSecond(rate) * (seconds + seconds ** 2 / windowS);
    return { seconds: Math.ceil(seconds), errorSeconds: Math.ceil(Math.sqrt(variance) / rate) };
  }

  /** Of the number of offers: how far each step between two samples is from the mean. */
  #variancePerSecond(rate: number): number {
    let [squares, seconds] = [0, 0];
    for (let i = 1; i < this.#samples.length; i++) {
      const [before, after] = [this.#samples[i - 1]!, this.#samples[i]!];
      const s = (after.atMs - before.atMs) / 1_000;
      squares += (after.offers - before.offers - rate * s) ** 2;
      seconds += s;
    }
    return squares / seconds;
  }
}
