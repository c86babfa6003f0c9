import type { SyncEvents } from '../../src/sync/sync-events.ts';
import { BenchFailure } from './failure.ts';

const APPLY_LIMIT_MS = 600_000;

/** Counts what a sync says it has applied. Anything that is not normal is a failure of the bench. */
export class SyncWatch {
  readonly events: SyncEvents = {
    applied: ({ orders }) => {
      this.#orders += orders;
      this.#transactions++;
      this.#changed();
    },
    backlog: () => {},
    rejected: this.#refuse('rejected an order'),
    logBroken: this.#refuse('found a broken log'),
    ordersLost: this.#refuse('has lost orders'),
    rebuilt: this.#refuse('rebuilt the sale'),
    saleFailed: this.#refuse('failed on the sale'),
    crashed: this.#refuse('crashed'),
  };
  #orders = 0;
  #transactions = 0;
  #failure: BenchFailure | undefined;
  #changed: () => void = () => {};

  /**
   * Resolves with the number of transactions when so many orders are applied.
   * @throws BenchFailure if they are not in time, or if sync met with anything that is not normal
   */
  async applied(orders: number): Promise<number> {
    const late = setTimeout(() => {
      this.#failure ??= new BenchFailure(`${this.#orders} of ${orders} orders within ${APPLY_LIMIT_MS} ms`);
      this.#changed();
    }, APPLY_LIMIT_MS);
    while (this.#orders < orders && !this.#failure) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
    clearTimeout(late);
    this.assertSound();
    return this.#transactions;
  }

  /** @throws BenchFailure if sync has met with anything that is not normal */
  assertSound(): void {
    if (this.#failure) throw this.#failure;
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
