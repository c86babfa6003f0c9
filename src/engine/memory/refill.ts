import type { TakeOrder } from '../contract.ts';
import { planRefill, wantOf } from '../sale/transfer-plan.ts';
import type { MemorySegment } from './memory-segment.ts';

/** Does what redis/lua/purchase/refill.lua does. */
export function refill(
  segments: readonly MemorySegment[],
  receiver: number,
  orders: readonly TakeOrder[],
): void {
  const lefts = segments.map((segment) => segment.left);
  for (const { from, to, units } of planRefill(lefts, wantOf(receiver, orders))) {
    segments[from]!.supply(-units);
    segments[to]!.supply(units);
  }
}
