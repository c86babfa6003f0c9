import { describe, expect, test } from 'vitest';
import { trendOf } from '../../../bench/soak/trend.ts';

const series = (valueAt: (i: number) => number) =>
  Array.from({ length: 100 }, (_, i) => ({ seconds: i * 5, value: valueAt(i) }));

describe('a trend', () => {
  test('is flat if samples go up and down, and if a quarter of them are outliers', () => {
    const noisy = series((i) => 300 + 20 * Math.sin(i) + (i % 4 === 0 ? 500 : 0));
    expect(trendOf(noisy, 16)).toMatchObject({ isFlat: true });
    expect(Math.abs(trendOf(noisy, 16).growth)).toBeLessThan(16);
  });

  test('grows as most samples grow, in spite of a few outliers', () => {
    const growing = series((i) => 300 + 0.5 * i + (i % 10 === 0 ? -250 : 0));
    const { growth, allowed, isFlat } = trendOf(growing, 16);
    expect(growth).toBeCloseTo(49.5, 0);
    expect(allowed).toBeCloseTo(16, 0);
    expect(isFlat).toBe(false);
  });

  test('may fall', () => {
    expect(
      trendOf(
        series((i) => 1_000 - i),
        1,
      ),
    ).toMatchObject({ isFlat: true });
  });

  test('a twentieth of the median is flat, and so is a tiny amount', () => {
    expect(
      trendOf(
        series((i) => 1_000 + 0.4 * i),
        1,
      ).isFlat,
    ).toBe(true);
    expect(
      trendOf(
        series((i) => 1_000 + 0.7 * i),
        1,
      ).isFlat,
    ).toBe(false);
    expect(
      trendOf(
        series((i) => i / 100),
        4,
      ).isFlat,
    ).toBe(true);
  });

  test('of a single sample is none', () => {
    expect(trendOf([{ seconds: 1, value: 7 }], 0)).toMatchObject({ median: 7, growth: 0, isFlat: true });
  });
});
