import type { OrderLog, Watermark } from '../../engine/contract.ts';
import { newestOf } from './batch.ts';

/**
 * Tells the backend of watermarks, one call after the other: a watermark means "all up to here", so that a newer one
 * must not get ahead of an older one that names a rejected order.
 */
export class WatermarkTeller {
  readonly #log: OrderLog;
  #advancing: Promise<void> = Promise.resolve();
  /** Watermarks that the backend has not taken yet. */
  #untold: Watermark[] = [];

  constructor(log: OrderLog) {
    this.#log = log;
  }

  /** Resolves when all calls until now have ended. */
  get settled(): Promise<void> {
    return this.#advancing;
  }

  /** Never rejects: what the backend does not take now is told again, before all that is newer. */
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
