import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../support/random.ts';
import type { History } from './history.ts';
import type { World } from './world.ts';

/** What a strike may look at while customers buy. */
export interface Scene {
  readonly world: World;
  readonly history: History;
  /** For what is left to chance. */
  readonly random: Random;
  /** Lets the fault last. When it returns, the fault is over: what comes behind it is part of the recovery. */
  hold(): Promise<void>;
}

/** One kind of fault: how it is brought about, and how it is undone. */
export interface Schedule {
  /** For `--only`. */
  readonly name: string;
  readonly what: string;
  /** How often it strikes in a round. */
  readonly times: number;
  /** Redis itself loses writes: orders answered `202` may be gone, and must be reported. */
  readonly losesWrites?: true;
  /** An alarm has asked somebody to run `stockade recover` afterwards. */
  readonly needsRecovery?: true;
  /** @returns why it can't be brought about here, `undefined` if it can */
  missing?(): Promise<string | undefined>;
  /** Returns when all is there again that was there before. @throws if it could not be brought about: then nothing was shown */
  strike(scene: Scene, time: number): Promise<void>;
}

/** Until so many more were served. @throws if nobody was for too long */
export async function untilServed({ history }: Scene, more: number, limitMs = 60_000): Promise<void> {
  const wanted = history.servedAtMs.length + more;
  const deadline = performance.now() + limitMs;
  while (history.servedAtMs.length < wanted) {
    if (performance.now() > deadline) throw new Error(`not ${more} more were served within ${limitMs} ms`);
    await delay(5);
  }
}
