import { monotonicMs } from '../engine/monotonic.ts';
import type { RunningWorker } from './worker.ts';

/** Shorter times say little: a turn of the event loop takes milliseconds under load. */
const MEASURED_OVER_MS = 100;
/** Of its time, on average over all workers. Above this, what else the node does is missing to the buyers. */
const CROWDED_SHARE = 0.5;

/** @returns whether the workers have been busy with buyers for more than half of the last tenth of a second */
export function crowdWatch(workers: readonly RunningWorker[]): () => boolean {
  let measuredAtMs = Number.NEGATIVE_INFINITY;
  let crowded = false;
  return () => {
    const now = monotonicMs();
    if (now - measuredAtMs < MEASURED_OVER_MS) return crowded;
    measuredAtMs = now;
    const busy = workers.reduce((sum, worker) => sum + worker.busyShare(), 0);
    crowded = busy > workers.length * CROWDED_SHARE;
    return crowded;
  };
}

/** @returns the share of the time since its last call, 0 to 1, in which the event loop had something to do */
export function busyShareOf(
  performance: Pick<typeof globalThis.performance, 'eventLoopUtilization'>,
): () => number {
  let last = performance.eventLoopUtilization();
  return () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    return utilization;
  };
}
