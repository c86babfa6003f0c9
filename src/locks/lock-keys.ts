import { InvalidInput } from '../engine/errors.ts';
import { FENCE, fenceKey, lockKey } from './fenced.ts';
import { MAX_NAME_CHARACTERS } from './lock-limits.ts';

/** The keys of a lock. They share a hash tag, so that one script may use them all, in a cluster too. */
export interface LockKeys {
  readonly lock: string;
  readonly fence: string;
  /** Channel on which releases are published. */
  readonly channel: string;
}

/** A hash tag in the name puts the lock in the slot of the data that it protects. @throws InvalidInput */
export function lockKeys(name: string): LockKeys {
  // A program without types may pass anything.
  if (typeof name !== 'string') throw invalidName('must be a text');
  if (name === '' || name.length > MAX_NAME_CHARACTERS)
    throw invalidName(`has ${name.length} characters, but must have 1 to ${MAX_NAME_CHARACTERS}`);
  const lock = lockKey(name);
  if (lock.endsWith(FENCE))
    throw invalidName(
      `must not end with "${FENCE}": that is the fence of ${lock.slice(0, -FENCE.length)}, another lock`,
    );
  return { lock, fence: fenceKey(name), channel: `${lock}:released` };
}

function invalidName(problem: string): InvalidInput {
  return new InvalidInput('the name of the lock is not valid', [{ field: 'name', problem }]);
}
