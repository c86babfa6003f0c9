/** The keys and the times of a lock. Other programs and other versions use the same keys. */
import { describe, expect, it } from 'vitest';
import { InvalidInput } from '../../../src/engine/errors.ts';
import { fenceKey, lockKey } from '../../../src/locks/fenced.ts';
import { lockKeys } from '../../../src/locks/lock-keys.ts';
import { lockTimes } from '../../../src/locks/lock-limits.ts';

describe('the keys of a lock', () => {
  it.each([
    ['row', '{row}'],
    ['shop:{concert:3}:lock', 'shop:{concert:3}:lock'],
    ['{a}', '{a}'],
    // An empty tag is none.
    ['a{}b', '{a{}b}'],
    ['a}b', '{a}b}'],
    ['a{b', '{a{b}'],
  ])('of %j begin with %j', (name, lock) => {
    expect(lockKey(name)).toBe(lock);
    expect(fenceKey(name)).toBe(`${lock}:fence`);
    expect(lockKeys(name)).toEqual({ lock, fence: `${lock}:fence`, channel: `${lock}:released` });
  });

  it.each([undefined, null, 7, {}])('must be of a text, and not %j', (name) => {
    const refused = () => lockKeys(name as string);
    expect(refused).toThrow(InvalidInput);
    expect(refused).toThrow('name must be a text');
  });

  it('may be as long as 512 characters, and not empty', () => {
    expect(lockKeys('x'.repeat(512)).lock).toHaveLength(514);
    for (const length of [0, 513]) {
      const refused = () => lockKeys('x'.repeat(length));
      expect(refused).toThrow(InvalidInput);
      expect(refused).toThrow(`name has ${length} characters, but must have 1 to 512`);
    }
  });
});

it('can’t be the fence of another lock: each of the two would change the other', () => {
  expect(() => lockKeys(fenceKey('row'))).toThrow(
    'name must not end with ":fence": that is the fence of {row}, another lock',
  );
  expect(lockKeys('row:fence').lock).toBe('{row:fence}');
});

describe('the times of a lock', () => {
  it.each([
    [100, { ttlMs: 100, renewEveryMs: 100 / 3, answerWithinMs: 25, trustMs: 90 }],
    [3_000, { ttlMs: 3_000, renewEveryMs: 1_000, answerWithinMs: 750, trustMs: 2_700 }],
    [600_000, { ttlMs: 600_000, renewEveryMs: 200_000, answerWithinMs: 1_000, trustMs: 540_000 }],
  ])('follow from its ttl of %i ms', (ttlMs, times) => {
    expect(lockTimes(ttlMs)).toEqual(times);
  });

  it.each([99, 600_001, 100.5, -1, Number.NaN, Number.POSITIVE_INFINITY])('of %d ms are refused', (ttlMs) => {
    expect(() => lockTimes(ttlMs)).toThrow(RangeError);
  });
});
