import { setTimeout as delay } from 'node:timers/promises';

/** Waits for this time in milliseconds, or until the signal is aborted. Never rejects. */
export async function rest(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await delay(ms, undefined, { signal }).catch(() => {});
}
