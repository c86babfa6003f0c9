import { describe, expect, test } from 'vitest';
import { logScale, tickText } from '../../../bench/catalogue/charts/log-scale.ts';

describe('logScale', () => {
  test('goes from the power of ten below the least value to that above the greatest', () => {
    expect(logScale([3, 250]).ticks).toEqual([1, 10, 100, 1_000]);
    expect(logScale([10, 100]).ticks).toEqual([10, 100]);
  });

  test('has equal distances between equal factors', () => {
    const scale = logScale([1, 10_000]);
    expect([1, 10, 100, 10_000].map(scale.at)).toEqual([0, 0.25, 0.5, 1]);
  });

  test('puts nothing outside of the axis', () => {
    const scale = logScale([10, 1_000]);
    expect([0, -1, 1].map(scale.at)).toEqual([0, 0, 0]);
  });

  test('has room for one value, and for none', () => {
    expect(logScale([10]).ticks).toEqual([10, 100]);
    expect(logScale([0]).ticks).toEqual([1, 10]);
  });
});

test('ticks are short', () => {
  expect([0.001, 1, 100, 1_000, 1_000_000].map(tickText)).toEqual(['0.001', '1', '100', '1K', '1M']);
});
