import type { SegmentCounts } from '../contract.ts';

/** Units that segments began their generation with, as their counters say. Of all later changes, only transfers change this sum. */
export function begunUnits({
  supplied,
  returned,
  credited,
  withdrawn,
}: Pick<SegmentCounts, 'supplied' | 'returned' | 'credited' | 'withdrawn'>): number {
  return supplied - returned - credited + withdrawn;
}
