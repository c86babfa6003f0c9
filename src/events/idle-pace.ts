/**
 * How long the relay rests after it has found nothing. While there are events, the next one waits for IDLE_MS at most. If there
 * was none for QUIET_AFTER_MS, the relay looks less often, because each look costs a statement of Postgres.
 */

const IDLE_MS = 100;
/** An event of an idle shop waits for this long at most in each of the two loops. */
const QUIET_MS = 250;
const QUIET_AFTER_MS = 10_000;

export class IdlePace {
  #foundAtMs: number;

  /** It begins as after an event. */
  constructor(nowMs: number) {
    this.#foundAtMs = nowMs;
  }

  /**
   * @param restMs how long a step that has found something asks to rest, in milliseconds; `undefined`: it has found nothing
   * @returns how long to rest, in milliseconds
   */
  restMs(restMs: number | undefined, nowMs: number): number {
    if (restMs === undefined) return nowMs - this.#foundAtMs < QUIET_AFTER_MS ? IDLE_MS : QUIET_MS;
    this.#foundAtMs = nowMs;
    return restMs;
  }
}
