import { monotonicMs } from '../../lib/monotonic.ts';

/** Over a shorter time the share says little, because one turn of the event loop takes milliseconds under load. */
const MEASURED_OVER_MS = 100;
/** Share of the workers' time, on average. Above it, processor time that sync uses would slow down buyers. */
const HIGH_LOAD_SHARE = 0.5;
/**
 * Above it, work that no buyer waits for, such as events, is put off. It is lower than HIGH_LOAD_SHARE: while buyers wait for
 * commits, the workers are idle although the machine is busy.
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
