import { rounded } from './figures.ts';

/** For an even number of values, the mean of the middle two. @throws RangeError if there are none */
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

/** The first and the third quartile, interpolated. @throws RangeError if there are no values */
export function quartiles(values: readonly number[]): readonly [number, number] {
  if (values.length === 0) throw new RangeError('there are no quartiles of nothing');
  const sorted = [...values].sort((a, b) => a - b);
  return [at(sorted, 0.25), at(sorted, 0.75)];
}

function at(sorted: readonly number[], share: number): number {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const [from, to] = [sorted[below]!, sorted[Math.ceil(place)]!];
  return from + (to - from) * (place - below);
}
