/**
 * When sync lets the crowd go first. In the seconds of the greatest rush the buyers need the processor, and orders whose
 * buyers are content with `accepted` are safe in the logs: they are carried to Postgres when the rush is over.
 *
 *   in step ──the node is crowded, and nobody waits──> yielding ──the bound has passed, the crowd is gone,
 *      ^                                                          or somebody waits──> catching up
 *      └──────────────────────────── the logs are drained ────────────────────────────────┘
 *
 * While it catches up it does not yield again: the bound is one on how long an order lies in the log before sync takes
 * it up. A buyer who waits for his commit ends it at once, and nobody else's wish matters for AWAITED_MS after him.
 */

/** After a hint that somebody waits, others are likely to. */
const AWAITED_MS = 1_000;

export interface BackpressureOptions {
  /** Whether the node has its hands full with buyers. */
  readonly isLoadHigh: () => boolean;
  /** How long orders may lie in the logs for that; 0: sync never yields. */
  readonly maxMs: number;
}

export class Backpressure {
  readonly #options: BackpressureOptions;
  #awaitedAtMs = Number.NEGATIVE_INFINITY;
  #sinceMs: number | undefined;
  #catchingUp = false;

  constructor(options: BackpressureOptions) {
    this.#options = options;
  }

  /** Somebody waits for what is in the logs. */
  awaited(nowMs: number): void {
    this.#awaitedAtMs = nowMs;
  }

  /** All that was in the logs has been read. */
  drained(): void {
    this.#catchingUp = false;
  }

  /** Whether what the logs hold may be left there for now. To be asked only if they hold something. */
  mayYield(nowMs: number): boolean {
    const { isLoadHigh, maxMs } = this.#options;
    if (this.#catchingUp || maxMs === 0) return false;
    const since = this.#sinceMs ?? nowMs;
    if (nowMs - since < maxMs && nowMs - this.#awaitedAtMs >= AWAITED_MS && isLoadHigh()) {
      this.#sinceMs = since;
      return true;
    }
    this.#catchingUp = this.#sinceMs !== undefined;
    this.#sinceMs = undefined;
    return false;
  }
}
