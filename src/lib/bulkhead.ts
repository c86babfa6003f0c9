import { Busy } from '../engine/errors.ts';
import { Fifo } from './fifo.ts';
import { monotonicMs } from './monotonic.ts';

export interface BulkheadOptions {
  /** Work under way at a time. */
  readonly parallel: number;
  /** Work that may wait for it. */
  readonly maxWaiting: number;
  /** Nobody joins a queue whose first has waited longer, and nobody is let in who has. */
  readonly maxWaitMs: number;
}

interface Waiting {
  readonly since: number;
  letIn(): void;
  refuse(error: Busy): void;
}

/**
 * Lets so much work through at a time, and refuses at once what would wait too long. Without it, work whose asker was told
 * long ago that it takes too long goes on waiting in front of that of those who still hope, and a store that is asked for
 * a little more than it can do serves nobody in time.
 */
export class Bulkhead {
  readonly #options: BulkheadOptions;
  readonly #waiting = new Fifo<Waiting>();
  #underWay = 0;

  constructor(options: BulkheadOptions) {
    this.#options = options;
  }

  /** @throws Busy, if the work was not begun; else what the work throws */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#underWay >= this.#options.parallel) await this.#turn();
    else this.#underWay++;
    try {
      return await work();
    } finally {
      this.#letNextIn();
    }
  }

  /**
   * Within `run`: waits for something that keeps nothing busy which the turnstile guards, and leaves the place to others so
   * long. Back from there nobody queues again: for a moment there may be more under way than `parallel`.
   */
  async aside<T>(wait: () => Promise<T>): Promise<T> {
    this.#letNextIn();
    try {
      return await wait();
    } finally {
      this.#underWay++;
    }
  }

  /** Resolves when somebody has left his place. */
  #turn(): Promise<void> {
    const { maxWaiting } = this.#options;
    const first = this.#waiting.peek();
    if (first && (this.#waiting.length >= maxWaiting || this.#isLate(first)))
      return Promise.reject(this.#busy());
    return new Promise((letIn, refuse) => {
      this.#waiting.push({ since: monotonicMs(), letIn, refuse });
    });
  }

  #letNextIn(): void {
    if (this.#underWay > this.#options.parallel) {
      this.#underWay--;
      return;
    }
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      if (!this.#isLate(next)) {
        next.letIn();
        return;
      }
      next.refuse(this.#busy());
    }
    this.#underWay--;
  }

  #isLate({ since }: Waiting): boolean {
    return monotonicMs() - since > this.#options.maxWaitMs;
  }

  #busy(): Busy {
    return new Busy(`${this.#underWay} are under way and ${this.#waiting.length} wait`);
  }
}
