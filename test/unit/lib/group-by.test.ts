import { expect, it } from 'vitest';
import { minId } from '../../../src/engine/min-id.ts';
import { groupBy } from '../../../src/lib/group-by.ts';

it('groups come in the order of their first items, and items in their order', () => {
  const groups = groupBy([5, 2, 7, 4, 9], (n) => n % 2);
  expect([...groups]).toEqual([
    [1, [5, 7, 9]],
    [0, [2, 4]],
  ]);
  expect(groupBy([], String).size).toBe(0);
});

it.each([
  [['b', 'a', 'c'], 'a'],
  [['10', '9'], '10'],
  [['B', 'a'], 'B'],
  [['a'], 'a'],
])('the smallest of %j by byte order is %j', (ids, least) => {
  expect(minId(ids)).toBe(least);
});
