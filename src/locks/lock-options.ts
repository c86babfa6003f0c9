/** The options of the locks, and their checks. A mistyped one would have no effect, and a program without types would not learn of it. */
import { InvalidInput } from '../engine/errors.ts';
import type { IoredisClient } from '../redis/clients.ts';
import type { LockHandle } from './lock-handle.ts';
import { DEFAULT_WAIT_MS, MAX_WAIT_MS } from './lock-limits.ts';

/** The Redis in which the locks are kept: the one that holds what they protect. Give either `url` or `redis`. */
export interface LocksOptions {
  /** `redis://[user:password@]host[:port]`, or `rediss://` for TLS. */
  readonly url?: string | undefined;
  /**
   * An ioredis client of a single Redis. The locks open two connections of their own with its options, among them its
   * `keyPrefix`.
   */
  readonly redis?: IoredisClient | undefined;
  /** Milliseconds after which the lock of a dead holder is free: 100 to 600,000, default 10,000. */
  readonly ttlMs?: number | undefined;
}

export interface TryLockOptions {
  /**
   * A handle that the caller has. If it holds this very lock, the lock is entered once more without asking Redis. A handle of other
   * `Locks` does not hold it: they may be in another Redis.
   */
  readonly holder?: LockHandle | undefined;
}

export interface LockOptions extends TryLockOptions {
  /** How long to wait for the lock, in milliseconds: 1 to 600,000, default 10,000. */
  readonly waitMs?: number | undefined;
  /** Ends the wait; `lock` then throws the signal's reason. Locks that are held stay held. */
  readonly signal?: AbortSignal | undefined;
}

const OPEN: readonly string[] = ['url', 'redis', 'ttlMs'] satisfies (keyof LocksOptions)[];
const TRY: readonly string[] = ['holder'] satisfies (keyof TryLockOptions)[];
const WAIT: readonly string[] = ['holder', 'waitMs', 'signal'] satisfies (keyof LockOptions)[];

const NOT_OPENED = 'the locks can’t be opened';
const NOT_ACQUIRED = 'the lock can’t be acquired';

/** @throws InvalidInput */
export function openOptions(options: LocksOptions): LocksOptions {
  return known(options, OPEN, NOT_OPENED);
}

/** @throws InvalidInput */
export function tryOptions(options: TryLockOptions): TryLockOptions {
  return known(options, TRY, NOT_ACQUIRED);
}

/** @throws InvalidInput, RangeError for a wait out of range */
export function waitOptions(
  options: LockOptions,
): LockOptions & { readonly waitMs: number; readonly signal: AbortSignal | undefined } {
  const { waitMs = DEFAULT_WAIT_MS, signal, holder } = known(options, WAIT, NOT_ACQUIRED);
  if (typeof waitMs !== 'number' || !(waitMs >= 1 && waitMs <= MAX_WAIT_MS))
    throw new RangeError(`waitMs is ${shown(waitMs)}, but must be a number from 1 to ${MAX_WAIT_MS}`);
  // Programs without types pass `null` for none.
  if (signal && !(signal instanceof AbortSignal))
    throw new InvalidInput(NOT_ACQUIRED, [{ field: 'signal', problem: 'must be an AbortSignal' }]);
  return { waitMs, signal, holder };
}

export function invalidOption(field: string, problem: string): InvalidInput {
  return new InvalidInput(NOT_OPENED, [{ field, problem }]);
}

function known<T extends object>(options: T, names: readonly string[], otherwise: string): T {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new InvalidInput(otherwise, [{ field: 'options', problem: 'must be an object' }]);
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return options;
  const are = names.length === 1 ? 'the only option is' : 'the options are';
  throw new InvalidInput(otherwise, [
    { field: unknown, problem: `is not an option: ${are} ${names.join(', ')}` },
  ]);
}

function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : JSON.stringify(value);
}
