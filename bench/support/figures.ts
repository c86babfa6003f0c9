/** How figures are rounded and shown. More digits than a run can tell apart only look exact. */
export function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}

export function count(value: number): string {
  return Math.round(value).toLocaleString('en');
}

export function decimals(value: number | undefined, digits: number): string | undefined {
  return value?.toFixed(digits);
}

/** Whether a ratio reaches what the product promises of it. A bar never decides whether a bench succeeds. */
export function barText(ratio: number, bar: number): string {
  return `≥ ${bar.toFixed(2)} ${ratio >= bar ? 'met' : 'not met'}`;
}
