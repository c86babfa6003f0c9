/** Time that only the test moves. Timers, Date and performance are frozen; setImmediate, promises and I/O work. */
import { vi } from 'vitest';

/** After so many turns of the event loop, everything has happened that needs neither time nor I/O. */
const SETTLED_TURNS = 4;

/** Undone by `vi.useRealTimers()`. */
export function freezeTime(now = Date.UTC(2026, 5, 1)): void {
  vi.useFakeTimers({
    now,
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  });
}

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export async function settledTurns(): Promise<void> {
  for (let i = 0; i < SETTLED_TURNS; i++) await turn();
}

/** Moves time on, and runs what is due. */
export async function elapse(ms: number): Promise<void> {
  vi.advanceTimersByTime(ms);
  await settledTurns();
}
