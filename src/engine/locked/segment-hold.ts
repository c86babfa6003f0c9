/**
 * A lane's hold on the lock of its segment. One acquisition serves a whole batch. The lock is kept for the next batch
 * if that is ready within two turns of the event loop; after `HOLD_MAX_MS` it is released, so that others get it.
 *
 *   free ──batch──> held, serving ──served──> held, idle ──two turns──> free
 *                      ▲                        │
 *                      └────────batch───────────┘ ──held for HOLD_MAX_MS──> released, and acquired again
 */
import pLimit from 'p-limit';
import { monotonicMs } from '../../lib/monotonic.ts';
import type { LockHandle } from '../../locks/lock-handle.ts';

/** Not less than KEEP_MAX_MS (locks/lock-limits.ts): otherwise this process would pass the lock to itself instead of releasing it. */
export const HOLD_MAX_MS = 100;

export interface HeldLock {
  acquire(): Promise<LockHandle>;
  release(handle: LockHandle): Promise<void>;
}

export class SegmentHold {
  readonly #lock: HeldLock;
  readonly #unused: () => void;
  readonly #batches = pLimit(1);
  #handle: LockHandle | undefined;
  #heldSince = 0;
  /** How many batches have begun. */
  #begun = 0;

  /** @param unused called when the lock is not held and no batch waits */
  constructor(lock: HeldLock, unused: () => void) {
    this.#lock = lock;
    this.#unused = unused;
  }

  /** One batch at a time. @throws what the acquisition or the work throws */
  serve<T>(work: (handle: LockHandle) => Promise<T>): Promise<T> {
    return this.#batches(async () => {
      const batch = ++this.#begun;
      try {
        this.#handle = await this.#current();
        return await work(this.#handle);
      } catch (error) {
        // The lock may be lost although the handle does not know it yet. So the next batch acquires it again.
        const handle = this.#handle;
        this.#handle = undefined;
        void this.#release(handle);
        throw error;
      } finally {
        setImmediate(() => setImmediate(() => this.#releaseIfUnused(batch)));
      }
    });
  }

  async #current(): Promise<LockHandle> {
    const handle = this.#handle;
    const now = monotonicMs();
    if (handle?.held && now - this.#heldSince < HOLD_MAX_MS) return handle;
    this.#handle = undefined;
    // The new request is made before the release, so that the lock queue knows that this process waits, and lets others
    // go first.
    const [next] = await Promise.all([this.#lock.acquire(), this.#release(handle)]);
    this.#heldSince = monotonicMs();
    return next;
  }

  /** @param batch number of a batch that ended two turns ago. If another has begun since, the lock is kept for two turns after its end */
  #releaseIfUnused(batch: number): void {
    if (this.#begun !== batch) return;
    const handle = this.#handle;
    this.#handle = undefined;
    void this.#release(handle);
    this.#unused();
  }

  /** Errors are ignored. A lost lock did no harm: the take was refused, or it came before another process had the lock. */
  async #release(handle: LockHandle | undefined): Promise<void> {
    if (handle) await this.#lock.release(handle).catch(() => {});
  }
}
