import {
  PLACE_ROUTES,
  type PlaceAnswerCounts,
  type RequestStatsData,
} from '../../http/server/request-stats.ts';
import type { PlaceRates, PurchaseRates } from '../../operations/console/console-operations.ts';

const ORDERS = new Set(['committed', 'accepted']);
/** The node or its stores are the reason, not the sale, the buyer or the request. */
const FAILURES = new Set(['busy', 'unavailable', 'unknown', 'internal']);

/** Purchases by the code of their answer, since the workers started. */
export function countsByCode(workers: readonly RequestStatsData[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { latency } of workers) {
    for (const [code, { buckets }] of Object.entries(latency)) {
      const answered = buckets.reduce((sum, n) => sum + n, 0);
      counts.set(code, (counts.get(code) ?? 0) + answered);
    }
  }
  return counts;
}

/** @param seconds between the two counts, above 0 */
export function purchaseRates(
  before: ReadonlyMap<string, number>,
  now: ReadonlyMap<string, number>,
  seconds: number,
): PurchaseRates {
  const byCode: Record<string, number> = {};
  const sums = { purchases: 0, orders: 0, refusals: 0, failures: 0 };
  for (const [code, count] of now) {
    const rate = (count - (before.get(code) ?? 0)) / seconds;
    if (rate <= 0) continue;
    byCode[code] = rate;
    sums.purchases += rate;
    sums[ORDERS.has(code) ? 'orders' : FAILURES.has(code) ? 'failures' : 'refusals'] += rate;
  }
  return { ...sums, byCode };
}

/** Answers about places, since the workers started. */
export interface PlaceCounts {
  readonly joins: number;
  readonly polls: number;
  readonly failures: number;
  /** Of every route. */
  readonly all: number;
}

export function placeCounts(workers: readonly PlaceAnswerCounts[]): PlaceCounts {
  const counts = { joins: 0, polls: 0, failures: 0, all: 0 };
  for (const answers of workers)
    for (const route of PLACE_ROUTES)
      for (const [outcome, count] of Object.entries(answers[route])) {
        counts.all += count;
        if (route === 'join') counts.joins += count;
        if (route === 'poll') counts.polls += count;
        if (FAILURES.has(outcome)) counts.failures += count;
      }
  return counts;
}

/** @param seconds between the two counts, above 0 */
export function placeRates(before: PlaceCounts, now: PlaceCounts, seconds: number): PlaceRates {
  const rate = (of: keyof PlaceCounts) => Math.max(0, now[of] - before[of]) / seconds;
  return { joins: rate('joins'), polls: rate('polls'), failures: rate('failures') };
}
