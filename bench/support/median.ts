import { rounded } from './figures.ts';

/** Of an even number of values, the mean of the middle two. @throws RangeError if there are none */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('there is no median of nothing');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The median of one figure of many measurements, rounded; `undefined` if none of them has it. */
export function medianOf<T>(
  measurements: readonly T[],
  figure: (measurement: T) => number | undefined,
  digits: number,
): number | undefined {
  const known = measurements.map(figure).filter((value) => value !== undefined);
  return known.length === 0 ? undefined : rounded(median(known), digits);
}
