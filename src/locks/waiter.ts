import { OutcomeUnknown } from '../engine/errors.ts';
import { LockNotAcquired } from './lock-errors.ts';
import type { LockHandle } from './lock-handle.ts';

export interface WaitOptions {
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Content with a refusal: does not wait until the lock is free. */
  readonly tryOnce: boolean;
}

/** Where he waits. */
export interface Place {
  /** Called when the waiter is settled, however it came. */
  gone(): void;
  /** Why it was not his so far. */
  readonly fault: unknown;
}

/** One caller who waits for a lock, until it is his, his time is over, or he gives up. Settled exactly once. */
export class Waiter {
  readonly hasty: boolean;
  /** `undefined` is for the hasty. */
  readonly granted: Promise<LockHandle | undefined>;
  settled = false;
  #outcomeUnknown = false;
  #resolve!: (handle: LockHandle | undefined) => void;
  #reject!: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #place: Place;

  constructor(name: string, { waitMs, signal, tryOnce: hasty }: WaitOptions, place: Place) {
    this.hasty = hasty;
    this.#place = place;
    this.granted = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#timer = setTimeout(
      () => this.refuse(new LockNotAcquired(name, `it was not free within ${waitMs} ms`, place.fault)),
      waitMs,
    );
    this.#signal = signal;
    signal?.addEventListener('abort', this.#abort, { once: true });
  }

  grant(handle: LockHandle | undefined): void {
    if (this.#settle()) this.#resolve(handle);
  }

  /** An attempt has failed: that is enough for the hasty, unless an earlier one may have succeeded for them. */
  failed(error: unknown): void {
    if (error instanceof OutcomeUnknown) this.#outcomeUnknown = true;
    else if (!this.#outcomeUnknown) this.refuse(error);
  }

  refuse(error: unknown): void {
    if (this.#settle()) this.#reject(error);
  }

  readonly #abort = (): void => this.refuse(this.#signal!.reason);

  #settle(): boolean {
    if (this.settled) return false;
    this.settled = true;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#place.gone();
    return true;
  }
}
