export type Status = 'ok' | 'warn' | 'fail';

export interface Check {
  readonly group: 'runtime' | 'redis' | 'postgres' | 'clocks' | 'buyers' | 'ports';
  readonly name: string;
  readonly status: Status;
  /** What was found, with its values. */
  readonly found: string;
  /** What to do about it; absent only if the status is `ok`. */
  readonly advice?: string;
}

/** Functions that make the checks of one group. */
export function checksOf(group: Check['group']) {
  return {
    ok: (name: string, found: string): Check => ({ group, name, status: 'ok', found }),
    warn: (name: string, found: string, advice: string): Check => ({
      group,
      name,
      status: 'warn',
      found,
      advice,
    }),
    fail: (name: string, found: string, advice: string): Check => ({
      group,
      name,
      status: 'fail',
      found,
      advice,
    }),
  };
}

/** The results of checking one store; without a clock if the store did not answer. */
export interface StoreFindings {
  readonly checks: readonly Check[];
  readonly clock?: ClockReading;
}

export interface ClockReading {
  readonly store: string;
  /** The store's clock minus this machine's, in milliseconds. */
  readonly aheadMs: number;
  /** The reading may be off by this much: half of the time that it took, in milliseconds. */
  readonly uncertainMs: number;
}

/** Reads a store's clock: `ask` gives its time in milliseconds. */
export async function readClock(store: string, ask: () => Promise<number>): Promise<ClockReading> {
  const before = Date.now();
  const start = performance.now();
  const there = await ask();
  const uncertainMs = (performance.now() - start) / 2;
  return { store, aheadMs: there - (before + uncertainMs), uncertainMs };
}
