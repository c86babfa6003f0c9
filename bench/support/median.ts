/** Of an even number of values, the mean of the middle two. @throws RangeError if there are none */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('there is no median of nothing');
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
