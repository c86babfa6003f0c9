/** Rounding of figures. Digits beyond a run's precision would only look exact. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

export function count(value: number): string {
  return Math.round(value).toLocaleString('en');
}

export function decimals(value: number | undefined, digits: number): string | undefined {
  return value?.toFixed(digits);
}

/** Whether a ratio reaches the promised one. A missed bar does not fail the bench. */
export function barText(ratio: number, bar: number): string {
  return `≥ ${bar.toFixed(2)} ${ratio >= bar ? 'met' : 'not met'}`;
}
