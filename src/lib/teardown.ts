import { StockadeError } from '../engine/errors.ts';
import { monotonicMs } from './monotonic.ts';
import { withTimeout } from './with-timeout.ts';

/** For all ends together, apart from their graces: sync's batch, worker numbers, connections. Longer only if a store is away. */
export const TEARDOWN_LIMIT_MS = 5_000;

interface End {
  readonly release: () => unknown;
  readonly graceMs: number;
}

/** What must be let go of, last in first out, once: each part registers its end as soon as it has begun. */
export class Teardown {
  readonly #stack: End[] = [];
  readonly #onError: (error: unknown) => void;
  readonly #limitMs: number;
  #releasing: Promise<void> | undefined;

  /** @param onError told of ends that fail or are late; those after them are run all the same */
  constructor(onError: (error: unknown) => void, limitMs = TEARDOWN_LIMIT_MS) {
    this.#onError = onError;
    this.#limitMs = limitMs;
  }

  /** @param graceMs time of its own, which does not count towards the limit */
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
      try {
        await withTimeout(leftMs + end.graceMs, Promise.resolve(end.release()));
      } catch (error) {
        this.#onError(error);
      }
      leftMs = Math.max(0, leftMs - Math.max(0, monotonicMs() - began - end.graceMs));
    }
    if (leftMs === 0) {
      this.#onError(new StockadeError('timed_out', `an orderly end was not reached in ${this.#limitMs} ms`));
    }
  }
}
