import { monotonicMs } from '../../lib/monotonic.ts';
import type { Sampled } from '../../operations/console/console-operations.ts';

/** Something that is read again and again, one reading at a time. All consoles that show it share its readings. */
export class Sample<T> {
  /** How many consoles show it. */
  users = 0;
  readonly #read: () => Promise<T>;
  readonly #everyMs: number;
  #begunMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #last: { readonly value: T; readonly atMs: number } | undefined;
  #problem: string | undefined;

  /** @param everyMs a reading begins at most once in this time */
  constructor(read: () => Promise<T>, everyMs: number) {
    this.#read = read;
    this.#everyMs = everyMs;
  }

  /** Begins a reading if it is time. Resolves when none is under way; never rejects. */
  async refresh(): Promise<void> {
    if (!this.#reading && monotonicMs() - this.#begunMs < this.#everyMs) return;
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  get sampled(): Sampled<T> {
    return {
      ...(this.#last && { value: this.#last.value, ageMs: Math.round(monotonicMs() - this.#last.atMs) }),
      ...(this.#problem !== undefined && { problem: this.#problem }),
    };
  }

  async #readNow(): Promise<void> {
    this.#begunMs = monotonicMs();
    try {
      const value = await this.#read();
      this.#last = { value, atMs: monotonicMs() };
      this.#problem = undefined;
    } catch (error) {
      this.#problem = error instanceof Error ? error.message : String(error);
    }
  }
}
