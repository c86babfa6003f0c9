import type { OrderLog, Watermark } from '../../engine/contract.ts';
import { newestOf } from './batch.ts';

/**
 * Announces watermarks to the backend, one call after the other. A watermark means "everything up to here", so a
 * newer one must not overtake an older one that names a rejected order.
 */
export class WatermarkTeller {
  readonly #log: OrderLog;
  #advancing: Promise<void> = Promise.resolve();
  /** Watermarks that the backend has not accepted yet. */
  #untold: Watermark[] = [];

  constructor(log: OrderLog) {
    this.#log = log;
  }

  /** Resolves when all calls so far have ended. */
  get settled(): Promise<void> {
    return this.#advancing;
  }

  /** Never rejects: watermarks that the backend does not accept now are announced again, before newer ones. */
  tell(watermarks: readonly Watermark[]): Promise<void> {
    this.#advancing = this.#advancing.then(async () => {
      const untold = [...this.#untold.splice(0), ...watermarks];
      try {
        await this.#log.advance(untold);
      } catch {
        this.#untold = newestOf(untold);
      }
    });
    return this.#advancing;
  }

  async tellAgain(): Promise<void> {
    if (this.#untold.length > 0) await this.tell([]);
  }
}
