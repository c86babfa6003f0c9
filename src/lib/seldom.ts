import { monotonicMs } from './monotonic.ts';

/** A fault that comes with every request is reported once in this time, so that it does not flood the log. */
const REPORT_EVERY_MS = 10_000;

/** @returns a function that says whether it is time for a report: the first time, and then once in REPORT_EVERY_MS */
export function seldom(): () => boolean {
  let nextAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const now = monotonicMs();
    if (now < nextAtMs) return false;
    nextAtMs = now + REPORT_EVERY_MS;
    return true;
  };
}
