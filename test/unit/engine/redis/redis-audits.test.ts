import { expect, test } from 'vitest';
import { decodeAudit } from '../../../../src/engine/redis/redis-audits.ts';

const COUNTS = { left: 7, taken: 3, supplied: 10, returned: 0, credited: 0, withdrawn: 0, seq: 3 };

test('a segment with a valid state and valid counters is sound', () => {
  const values = ['open', '7', '3', '10', '0', '0', '0', '3'];
  expect(decodeAudit(values)).toEqual({ found: 'sound', state: 'open', ...COUNTS, inTransit: 0 });
});

test('a segment in which others have written is a fault, which names each invalid field with its value', () => {
  expect(decodeAudit(['ajar', '7', '-3', '10', '0', '0', '0', null])).toEqual({
    found: 'fault',
    fault: 'state is "ajar", taken is "-3", seq is null',
  });
});

test('if only the units left are invalid, the other counters can be used', () => {
  expect(decodeAudit(['open', '7 or 8', '3', '10', '0', '0', '0', '3'])).toMatchObject({
    found: 'fault',
    fault: 'left is "7 or 8"',
    others: { ...COUNTS, left: Number.NaN, state: 'open' },
  });
});
