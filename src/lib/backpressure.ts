/**
 * Postpones the work of sync while buyers need the processor. Orders that were answered `accepted` are safe in the
 * logs: sync writes them to Postgres when the load has fallen.
 *
 *   in step ──load is high, nobody waits for a commit──> yielding ──`maxMs` has passed, the load has fallen,
 *      ^                                                            or a buyer waits for a commit──> catching up
 *      └──────────────────────────────── the logs are drained ──────────────────────────────────────────┘
 *
 * While sync catches up it does not yield again, so `maxMs` bounds how long an order lies in a log before sync reads
 * it. A buyer who waits for a commit ends yielding at once, and sync does not yield for AWAITED_MS after that.
 */

/** After a hint that a buyer waits for a commit, more such hints are likely. */
const AWAITED_MS = 1_000;

export interface BackpressureOptions {
  /** Whether serving buyers uses much of the node's processor time. */
  readonly isLoadHigh: () => boolean;
  /** Milliseconds that orders may lie in the logs because of load. 0: sync never yields. */
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

  /** A buyer or a rebuild waits for orders in the logs. */
  awaited(nowMs: number): void {
    this.#awaitedAtMs = nowMs;
  }

  /** Sync has read the logs to their ends. */
  drained(): void {
    this.#catchingUp = false;
  }

  /**
   * Whether sync may leave the logs unread for now. Call it only when the logs hold unread entries: it starts the
   * time that is counted against `maxMs`.
   */
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
