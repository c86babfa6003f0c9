import { monotonicMs } from '../lib/monotonic.ts';
import type { VerifyReport } from '../operations/sale-operations.ts';

/** A rebuild that takes longer than this counts as a fault. */
const REBUILD_MAX_MS = 120_000;

/**
 * Decides which reports of `verify --watch` are alarms. The units of a sale can't be counted while it is rebuilt, so its
 * report is not ok; that is an alarm only if it lasts.
 */
export class VerifyAlarms {
  /** Since when each sale has been rebuilt in every report, on the clock of `monotonicMs`. */
  readonly #buildingSinceMs = new Map<string, number>();

  /** Call it for each report, as soon as it is there. @returns whether the report is an alarm */
  judge({ saleId, ok, differences }: VerifyReport, nowMs = monotonicMs()): boolean {
    const faults = differences.filter(({ isFault }) => isFault);
    if (ok || faults.some(({ cause }) => cause !== 'rebuild_pending')) {
      this.#buildingSinceMs.delete(saleId);
      return !ok;
    }
    const sinceMs = this.#buildingSinceMs.get(saleId) ?? nowMs;
    this.#buildingSinceMs.set(saleId, sinceMs);
    return nowMs - sinceMs > REBUILD_MAX_MS;
  }
}
