import type { Till } from '../shop/till.ts';
import type { Promised } from '../shop/truth.ts';

export interface LoadOptions {
  /** Lines of buyers; each line has one purchase under way. */
  readonly lines?: number;
  readonly quantity?: number;
  readonly keyed?: boolean;
  /** Whether buyers wait for their commit. Default: they do. */
  readonly awaitCommit?: boolean;
}

/** Buyers that come one after the other in each line, once each, until the load is stopped or disposed of. */
export class Load implements AsyncDisposable {
  /** The promises to buyers: orders answered committed or accepted. */
  readonly promised: Promised[] = [];
  readonly codes = new Map<string, number>();
  readonly #ended: Promise<unknown>;
  #stopped = false;
  #next = 0;

  constructor(till: Till, saleId: string, options: LoadOptions = {}) {
    const { lines = 50, quantity = 1, keyed = false, awaitCommit = true } = options;
    const line = async () => {
      while (!this.#stopped) {
        const buyerId = `loud-${this.#next++}`;
        const outcome = await till.buy(saleId, buyerId, {
          quantity,
          key: keyed ? `key-${buyerId}` : '',
          awaitCommit,
        });
        this.codes.set(outcome.code, (this.codes.get(outcome.code) ?? 0) + 1);
        if (outcome.code === 'committed' || outcome.code === 'accepted') {
          this.promised.push({ ...outcome, buyerId });
        }
        // Without this, outcomes without I/O would block the event loop.
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    this.#ended = Promise.all(Array.from({ length: lines }, line));
  }

  /** Resolves when the last buyer has its answer. */
  async stop(): Promise<Promised[]> {
    this.#stopped = true;
    await this.#ended;
    return this.promised;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
