import type { Engine } from '../../src/engine/purchase/engine.ts';
import { BenchFailure } from '../support/failure.ts';

/** Buyers side by side that buy without a pause. Records the duration of each purchase. */
export class Crowd {
  readonly waitsMs: number[] = [];
  readonly #engine: Engine;
  readonly #saleId: string;
  readonly #ended: Promise<unknown>;
  #named = 0;
  #stopped = false;

  constructor(engine: Engine, saleId: string, clients: number) {
    this.#engine = engine;
    this.#saleId = saleId;
    this.#ended = Promise.all(Array.from({ length: clients }, () => this.#buy()));
    // `stop` awaits it and gets the error. Until then a rejection must not count as unhandled.
    this.#ended.catch(() => {});
  }

  /** Resolves when so many more purchases are committed. @throws as `stop` */
  async more(purchases: number): Promise<void> {
    const until = this.waitsMs.length + purchases;
    while (this.waitsMs.length < until) {
      await Promise.race([this.#ended, new Promise((resolve) => setTimeout(resolve, 10))]);
    }
  }

  /** @throws BenchFailure if a purchase was answered anything but `committed` */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#ended;
  }

  async #buy(): Promise<void> {
    const saleId = this.#saleId;
    while (!this.#stopped) {
      const buyerId = `crowd-${this.#named++}`;
      const began = performance.now();
      const { code } = await this.#engine.purchase({
        saleId,
        buyerId,
        quantity: 1,
        key: '',
        awaitCommit: true,
      });
      if (code !== 'committed') throw new BenchFailure(`a purchase was answered ${code}`);
      this.waitsMs.push(performance.now() - began);
    }
  }
}
