import { describe, expect, it } from 'vitest';
import { slotOf } from '../../../../src/engine/cluster/slot.ts';

/** The slots are those of Redis (CLUSTER KEYSLOT). */
describe('the slot of a key', () => {
  it.each([
    ['', 0],
    ['123456789', 12_739],
    ['somekey', 11_058],
    ['foo{hash_tag}', 2_515],
    ['bar{hash_tag}', 2_515],
    ['hash_tag', 2_515],
    // Without a tag, or with an empty one, the whole key counts.
    ['foo{}{bar}', 8_363],
    ['foo{bar', 15_278],
    ['foo}bar', 7_223],
    ['{}bar', 6_479],
    ['foo{', 7_673],
    ['{}', 15_257],
  ])('%j is %i', (key, slot) => {
    expect(slotOf(key)).toBe(slot);
  });

  it.each([
    ['the first tag', 'foo{bar}{zap}', 'bar'],
    ['a tag at the start', '{bar}foo', 'bar'],
    ['a tag behind a closing brace', '}foo{bar}', 'bar'],
    ['a tag with a brace', 'foo{{bar}}zap', '{bar'],
    ['a tag of one character', 'foo{b}', 'b'],
  ])('is that of %s', (_, key, hashed) => {
    expect(slotOf(key)).toBe(slotOf(hashed));
  });
});
