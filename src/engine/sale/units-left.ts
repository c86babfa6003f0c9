import type { SegmentSnapshot } from '../contract.ts';

/** Units left in all segments of a sale and in transit between them; `undefined` if the backend lacks a segment. */
export function unitsLeft(segments: readonly SegmentSnapshot[]): number | undefined {
  if (segments.length === 0) return undefined;
  let left = 0;
  for (const { counters } of segments) {
    if (!counters) return undefined;
    left += counters.left + counters.inTransit;
  }
  return left;
}
