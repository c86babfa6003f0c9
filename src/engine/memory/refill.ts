import type { TakeOrder } from '../contract.ts';
import type { MemorySegment } from './memory-segment.ts';

/** What redis/lua/refill.lua does: half of the richest donor, at least what is missing, then the next richest. */
export function refill(
  segments: readonly MemorySegment[],
  receiver: number,
  orders: readonly TakeOrder[],
): void {
  const home = segments[receiver]!;
  const total = segments.reduce((sum, segment) => sum + segment.left, 0);
  const least = Math.min(...orders.map((order) => order.quantity));
  if (total < least) return;
  let missing = orders.reduce((sum, order) => sum + order.quantity, 0) - home.left;
  while (missing > 0) {
    const donor = richest(segments, home);
    if (!donor) return;
    const units = Math.min(donor.left, Math.max(Math.ceil(donor.left / 2), missing));
    donor.left -= units;
    home.left += units;
    missing -= units;
  }
}

function richest(segments: readonly MemorySegment[], home: MemorySegment): MemorySegment | undefined {
  let best: MemorySegment | undefined;
  for (const segment of segments) {
    if (segment !== home && segment.left > 0 && segment.left > (best?.left ?? 0)) best = segment;
  }
  return best;
}
