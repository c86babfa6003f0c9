import type { OrderLog, Watermark } from '../../engine/contract.ts';
import { newestOf } from './batch.ts';

/**
 * Announces watermarks to the backend, one call after the other. A watermark means "everything up to here", so a
 * newer one must not overtake an older one that names a rejected order.
 */
export class WatermarkTeller {
  readonly #log: OrderLog;
  readonly #refused: (error: unknown) => void;
  #advancing: Promise<void> = Promise.resolve();
  /** Watermarks that the backend has not accepted yet. */
  #untold: Watermark[] = [];

  /** @param refused called with the error when the backend does not accept watermarks */
  constructor(log: OrderLog, refused: (error: unknown) => void) {
    this.#log = log;
    this.#refused = refused;
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
      } catch (error) {
        this.#refused(error);
        this.#untold = newestOf(untold);
      }
    });
    return this.#advancing;
  }

  async tellAgain(): Promise<void> {
    if (this.#untold.length > 0) await this.tell([]);
  }
}
