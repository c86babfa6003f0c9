/**
 * Whether a series of samples is flat, by the estimator of Theil (1950) and Sen (1968): the median of the slopes between all pairs
 * of samples. Up to 29 % of the samples may be outliers, from a late collection or other work on the machine, without an effect
 * on the slope; a line of least squares would follow them.
 */
import { median } from '../support/median.ts';

export interface Sampled {
  readonly seconds: number;
  readonly value: number;
}

export interface Trend {
  readonly median: number;
  /** The slope, times the time that the samples span. */
  readonly growth: number;
  /** Growth up to this counts as flat. */
  readonly allowed: number;
  readonly isFlat: boolean;
}

/** With more samples than this, only every n-th is used, because the number of pairs grows with the square. */
const MOST_SAMPLES = 1_000;
/** Share of the median that counts as flat. */
const FLAT_SHARE = 0.05;

/** @param least growth up to this is flat, however small the median */
export function trendOf(samples: readonly Sampled[], least: number): Trend {
  const step = Math.ceil(samples.length / MOST_SAMPLES);
  const kept = samples.filter((_, i) => i % step === 0);
  const slopes = kept.flatMap((from, i) =>
    kept.slice(i + 1).map((to) => (to.value - from.value) / (to.seconds - from.seconds)),
  );
  const middle = median(kept.map(({ value }) => value));
  const span = (kept.at(-1)?.seconds ?? 0) - (kept[0]?.seconds ?? 0);
  const growth = slopes.length === 0 ? 0 : median(slopes) * span;
  const allowed = Math.max(least, middle * FLAT_SHARE);
  return { median: middle, growth, allowed, isFlat: growth <= allowed };
}
