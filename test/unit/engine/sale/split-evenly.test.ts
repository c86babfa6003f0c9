import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { levelDown, splitEvenly } from '../../../../src/engine/sale/split-evenly.ts';

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

describe('splitEvenly', () => {
  it.each([
    [7, 3, [3, 2, 2]],
    [6, 3, [2, 2, 2]],
    [1, 2, [1, 0]],
    [0, 2, [0, 0]],
    [5, 1, [5]],
  ])('splits %i in %i as %j', (stock, parts, split) => {
    expect(splitEvenly(stock, parts)).toEqual(split);
  });
});

describe('levelDown', () => {
  it.each([
    // From the largest alone, as far as it is above the next one.
    [[4, 10, 6], 3, [0, 3, 0]],
    [[4, 10, 6], 4, [0, 4, 0]],
    // From the two largest then, and at last from all.
    [[4, 10, 6], 6, [0, 5, 1]],
    [[4, 10, 6], 8, [0, 6, 2]],
    [[4, 10, 6], 11, [1, 7, 3]],
    [[3, 3, 3], 2, [1, 1, 0]],
    // No more than there is.
    [[1, 2], 9, [1, 2]],
    [[3, 3], 6, [3, 3]],
    [[5], 5, [5]],
    [[5, 2], 0, [0, 0]],
    [[0, 0], 4, [0, 0]],
  ])('of %j takes %i as %j', (parts, units, taken) => {
    expect(levelDown(parts, units)).toEqual(taken);
  });

  it('leaves no part that has given units more than one unit below another part', () => {
    const parts = fc.array(fc.nat({ max: 50 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(parts, fc.nat({ max: 500 }), (before, units) => {
        const taken = levelDown(before, units);
        expect(sum(taken)).toBe(Math.min(units, sum(before)));
        const after = before.map((part, i) => part - taken[i]!);
        const largest = Math.max(...after);
        for (const [i, part] of after.entries())
          if (taken[i]! > 0) expect(part).toBeGreaterThanOrEqual(largest - 1);
      }),
    );
  });
});
