/** What the console's page tells of what is sold, and how fast. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
// @ts-expect-error The page is JavaScript.
import { driftOf, soldOf, stateOf } from '../../../src/http/ops/console/format.js';
// @ts-expect-error The page is JavaScript.
import { SoldRate } from '../../../src/http/ops/console/sold-rate.js';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** Every second a picture, with one unit more. */
function run(rate: SoldRate, from: number, seconds: number): number | undefined {
  let told: number | undefined;
  for (let i = 0; i < seconds; i++) {
    vi.advanceTimersByTime(1_000);
    told = rate.add(from + i);
  }
  return told;
}

test('is that of the last seconds', () => {
  expect(run(new SoldRate(), 0, 20)).toBe(1);
});

test('begins anew after a pause: what was sold while the page was hidden says nothing about now', () => {
  const rate = new SoldRate();
  run(rate, 0, 20);
  vi.advanceTimersByTime(3_600_000);
  expect(rate.add(1_000_000)).toBeUndefined();
  expect(run(rate, 1_000_001, 1)).toBe(1);
});

test('is not told of units that were read long ago', () => {
  const rate = new SoldRate();
  run(rate, 0, 20);
  vi.advanceTimersByTime(60_000);
  expect(rate.add(19, 60_000)).toBeUndefined();
});

const SOLD_OUT = { state: 'open', startsAt: '2020-01-01T00:00:00Z', stock: 90, movedUnits: 10, remaining: 0 };

test.each([
  [{ committedUnits: 95 }, 'sold out', 100, 5],
  [{ committedUnits: 100, behindHead: 7, offeredUnits: 60 }, 'in offers', 40, 0],
  [{ committedUnits: 40, behindHead: 7, offeredUnits: 0 }, 'in offers', 40, 60],
  [{ committedUnits: 100, behindHead: 7 }, 'in offers', undefined, 0],
  [{ committedUnits: 100, behindHead: 7, offeredUnits: 0 }, 'sold out', 100, 0],
  // Closed, or without a queue again, with more offers than are counted.
  [{ committedUnits: 100, behindHead: 0 }, 'in offers', undefined, 0],
  [{ committedUnits: 100, offeredUnits: 60, remaining: undefined }, 'rebuilding', undefined, undefined],
])('%o is %s, %s units are sold, %s are on their way', (more, text, sold, drift) => {
  const sale = { ...SOLD_OUT, ...more };
  expect(stateOf(sale)).toMatchObject({ text });
  expect([soldOf(sale), driftOf(sale)]).toEqual([sold, drift]);
});
