import { Busy } from '../engine/errors.ts';
import { Fifo } from './fifo.ts';
import { monotonicMs } from './monotonic.ts';

export interface BulkheadOptions {
  /** How many pieces of work run at a time. */
  readonly parallel: number;
  /** How many more may wait. */
  readonly maxWaiting: number;
  /**
   * New work is rejected when the head of the queue has waited longer than this. Queued work that has waited longer
   * is rejected instead of started.
   */
  readonly maxWaitMs: number;
}

interface Waiting {
  readonly since: number;
  letIn(): void;
  refuse(error: Busy): void;
}

/**
 * Limits how much work runs at a time, and rejects at once what would wait too long. Without it, work whose caller
 * has already timed out would stay in the queue ahead of work that is still wanted, and a slight overload of a store
 * would make every caller time out.
 */
export class Bulkhead {
  readonly #options: BulkheadOptions;
  readonly #waiting = new Fifo<Waiting>();
  #underWay = 0;

  constructor(options: BulkheadOptions) {
    this.#options = options;
  }

  /** @throws Busy if the work was not started; else what the work throws */
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
   * For use within `run`: gives up the slot while waiting for something that does not use the guarded resource.
   * Afterwards the work continues without queueing again, so slightly more than `parallel` may run for a moment.
   */
  async aside<T>(wait: () => Promise<T>): Promise<T> {
    this.#letNextIn();
    try {
      return await wait();
    } finally {
      this.#underWay++;
    }
  }

  /** Resolves when a slot has become free. @throws Busy if too many wait, or if the wait was too long */
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
    return new Busy(
      `${this.#underWay} requests are running and ${this.#waiting.length} wait: try again later`,
    );
  }
}
