/**
 * Stands for the work inside a lock: `ms` on average, half of it to one and a half times as much each time. Node's timers
 * tick in whole milliseconds. With equal times all sections would end at the same tick, and each would wait behind all
 * others: no work that asks another server does that.
 */
export function work(ms: number): Promise<void> {
  if (ms === 0) return Promise.resolve();
  return pause(Math.round(ms / 2 + Math.random() * ms));
}

/** The one of `node:timers/promises` costs several times as much, which shows at 20,000 a second. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
