/**
 * Counts and latencies of requests by outcome, at the cost of one addition for each request. prom-client, which adds up the
 * workers and writes the text, gets them only when metrics are read (node/observability/worker-metrics.ts).
 */

/** Upper bounds in seconds. One more bucket counts everything above. */
export const LATENCY_BOUNDS_S = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
] as const;
/** Upper bounds in orders per batch. */
export const BATCH_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256] as const;

export interface HistogramData {
  readonly buckets: number[];
  sum: number;
}

export interface RequestStatsData {
  readonly latency: Record<string, HistogramData>;
  readonly batches: HistogramData;
}

export class RequestStats {
  readonly #latency = new Map<string, HistogramData>();
  readonly #batches = histogram(BATCH_BOUNDS.length);

  /** @param outcome the code of the answer @param ms from the request's arrival to its answer */
  answered(outcome: string, ms: number): void {
    let data = this.#latency.get(outcome);
    if (!data) {
      data = histogram(LATENCY_BOUNDS_S.length);
      this.#latency.set(outcome, data);
    }
    observe(data, LATENCY_BOUNDS_S, ms / 1_000);
  }

  batchSent(orders: number): void {
    observe(this.#batches, BATCH_BOUNDS, orders);
  }

  data(): RequestStatsData {
    return { latency: Object.fromEntries(this.#latency), batches: this.#batches };
  }
}

/** `join`: a place is asked for. `poll`: it is looked at. `listen`: a stream of it is opened. `leave`: it is given up. */
export const PLACE_ROUTES = ['join', 'poll', 'listen', 'leave'] as const;
export type PlaceRoute = (typeof PLACE_ROUTES)[number];

/** By route and outcome, since the worker started. */
export type PlaceAnswerCounts = Readonly<Record<PlaceRoute, Readonly<Record<string, number>>>>;

export class PlaceAnswers {
  readonly #counts: Readonly<Record<PlaceRoute, Map<string, number>>> = {
    join: new Map(),
    poll: new Map(),
    listen: new Map(),
    leave: new Map(),
  };

  /** @param outcome the state of the place, or the code of the answer */
  answered(route: PlaceRoute, outcome: string): void {
    const counts = this.#counts[route];
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }

  data(): PlaceAnswerCounts {
    const { join, poll, listen, leave } = this.#counts;
    const of = (counts: ReadonlyMap<string, number>) => Object.fromEntries(counts);
    return { join: of(join), poll: of(poll), listen: of(listen), leave: of(leave) };
  }
}

function histogram(bounds: number): HistogramData {
  return { buckets: new Array<number>(bounds + 1).fill(0), sum: 0 };
}

function observe(data: HistogramData, bounds: readonly number[], value: number): void {
  let bucket = 0;
  while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
  data.buckets[bucket]!++;
  data.sum += value;
}
