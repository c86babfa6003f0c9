/** A mutex within this process, like `synchronized` in Java. First come, first served, per name. */
import type { Steps } from './contract.ts';

export class Mutex {
  readonly #steps: Steps;
  /** Per name, the end of the last work in the queue. */
  readonly #tails = new Map<string, Promise<unknown>>();

  constructor(steps: Steps) {
    this.#steps = steps;
  }

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const result = this.#after(this.#tails.get(name), work);
    const end = result.catch(() => {});
    this.#tails.set(name, end);
    try {
      return await result;
    } finally {
      if (this.#tails.get(name) === end) this.#tails.delete(name);
    }
  }

  async #after<T>(before: Promise<unknown> | undefined, work: () => Promise<T>): Promise<T> {
    if (before) {
      await this.#steps.at('waiting');
      await before;
    }
    return work();
  }
}
