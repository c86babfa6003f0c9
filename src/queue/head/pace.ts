/** How many offers may be made by now, if an operator has set a pace. */
export class Pace {
  #atMs: number | undefined;
  #allowed = 0;

  /** @param perMinute offers in a minute @param nowMs of a clock that is never set back */
  allowed(perMinute: number, nowMs: number): number {
    const gone = this.#atMs === undefined ? 0 : nowMs - this.#atMs;
    this.#atMs = nowMs;
    // What was not used in a second is lost: otherwise a lull would be followed by a rush.
    const most = Math.max(1, perMinute / 60);
    this.#allowed = Math.min(most, this.#allowed + (gone * perMinute) / 60_000);
    return Math.floor(this.#allowed);
  }

  used(offers: number): void {
    this.#allowed -= offers;
  }
}
