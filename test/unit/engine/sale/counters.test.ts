/** Sums over the counters of a sale's segments. */
import { describe, expect, it } from 'vitest';
import type { SegmentSnapshot } from '../../../../src/engine/contract.ts';
import { begunUnits } from '../../../../src/engine/sale/begun-units.ts';
import { unitsLeft } from '../../../../src/engine/sale/units-left.ts';

describe('the units left in a sale', () => {
  const holding = (left: number, inTransit: number) =>
    ({ counters: { left, inTransit } }) as unknown as SegmentSnapshot;
  const lacking = { counters: undefined } as unknown as SegmentSnapshot;

  it('are those of all segments, and those in transit between them', () => {
    expect(unitsLeft([holding(5, 0), holding(7, 2), holding(0, 1)])).toBe(15);
  });

  it('are unknown if the backend lacks a segment, or all', () => {
    expect(unitsLeft([holding(5, 0), lacking])).toBeUndefined();
    expect(unitsLeft([])).toBeUndefined();
  });
});

it('a generation began with what was supplied, without what came later and with what was withdrawn since', () => {
  expect(begunUnits({ supplied: 100, returned: 20, credited: 3, withdrawn: 7 })).toBe(84);
});
