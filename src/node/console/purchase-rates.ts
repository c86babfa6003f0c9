import type { RequestStatsData } from '../../http/server/request-stats.ts';
import type { PurchaseRates } from '../../operations/console/console-operations.ts';

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
