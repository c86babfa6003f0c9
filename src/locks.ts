/** Locks in Redis, by themselves: nothing of the shop is loaded. docs/locks.md says what they promise. */
export { BackendCorrupt, InvalidInput, NotExecuted, StockadeError } from './engine/errors.ts';
export { fenced, fenceKey } from './locks/fenced.ts';
export { LockLost, LockNotAcquired } from './locks/lock-errors.ts';
export type { LockHandle } from './locks/lock-handle.ts';
export { type LockOptions, Locks, type LocksOptions, type TryLockOptions } from './locks/locks.ts';
export type { IoredisClient } from './redis/clients.ts';
