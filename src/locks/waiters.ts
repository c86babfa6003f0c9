import { OutcomeUnknown } from '../engine/errors.ts';
import { Fifo } from '../lib/fifo.ts';
import { LockNotAcquired } from './lock-errors.ts';
import type { LockHandle } from './lock-handle.ts';
import { MAX_WAITERS } from './lock-limits.ts';

/** The queue may hold this many settled waiters beyond the number of those that still wait. */
const SETTLED_WAITERS_MAX = 64;

export interface WaitOptions {
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Makes one attempt, and accepts a refusal: does not wait until the lock is free. */
  readonly tryOnce: boolean;
}

/** The callers of this process that wait for one lock, first come first served. */
export class Waiters {
  readonly #lock: string;
  readonly #queue = new Fifo<Waiter>();
  readonly #emptied: () => void;
  #waiting = 0;
  /** Why the last attempt failed, if it did. A waiter whose time is over reports it. */
  fault: unknown;

  /** @param emptied called when the last waiter is settled */
  constructor(lock: string, emptied: () => void) {
    this.#lock = lock;
    this.#emptied = emptied;
  }

  /** How many callers still wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Resolves with the lock; with `undefined` only if `tryOnce` is set and the lock is held.
   * @throws LockNotAcquired, NotExecuted, BackendCorrupt, or the signal's reason
   */
  add(options: WaitOptions): Promise<LockHandle | undefined> {
    if (this.#waiting >= MAX_WAITERS) {
      throw new LockNotAcquired(this.#lock, `${MAX_WAITERS} callers wait for it in this process`);
    }
    this.#waiting++;
    const waiter = new Waiter(this.#lock, options, this);
    this.#queue.push(waiter);
    return waiter.granted;
  }

  /** The first caller that still waits. Settled waiters in front of it leave the queue. */
  first(): Waiter | undefined {
    while (this.#queue.peek()?.settled) this.#queue.shift();
    return this.#queue.peek();
  }

  /** The first waiter, if it makes one attempt only. Such a waiter joins only an empty queue. */
  firstTryingOnce(): Waiter | undefined {
    const first = this.first();
    return first?.tryOnce ? first : undefined;
  }

  refuseAll(error: unknown): void {
    for (let waiter = this.#queue.shift(); waiter; waiter = this.#queue.shift()) waiter.refuse(error);
  }

  /** Called by each waiter when it is settled. Settled waiters must not pile up behind one that waits long. */
  waiterSettled(): void {
    this.#waiting--;
    if (this.#queue.length > 2 * this.#waiting + SETTLED_WAITERS_MAX)
      this.#queue.keep(({ settled }) => !settled);
    if (this.#waiting === 0) this.#emptied();
  }
}

/** One caller that waits for a lock, until it gets it, its time is over, or it gives up. Settled exactly once. */
class Waiter {
  readonly tryOnce: boolean;
  readonly granted: Promise<LockHandle | undefined>;
  settled = false;
  #outcomeUnknown = false;
  #resolve!: (handle: LockHandle | undefined) => void;
  #reject!: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  readonly #signal: AbortSignal | undefined;
  readonly #queue: Pick<Waiters, 'fault' | 'waiterSettled'>;

  constructor(
    lock: string,
    { waitMs, signal, tryOnce }: WaitOptions,
    queue: Pick<Waiters, 'fault' | 'waiterSettled'>,
  ) {
    this.tryOnce = tryOnce;
    this.#queue = queue;
    this.granted = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.#timer = setTimeout(
      () => this.refuse(new LockNotAcquired(lock, `it was not free within ${waitMs} ms`, queue.fault)),
      waitMs,
    );
    this.#signal = signal;
    signal?.addEventListener('abort', this.#abort, { once: true });
  }

  grant(handle: LockHandle | undefined): void {
    if (this.#settle()) this.#resolve(handle);
  }

  /** An attempt has failed. That ends a waiter with one attempt, unless an earlier command may have acquired the lock. */
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
    this.#queue.waiterSettled();
    return true;
  }
}
