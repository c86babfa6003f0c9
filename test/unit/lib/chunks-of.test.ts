import { describe, expect, it } from 'vitest';
import { chunksOf } from '../../../src/lib/chunks-of.ts';

describe('chunksOf', () => {
  it.each([
    [[], []],
    [[1], [[1]]],
    [[1, 2], [[1, 2]]],
    [
      [1, 2, 3],
      [[1, 2], [3]],
    ],
    [
      [1, 2, 3, 4],
      [
        [1, 2],
        [3, 4],
      ],
    ],
  ])('makes lists of two of %j', (items, chunks) => {
    expect(chunksOf(items, 2)).toEqual(chunks);
  });

  it('makes no list before the first item, even if that has no size', () => {
    expect(chunksOf([0, 0, 2, 1], 2, (size) => size)).toEqual([[0, 0, 2], [1]]);
  });

  it('counts items by their size, and leaves a large one alone', () => {
    const chunks = chunksOf(['aa', 'b', 'c', 'dddd', 'e', 'fff'], 3, ({ length }) => length);
    expect(chunks).toEqual([['aa', 'b'], ['c'], ['dddd'], ['e'], ['fff']]);
  });
});
