import { StockadeError } from '../engine/errors.ts';
import { monotonicMs } from './monotonic.ts';
import { isTimeout, withTimeout } from './with-timeout.ts';

/**
 * Limit for all steps together, apart from their grace times: sync's batch, worker numbers, connections. Teardown
 * takes longer only if a store can't be reached.
 */
export const TEARDOWN_LIMIT_MS = 5_000;

interface End {
  readonly release: () => unknown;
  readonly graceMs: number;
}

/**
 * The steps that end a process or a part of it, run once, last in first out. Each part adds its step as soon as it
 * has started.
 */
export class Teardown {
  readonly #stack: End[] = [];
  readonly #onError: (error: unknown) => void;
  readonly #limitMs: number;
  #releasing: Promise<void> | undefined;

  /** @param onError called for each step that fails or is late; the steps after it still run */
  constructor(onError: (error: unknown) => void, limitMs = TEARDOWN_LIMIT_MS) {
    this.#onError = onError;
    this.#limitMs = limitMs;
  }

  /** @param graceMs extra time for this step, which does not count towards the limit */
  add(release: () => unknown, graceMs = 0): void {
    this.#stack.push({ release, graceMs });
  }

  release(): Promise<void> {
    this.#releasing ??= this.#run();
    return this.#releasing;
  }

  async #run(): Promise<void> {
    let leftMs = this.#limitMs;
    for (let end = this.#stack.pop(); end; end = this.#stack.pop()) {
      const began = monotonicMs();
      const timeoutMs = leftMs + end.graceMs;
      try {
        await withTimeout(timeoutMs, Promise.resolve(end.release()));
      } catch (error) {
        // If no time is left for a step, the last message says enough.
        if (timeoutMs >= 1 || !isTimeout(error)) this.#onError(error);
      }
      leftMs = Math.max(0, leftMs - Math.max(0, monotonicMs() - began - end.graceMs));
    }
    if (leftMs === 0) {
      this.#onError(
        new StockadeError('timed_out', `the shutdown was not complete within ${this.#limitMs} ms`),
      );
    }
  }
}
