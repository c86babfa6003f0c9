/**
 * The items in their order, in lists of at most `most` items. @param sizeOf for items that count for more than one; an item that is
 * too large by itself is alone in its list
 */
export function chunksOf<T>(
  items: readonly T[],
  most: number,
  sizeOf: (item: T) => number = () => 1,
): readonly T[][] {
  const chunks: T[][] = [];
  let room = 0;
  for (const item of items) {
    const size = sizeOf(item);
    if (chunks.length === 0 || size > room) {
      chunks.push([]);
      room = most;
    }
    chunks.at(-1)!.push(item);
    room -= size;
  }
  return chunks;
}
