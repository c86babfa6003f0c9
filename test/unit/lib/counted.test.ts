import { expect, test } from 'vitest';
import { counted, countedAre } from '../../../src/lib/counted.ts';

test('one thing is named in the singular', () => {
  expect([0, 1, 2].map((count) => counted(count, 'unit'))).toEqual(['0 units', '1 unit', '2 units']);
  expect([0, 1, 2].map((count) => countedAre(count, 'unit'))).toEqual([
    '0 units are',
    '1 unit is',
    '2 units are',
  ]);
});
