import { InvalidInput } from '../engine/errors.ts';
import { fenceKey, lockKey } from './fenced.ts';
import { MAX_NAME_CHARACTERS } from './lock-limits.ts';

/** Where a lock is kept: its keys share a hash tag, so that a script may touch all of them in a cluster as well. */
export interface LockKeys {
  readonly lock: string;
  readonly fence: string;
  /** On which its releases are told. */
  readonly channel: string;
}

/** By the name's hash tag the lock lies with what it protects. @throws InvalidInput */
export function lockKeys(name: string): LockKeys {
  if (name === '' || name.length > MAX_NAME_CHARACTERS) {
    const problem = `has ${name.length} characters: must have 1 to ${MAX_NAME_CHARACTERS}`;
    throw new InvalidInput('the lock can’t be named so', [{ field: 'name', problem }]);
  }
  const lock = lockKey(name);
  return { lock, fence: fenceKey(name), channel: `${lock}:released` };
}
