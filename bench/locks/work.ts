import type { Inside } from './tasks.ts';

/**
 * Stands for the work inside a lock. Node's timers tick in whole milliseconds. With equal times all sections would end at
 * the same tick, and each would wait behind all others: no work that asks another server does that.
 */
export function work({ insideMs, spreadMs }: Inside): Promise<void> {
  if (insideMs === 0) return Promise.resolve();
  return pause(Math.round(insideMs + (2 * Math.random() - 1) * spreadMs));
}

/** The one of `node:timers/promises` costs several times as much, which shows at 20,000 a second. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
