/** The entry for programs that use the locks alone; it loads nothing of the shop. docs/locks.md says what the locks promise. */
export { BackendCorrupt, InvalidInput, NotExecuted, StockadeError } from './engine/errors.ts';
export { fenced, fenceKey } from './locks/fenced.ts';
export { LockLost, LockNotAcquired } from './locks/lock-errors.ts';
export type { LockHandle } from './locks/lock-handle.ts';
export type { LockOptions, LocksOptions, TryLockOptions } from './locks/lock-options.ts';
export { Locks } from './locks/locks.ts';
export type { IoredisClient } from './redis/clients.ts';
