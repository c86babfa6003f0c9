/** The locks of segments, on the server that holds the segment. */
import type { LockHandle } from '../../locks/lock-handle.ts';
import type { Locks } from '../../locks/locks.ts';
import type { SegmentRef } from '../contract.ts';
import type { Keys } from '../redis/protocol/keys.ts';

export interface SegmentLocks {
  /**
   * The lock of a segment, as soon as it is free.
   * @throws LockNotAcquired, NotExecuted: it was not free, or its server could not be reached, for `waitMs`; BackendCorrupt
   */
  lock(segment: SegmentRef, waitMs: number): Promise<LockHandle>;
  /** @throws LockLost, or another error: the lock is free when its ttl is over, at the latest */
  release(segment: SegmentRef, handle: LockHandle): Promise<void>;
  close(): Promise<void>;
}

/** On a single Redis. */
export class ServerLocks implements SegmentLocks {
  readonly #locks: Locks;
  readonly #keys: Keys;

  constructor(locks: Locks, keys: Keys) {
    this.#locks = locks;
    this.#keys = keys;
  }

  lock(segment: SegmentRef, waitMs: number): Promise<LockHandle> {
    return this.#locks.lock(this.#keys.segment(segment).lock, { waitMs });
  }

  release(_: SegmentRef, handle: LockHandle): Promise<void> {
    return handle.release();
  }

  close(): Promise<void> {
    return this.#locks.close();
  }
}
