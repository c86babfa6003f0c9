import { StockadeError } from '../engine/errors.ts';
import { LockLost } from './lock-errors.ts';

/** What a handle needs of the hold behind it. */
export interface HandleHost {
  readonly trusted: boolean;
  /** @returns false if the lock turned out to be lost */
  release(): Promise<boolean>;
}

/**
 * A lock that is held, or was. The holder's code uses it to release the lock, to enter it once more (reentrance), to
 * learn of its loss, and to write under it.
 */
export class LockHandle {
  readonly name: string;
  /** The fencing token: greater than that of every earlier holder. Each write under the lock must carry it. */
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

  /** Enters the lock once more, which needs one more `release`. @throws LockLost */
  enter(): this {
    this.assertHeld();
    this.#holds++;
    return this;
  }

  /** @throws LockLost if the lock is lost or released */
  assertHeld(): void {
    if (!this.held)
      throw this.#loss ?? this.#lost(this.#holds > 0 ? 'its lease has expired' : 'it was released');
  }

  /**
   * Releases the lock, or one of several holds. Resolves when Redis has confirmed it, or when the ttl is over; if the
   * locks are closed meanwhile, after one more attempt at most.
   * @throws LockLost if the lock was lost before: work done under it was not protected to the end
   */
  async release(): Promise<void> {
    if (this.#holds === 0) {
      throw new StockadeError(
        'lock_not_held',
        `the lock ${this.name} was released more often than it was held`,
      );
    }
    if (!this.held) {
      // Redis may still have this owner, and a renewal under way would prolong the lock: releasing ends that.
      if (--this.#holds === 0 && !this.#loss) this.#host.release().catch(() => {});
      throw this.#loss ?? this.#lost('its lease has expired');
    }
    if (--this.#holds > 0) return;
    if (!(await this.#host.release()))
      throw this.#lost('when it was released, another owner held it, or none');
  }

  /** For the lock queue: marks the lock as lost, and aborts `signal`. */
  lose(reason: string, cause?: unknown): void {
    if (this.#loss) return;
    this.#loss = this.#lost(reason, cause);
    this.#controller?.abort(this.#loss);
  }

  #lost(reason: string, cause?: unknown): LockLost {
    return new LockLost(this.name, this.token, reason, cause);
  }
}
