/** Splits a stock into parts that differ by one unit at most: the first `stock mod parts` of them have one more. */
export function splitEvenly(stock: number, parts: number): number[] {
  const base = Math.floor(stock / parts);
  return Array.from({ length: parts }, (_, part) => base + (part < stock % parts ? 1 : 0));
}

/**
 * Takes `units` in all from the parts, from the largest first, so that the rest is as even as possible. @returns the
 * units to take from each part
 */
export function levelDown(parts: readonly number[], units: number): number[] {
  const order = parts.map((_, part) => part).sort((a, b) => parts[b]! - parts[a]!);
  const taken = parts.map(() => 0);
  let rest = Math.min(
    units,
    parts.reduce((sum, part) => sum + part, 0),
  );
  // Lowers the first `count` parts to the level of the next one, or as far as `rest` allows.
  for (let count = 1; rest > 0; count++) {
    const level = parts[order[count] ?? -1] ?? 0;
    const step = Math.min(rest, (parts[order[0]!]! - taken[order[0]!]! - level) * count);
    for (const [i, share] of splitEvenly(step, count).entries()) taken[order[i]!]! += share;
    rest -= step;
  }
  return taken;
}
