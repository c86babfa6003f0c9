import type { SyncEvents } from '../../src/sync/held/sync-events.ts';
import { BenchFailure } from './failure.ts';

const LIMIT_MS = 600_000;

/** Counts what a sync reports as done. Every fault that it reports fails the bench. */
export class SyncWatch {
  readonly events: SyncEvents = {
    applied: ({ orders }) => {
      this.#orders += orders;
      this.#transactions++;
      this.#changed();
    },
    backlog: () => {
      this.#sweeps++;
      this.#changed();
    },
    transferred: () => {},
    rejected: this.#refuse('rejected an order'),
    logBroken: this.#refuse('found a broken log'),
    ordersLost: this.#refuse('has lost orders'),
    rebuilt: (info) => {
      if (info.again) this.#refuse('rebuilt the sale')(info);
    },
    saleFailed: this.#refuse('failed on the sale'),
    untold: this.#refuse('could not tell of commits'),
    foreign: this.#refuse('got a message that this version does not send'),
    crashed: this.#refuse('crashed'),
  };
  #sweeps = 0;
  #orders = 0;
  #transactions = 0;
  #failure: BenchFailure | undefined;
  #changed: () => void = () => {};

  /**
   * Resolves when this number of orders is applied, counted from the beginning. @returns the number of transactions
   * @throws BenchFailure if that takes too long, or if sync has reported a fault
   */
  async applied(orders: number): Promise<number> {
    await this.#until(() => this.#orders >= orders, `${orders} orders applied`);
    return this.#transactions;
  }

  /** Resolves when sync has swept this often. @throws as `applied` */
  async swept(times: number): Promise<void> {
    await this.#until(() => this.#sweeps >= times, `${times} sweeps`);
  }

  /** @throws BenchFailure if sync has reported a fault */
  assertSound(): void {
    if (this.#failure) throw this.#failure;
  }

  async #until(reached: () => boolean, what: string): Promise<void> {
    const late = setTimeout(() => {
      this.#failure ??= new BenchFailure(`not ${what} within ${LIMIT_MS} ms, but ${this.#orders} orders`);
      this.#changed();
    }, LIMIT_MS);
    while (!reached() && !this.#failure) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
    clearTimeout(late);
    this.assertSound();
  }

  #refuse(what: string): (info: object) => void {
    return (info) => {
      this.#failure ??= new BenchFailure(`sync ${what}: ${describe(info)}`);
      this.#changed();
    };
  }
}

function describe(info: object): string {
  const { error } = info as { error?: unknown };
  return error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(info);
}
