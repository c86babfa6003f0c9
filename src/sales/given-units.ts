/**
 * What Postgres has given the segments of a sale in their generation, and what they have counted. A segment counts the units that
 * returns and top-ups have brought, and those that withdrawals have taken out. Postgres marks each of them as applied only
 * after the segment has counted it. So what Postgres has marked, read first, is never more than what the segments have counted,
 * read afterwards: if it is, they have lost it.
 */
import type { SegmentAudit } from '../engine/contract.ts';
import { type Database, rows } from '../postgres/database.ts';

export interface UnitCounts {
  readonly returned: number;
  readonly credited: number;
  readonly withdrawn: number;
}

export interface GivenUnits extends UnitCounts {
  readonly saleId: string;
  readonly generation: number;
  readonly segments: number;
}

const GIVEN = `
  SELECT s.id, s.generation, s.segments, r.returned, m.credited, m.withdrawn
  FROM sales s,
    LATERAL (SELECT coalesce(sum(units + units_before), 0) AS returned FROM stock_returns
      WHERE sale_id = s.id AND generation = s.generation AND applied_at IS NOT NULL) r,
    LATERAL (SELECT coalesce(sum(units) FILTER (WHERE action = 'top-up'), 0) AS credited,
        coalesce(-sum(units) FILTER (WHERE action = 'withdraw'), 0) AS withdrawn FROM stock_movements
      WHERE sale_id = s.id AND generation = s.generation AND applied_at IS NOT NULL) m
  WHERE s.id = ANY (?) AND s.archived_at IS NULL AND (r.returned > 0 OR m.credited > 0 OR m.withdrawn > 0)`;

/** What Postgres has marked as applied. Sales without such units are left out. */
export async function readGivenUnits(db: Database, saleIds: readonly string[]): Promise<GivenUnits[]> {
  const found = await rows<{
    id: string;
    generation: number;
    segments: number;
    returned: string;
    credited: string;
    withdrawn: string;
  }>(db, GIVEN, [[...saleIds]]);
  return found.map(({ id, generation, segments, returned, credited, withdrawn }) => ({
    saleId: id,
    generation,
    segments,
    returned: Number(returned),
    credited: Number(credited),
    withdrawn: Number(withdrawn),
  }));
}

/** What the segments have counted; `undefined` if one of them can't be read, or is not published. */
export function countedUnits(segments: readonly SegmentAudit[]): UnitCounts | undefined {
  const sums = { returned: 0, credited: 0, withdrawn: 0 };
  for (const found of segments) {
    if (found.found !== 'sound' || !['open', 'paused', 'closed'].includes(found.state)) return undefined;
    sums.returned += found.returned;
    sums.credited += found.credited;
    sums.withdrawn += found.withdrawn;
  }
  return sums;
}
