/** Least squares with coefficients that are not negative. */

/** One equation: the sum of `factors[i] * coefficient[i]` is `value`. */
export interface Equation {
  readonly factors: readonly number[];
  readonly value: number;
}

/**
 * The errors are relative to the values, so that a cost of 5 counts as much as one of 500. A coefficient that would be
 * negative is 0: all subsets of the coefficients are tried, of which there are few.
 * @throws RangeError without equations, or if no subset determines its coefficients
 */
export function fit(equations: readonly Equation[]): number[] {
  const width = equations[0]?.factors.length ?? 0;
  const scaled = equations.map(({ factors, value }) => factors.map((factor) => factor / value));
  let best: { coefficients: number[]; error: number } | undefined;
  for (let subset = 1; subset < 2 ** width; subset++) {
    const used = Array.from({ length: width }, (_, i) => i).filter((i) => subset & (1 << i));
    const solved = solveNormal(scaled, used);
    if (!solved || solved.some((c) => c < 0)) continue;
    const coefficients = Array.from({ length: width }, (_, i) => solved[used.indexOf(i)] ?? 0);
    const error = scaled.reduce((sum, row) => sum + (1 - dot(row, coefficients)) ** 2, 0);
    if (!best || error < best.error) best = { coefficients, error };
  }
  if (!best) throw new RangeError(`${equations.length} equations do not determine ${width} coefficients`);
  return best.coefficients;
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
}

/** Solves the normal equations of the columns `used` against a value of 1 in each row; `undefined`: singular. */
function solveNormal(rows: readonly (readonly number[])[], used: readonly number[]): number[] | undefined {
  const matrix = used.map((i) => [
    ...used.map((j) => rows.reduce((sum, row) => sum + row[i]! * row[j]!, 0)),
    rows.reduce((sum, row) => sum + row[i]!, 0),
  ]);
  for (let pivot = 0; pivot < used.length; pivot++) {
    const largest = matrix.slice(pivot).reduce((a, b) => (Math.abs(b[pivot]!) > Math.abs(a[pivot]!) ? b : a));
    matrix.splice(matrix.indexOf(largest), 1);
    matrix.splice(pivot, 0, largest);
    if (Math.abs(largest[pivot]!) < 1e-12) return undefined;
    for (const row of matrix) {
      if (row === largest) continue;
      const times = row[pivot]! / largest[pivot]!;
      for (let k = pivot; k <= used.length; k++) row[k]! -= times * largest[k]!;
    }
  }
  return matrix.map((row, i) => row[used.length]! / row[i]!);
}
