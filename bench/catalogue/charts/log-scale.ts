/** A logarithmic scale, for values that differ by a factor of a thousand. */
export interface LogScale {
  /** One for each power of ten, including both ends. */
  readonly ticks: readonly number[];
  /** 0 for the lowest tick, 1 for the highest. Values below the lowest tick get 0. */
  at(value: number): number;
}

/** @param values if none is above zero, the scale goes from 1 to 10 */
export function logScale(values: readonly number[]): LogScale {
  const powers = values.filter((value) => value > 0).map(Math.log10);
  const least = powers.length === 0 ? 0 : Math.floor(Math.min(...powers));
  const most = Math.max(least + 1, Math.ceil(Math.max(...powers)));
  const ticks = Array.from({ length: most - least + 1 }, (_, i) => 10 ** (least + i));
  const at = (value: number) => (value <= 0 ? 0 : Math.max(0, (Math.log10(value) - least) / (most - least)));
  return { ticks, at };
}

export function tickText(tick: number): string {
  if (tick >= 1_000) return tick.toLocaleString('en', { notation: 'compact' });
  return String(Number(tick.toPrecision(1)));
}
