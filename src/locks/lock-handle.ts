import { StockadeError } from '../engine/errors.ts';
import { LockLost } from './lock-errors.ts';

/** What a handle needs of where it comes from. */
export interface HandleHost {
  readonly trusted: boolean;
  /** @returns false if the lock turned out to be lost */
  release(): Promise<boolean>;
}

/**
 * A lock that is held, or was. The holder's code takes it with it: to release the lock, to hold it once more
 * (reentrance), to learn that it is lost, and to write under it.
 */
export class LockHandle {
  readonly name: string;
  /** The fencing token: greater than that of every holder before. Each write under the lock carries it. */
  readonly token: number;
  readonly #host: HandleHost;
  #holds = 1;
  #controller: AbortController | undefined;
  #loss: LockLost | undefined;

  constructor(name: string, token: number, host: HandleHost) {
    this.name = name;
    this.token = token;
    this.#host = host;
  }

  /** False as soon as the lock is released, lost, or can't be trusted any more. */
  get held(): boolean {
    return this.#holds > 0 && this.#loss === undefined && this.#host.trusted;
  }

  /** Aborted with a LockLost as soon as the lock is lost. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#loss) this.#controller.abort(this.#loss);
    }
    return this.#controller.signal;
  }

  /** Holds the lock once more: it wants one more `release`. @throws LockLost */
  enter(): this {
    this.assertHeld();
    this.#holds++;
    return this;
  }

  /** @throws LockLost if the lock is lost or released */
  assertHeld(): void {
    if (!this.held) throw this.#loss ?? this.#lost(this.#holds > 0 ? 'its time is over' : 'it was released');
  }

  /**
   * Gives the lock back, or one hold of several. Resolves when Redis has confirmed it, or when the lock is free because
   * its ttl is over.
   * @throws LockLost if it was lost before: what was done under it was not protected to the end
   */
  async release(): Promise<void> {
    if (this.#holds === 0) {
      throw new StockadeError(
        'lock_not_held',
        `the lock ${this.name} was released more often than it was held`,
      );
    }
    if (!this.held) {
      // In Redis it may still be his, and a renewal under way would prolong it: with him that ends.
      if (--this.#holds === 0 && !this.#loss) this.#host.release().catch(() => {});
      throw this.#loss ?? this.#lost('its time is over');
    }
    if (--this.#holds > 0) return;
    if (!(await this.#host.release())) throw this.#lost('at its release somebody else held it, or nobody');
  }

  /** For the lock's own machinery: tells the holder. */
  lose(reason: string, cause?: unknown): void {
    if (this.#loss) return;
    this.#loss = this.#lost(reason, cause);
    this.#controller?.abort(this.#loss);
  }

  #lost(reason: string, cause?: unknown): LockLost {
    return new LockLost(this.name, this.token, reason, cause);
  }
}
