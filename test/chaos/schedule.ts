import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../support/random.ts';
import type { World } from './world.ts';

/** What a strike may know of those who buy meanwhile. */
export interface Progress {
  /** The times of all answers that served somebody, by `performance.now()`. */
  readonly servedAtMs: readonly number[];
  /** When somebody was first told after the given time what Postgres had, both by `performance.now()`. */
  firstCommittedMs(afterMs: number): number | undefined;
}

/** What a strike may use while customers buy. */
export interface Scene {
  readonly world: World;
  readonly history: Progress;
  /** For random choices. */
  readonly random: Random;
  /** Lets the fault last. When it returns, the fault is over, and what follows belongs to the recovery. */
  hold(): Promise<void>;
}

/** One kind of fault: how it is brought about, and how it is undone. */
export interface Schedule {
  /** The name for `--only`. */
  readonly name: string;
  readonly what: string;
  /** How often it strikes in a round. */
  readonly times: number;
  /** Whether Redis itself loses writes: then orders answered `202` may be gone, and must be reported. */
  readonly losesWrites?: true;
  /** Whether an operator would be alarmed and run `stockade recover` afterwards. */
  readonly needsRecovery?: true;
  /** @returns why the fault can't be brought about on this machine; `undefined` if it can */
  missing?(): Promise<string | undefined>;
  /**
   * Returns when everything is restored. @throws if the fault could not be brought about, so that nothing was proved
   */
  strike(scene: Scene, time: number): Promise<void>;
}

/** Resolves when so many more purchases were served. @throws if that takes too long */
export async function untilServed({ history }: Scene, more: number, limitMs = 60_000): Promise<void> {
  const wanted = history.servedAtMs.length + more;
  const deadline = performance.now() + limitMs;
  while (history.servedAtMs.length < wanted) {
    if (performance.now() > deadline)
      throw new Error(`fewer than ${more} more purchases were served within ${limitMs} ms`);
    await delay(5);
  }
}
