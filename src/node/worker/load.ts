import { monotonicMs } from '../../lib/monotonic.ts';

/** Shorter times say little: a turn of the event loop takes milliseconds under load. */
const MEASURED_OVER_MS = 100;
/** Of their time, on average over all workers. Above this, what sync does is missing to the buyers. */
const HIGH_LOAD_SHARE = 0.5;
/**
 * Above this, what nobody waits for can wait. Less, because buyers who wait for their commits leave the workers idle while
 * they keep the machine busy.
 */
const ELEVATED_LOAD_SHARE = 0.2;

export interface Load {
  /** Whether the workers have been busy with buyers for more than half of the last tenth of a second. */
  isHigh(): boolean;
  /** The same for more than a fifth. */
  isElevated(): boolean;
}

export function watchLoad(workers: readonly { busyShare(): number }[]): Load {
  let measuredAtMs = Number.NEGATIVE_INFINITY;
  let share = 0;
  const busyShare = () => {
    const now = monotonicMs();
    if (now - measuredAtMs < MEASURED_OVER_MS || workers.length === 0) return share;
    measuredAtMs = now;
    share = workers.reduce((sum, worker) => sum + worker.busyShare(), 0) / workers.length;
    return share;
  };
  return {
    isHigh: () => busyShare() > HIGH_LOAD_SHARE,
    isElevated: () => busyShare() > ELEVATED_LOAD_SHARE,
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
