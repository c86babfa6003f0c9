/** Counts answers of one kind of buyers, by time window and code. Small enough to be sent between processes. */

export const WINDOW_MS = 100;
/** The ratio of a latency bucket's end to its begin: figures are off by 2.5 % at most. */
const BUCKET_RATIO = 1.05;

export interface Count {
  answers: number;
  /** Answers by latency bucket. */
  buckets: Record<number, number>;
}

export interface Window {
  asked: number;
  /** Requests that were due but not sent, because all connections were waiting for answers. */
  unsent: number;
  codes: Record<string, Count>;
}

/** Windows since the begin of the run; those without any event may be missing. */
export type Tally = Record<number, Window>;

export function windowAt(tally: Tally, sinceBeginMs: number): Window {
  const at = Math.floor(sinceBeginMs / WINDOW_MS);
  tally[at] ??= { asked: 0, unsent: 0, codes: {} };
  return tally[at];
}

export function countAnswer(window: Window, code: string, ms: number): void {
  window.codes[code] ??= { answers: 0, buckets: {} };
  const count = window.codes[code];
  const bucket = Math.ceil(Math.log(Math.max(ms, 0.01)) / Math.log(BUCKET_RATIO));
  count.answers++;
  count.buckets[bucket] = (count.buckets[bucket] ?? 0) + 1;
}

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The totals of a span of the run. */
export class Summary {
  readonly #windows: readonly Window[];
  readonly #seconds: number;

  constructor(tally: Tally, { fromMs, toMs }: Span) {
    const [first, end] = [Math.round(fromMs / WINDOW_MS), Math.round(toMs / WINDOW_MS)];
    this.#windows = Object.entries(tally)
      .filter(([at]) => Number(at) >= first && Number(at) < end)
      .map(([, window]) => window);
    this.#seconds = (toMs - fromMs) / 1_000;
  }

  get askedPerSecond(): number {
    return this.#sum((window) => window.asked) / this.#seconds;
  }

  get unsent(): number {
    return this.#sum((window) => window.unsent);
  }

  get codes(): string[] {
    return [...new Set(this.#windows.flatMap(({ codes }) => Object.keys(codes)))];
  }

  answers(code: string): number {
    return this.#sum(({ codes }) => codes[code]?.answers ?? 0);
  }

  perSecond(code: string): number {
    return this.answers(code) / this.#seconds;
  }

  /** `undefined` if there was no such answer. @param share 0.5 for the median */
  percentileMs(code: string, share: number): number | undefined {
    const merged = new Map<number, number>();
    for (const { codes } of this.#windows) {
      for (const [bucket, n] of Object.entries(codes[code]?.buckets ?? {}))
        merged.set(Number(bucket), (merged.get(Number(bucket)) ?? 0) + n);
    }
    let left = this.answers(code) * share;
    for (const [bucket, n] of [...merged].sort(([a], [b]) => a - b)) {
      left -= n;
      if (left <= 0) return BUCKET_RATIO ** bucket;
    }
    return undefined;
  }

  #sum(of: (window: Window) => number): number {
    return this.#windows.reduce((sum, window) => sum + of(window), 0);
  }
}
