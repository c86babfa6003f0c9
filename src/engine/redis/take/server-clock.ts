/**
 * How far the clock of a Redis server is ahead of `monotonicMs` of this process.
 *
 * The server reads its clock at some moment between the request and its reply. So each reading bounds the lead:
 *
 *   told - (when the reply came)  <=  lead  <=  told - (when the request was sent)
 *
 * `at` uses the greatest lower bound so far. So it is not later than what the server's clock shows, unless that clock was set back
 * since. If a new upper bound is below the lower bound, the clock was set back: then only the new reading counts. A step back that is
 * shorter than the round trip of the request is not noticed.
 */
export class ServerClock {
  #lead: number | undefined;

  /**
   * @param toldMs the server's clock, in milliseconds since 1970
   * @param askedMs when the request was sent, on the clock of `monotonicMs`
   * @param answeredMs when the reply came, on the same clock
   */
  read(toldMs: number, askedMs: number, answeredMs: number): void {
    if (this.#lead !== undefined && this.#lead > toldMs - askedMs) this.#lead = undefined;
    this.#atLeast(toldMs - answeredMs);
  }

  /** A reply told the server's clock, and it is not known when its request was sent. */
  told(toldMs: number, answeredMs: number): void {
    this.#atLeast(toldMs - answeredMs);
  }

  /**
   * @param ms a moment on the clock of `monotonicMs`
   * @returns what the server's clock shows at that moment at the earliest, in whole milliseconds since 1970; `undefined`: it was never
   * read
   */
  at(ms: number): number | undefined {
    return this.#lead === undefined ? undefined : Math.floor(ms + this.#lead);
  }

  #atLeast(lead: number): void {
    this.#lead = Math.max(lead, this.#lead ?? lead);
  }
}
