// How fast a sale sells, from pictures in turn. The units are those of the whole shop, so the rate is too.
/** The rate is that of this time, or a bit more. */
const WINDOW_MS = 5_000;
/** Over less time a rate says nothing. */
const MIN_MS = 500;
/** After such a pause the units say nothing about now: the page was hidden, or the node away. */
const PAUSE_MS = 10_000;

export class SoldRate {
  #seen = [];

  /**
   * @param {number | undefined} sold units sold, as of the newest picture
   * @param {number} ageMs how old that figure is
   * @returns units per second over the last seconds; undefined while that can't be told
   */
  add(sold, ageMs = 0) {
    // What is told after a gap may have been sold before it.
    if (sold === undefined) this.#seen = [];
    if (sold === undefined) return undefined;
    if (ageMs >= PAUSE_MS) return undefined;
    const now = performance.now() - ageMs;
    const last = this.#seen.at(-1);
    if (last && now - last.now >= PAUSE_MS) this.#seen = [];
    this.#seen.push({ sold, now });
    while (this.#seen.length > 2 && now - this.#seen[1].now >= WINDOW_MS) this.#seen.shift();
    const first = this.#seen[0];
    if (now - first.now < MIN_MS) return undefined;
    return Math.max(0, ((sold - first.sold) * 1_000) / (now - first.now));
  }
}
