import { StockadeError } from '../engine/errors.ts';

/**
 * The holder has lost its lock, and another process may hold it. Stop the work under the lock; later writes are
 * refused by their token.
 */
export class LockLost extends StockadeError {
  readonly lock: string;
  readonly token: number;

  constructor(lock: string, token: number, reason: string, cause?: unknown) {
    super('lock_lost', `the lock ${lock} (token ${token}) is lost: ${reason}`, { cause });
    this.lock = lock;
    this.token = token;
  }
}

/** The key of the lock is on another server of the cluster now. The command did nothing. */
export class LockMoved extends StockadeError {
  /** Who holds the lock, if the command was to end that. */
  readonly owner: string | undefined;

  constructor(message: string, owner: string | undefined, cause?: unknown) {
    super('lock_moved', message, { cause });
    this.owner = owner;
  }
}

/** Why a lock was not acquired, or was lost. */
export const LOCKS_CLOSED = 'the locks of this process were closed';

/**
 * The lock was not acquired: the wait limit has passed, too many callers wait, or the locks were closed. Nothing is
 * held.
 */
export class LockNotAcquired extends StockadeError {
  readonly lock: string;

  constructor(lock: string, reason: string, cause?: unknown) {
    super('lock_not_acquired', `the lock ${lock} was not acquired: ${reason}`, { cause });
    this.lock = lock;
  }
}
