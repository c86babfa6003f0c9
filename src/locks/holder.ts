import { Lease, type LeaseHost } from './lease.ts';
import { type HandleHost, LockHandle } from './lock-handle.ts';
import type { LockTimes } from './lock-limits.ts';

/** An acquired lock, and when the command that acquired it was sent. */
export interface Acquired {
  readonly owner: string;
  readonly token: number;
  /** On the clock of `monotonicMs`. */
  readonly sentAt: number;
}

/** What a holder needs of the queue that gave it the lock. */
export interface HolderHost {
  /** @returns false if the holder has lost the lock. @throws if the outcome is unknown */
  renew(holder: Holder): Promise<boolean>;
  /** @returns false if the lock turned out to be lost */
  release(holder: Holder): Promise<boolean>;
  lost(holder: Holder, reason: string, cause: unknown): void;
}

/** The current hold of a lock in this process: ties the handle and the lease to the queue. */
export class Holder implements HandleHost, LeaseHost {
  readonly owner: string;
  readonly handle: LockHandle;
  readonly lease: Lease;
  readonly #host: HolderHost;

  constructor(host: HolderHost, name: string, { owner, token, sentAt }: Acquired, times: LockTimes) {
    this.#host = host;
    this.owner = owner;
    this.handle = new LockHandle(name, token, this);
    this.lease = new Lease(this, times, sentAt);
  }

  get trusted(): boolean {
    return this.lease.trusted;
  }

  renew(): Promise<boolean> {
    return this.#host.renew(this);
  }

  release(): Promise<boolean> {
    return this.#host.release(this);
  }

  lost(reason: string, cause?: unknown): void {
    this.#host.lost(this, reason, cause);
  }
}
