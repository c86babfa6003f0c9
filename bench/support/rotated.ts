/** The list, beginning at another place: what is measured takes turns, because the speed of a machine drifts. */
export function rotated<T>(list: readonly T[], by: number): T[] {
  const from = by % list.length;
  return [...list.slice(from), ...list.slice(0, from)];
}
