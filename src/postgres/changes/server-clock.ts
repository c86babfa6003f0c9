import { monotonicMs } from '../../lib/monotonic.ts';

/** What was learned longer ago is not used. */
const MAX_AGE_MS = 60_000;
/** Two clocks move apart by less than this share of the time: NTP changes the speed of a clock by 0.05 % at most. */
const DRIFT = 0.001;
/** PGlite counts whole milliseconds. */
const RESOLUTION_MS = 1;

/**
 * What this process knows of the clock of a Postgres server, through one connection: how far it is ahead of this process' own, at
 * least. The server has shown its clock before its reply was read. So an error is always on the early side, but for a clock that was
 * set back since.
 */
export class ServerClock {
  #aheadMs = 0;
  #readAtMs = Number.NEGATIVE_INFINITY;

  get isKnown(): boolean {
    return monotonicMs() - this.#readAtMs <= MAX_AGE_MS;
  }

  /** @param shownMs what the server's clock has shown, in a reply that was read just now */
  learn(shownMs: number): void {
    this.#readAtMs = monotonicMs();
    this.#aheadMs = shownMs - this.#readAtMs;
  }

  forget(): void {
    this.#readAtMs = Number.NEGATIVE_INFINITY;
  }

  /** A time on the server's clock that comes before `ownMs` on the clock of this process. Only while the clock is known. */
  timeBefore(ownMs: number): number {
    const drift = Math.abs(ownMs - this.#readAtMs) * DRIFT;
    return ownMs + this.#aheadMs - drift - RESOLUTION_MS;
  }
}
