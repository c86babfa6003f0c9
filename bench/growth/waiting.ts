/**
 * Buyers who wait until their orders are in Postgres, spread evenly over many sales. Each sends the next purchase when the last one
 * is committed, as connections do. With a thousand sales, a batch of anything (a take, a read of a log, a cursor, a watermark) is
 * about one order.
 */
import type { Outcome } from '../../src/engine/contract.ts';
import { BenchFailure } from '../support/failure.ts';
import type { Cost } from '../support/meter.ts';
import type { Stage } from './stage.ts';

export const WAITING_BUYERS = 256;

export class WaitingBuyers {
  readonly #stage: Stage;
  #sent = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** What `orders` purchases cost. @throws BenchFailure if one is not committed */
  async measure(orders: number): Promise<Cost> {
    const end = await this.#stage.meter.begin();
    const last = this.#sent + orders;
    await Promise.all(Array.from({ length: WAITING_BUYERS }, () => this.#buyUntil(last)));
    this.#stage.sync.watch.assertSound();
    return end();
  }

  async #buyUntil(last: number): Promise<void> {
    while (this.#sent < last) {
      const { code } = await this.#buy(this.#sent++);
      if (code !== 'committed') throw new BenchFailure(`a purchase was answered ${code}`);
    }
  }

  #buy(number: number): Promise<Outcome> {
    const { engine, saleIds } = this.#stage;
    const saleId = saleIds[number % saleIds.length]!;
    return new Promise((resolve) => {
      engine.buy({ saleId, buyerId: `waiting-${number}`, quantity: 1, key: '', awaitCommit: true }, resolve);
    });
  }
}
