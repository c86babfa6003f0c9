import type { Inside } from './tasks.ts';

/**
 * Stands for the work inside a lock. Node's timers tick in whole milliseconds: with equal times, all sections would end at the same
 * tick, and each would wait for all others. Real work on another server does not synchronize like that.
 */
export function work({ insideMs, spreadMs }: Inside): Promise<void> {
  if (insideMs === 0) return Promise.resolve();
  return pause(Math.round(insideMs + (2 * Math.random() - 1) * spreadMs));
}

/** The timer of `node:timers/promises` costs several times as much, which matters at 20,000 a second. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
