/**
 * Compares what Postgres has given the segments of a sale in their generation with what the segments have counted.
 *
 * A segment counts the units of each return, top-up and withdrawal that it has carried out. Only after that does Postgres mark the
 * row as applied. Read Postgres first and the segments second: if Postgres has marked more units than the segments have counted,
 * the segments have lost some.
 */

import type { SegmentAudit } from '../engine/contract.ts';
import { begunUnits } from '../engine/sale/begun-units.ts';
import { type Database, rows } from '../postgres/database.ts';
import { LIVE } from '../postgres/live-orders.ts';

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
  WHERE s.id = ANY (?) AND s.archived_at IS NULL`;

/**
 * Goes back from the stock of now: units that were sold since (as the cursors count them) and withdrawn are added, units that were
 * returned and topped up are subtracted. The transaction that changes one of these changes the stock too.
 */
const BEGAN = `
  SELECT s.id, s.generation, s.stock + c.units - r.arisen - m.added + m.removed AS began
  FROM sales s,
    LATERAL (SELECT coalesce(sum(units + units_before), 0) AS arisen FROM stock_returns
      WHERE sale_id = s.id AND generation = s.generation) r,
    LATERAL (SELECT coalesce(sum(units) FILTER (WHERE action = 'top-up'), 0) AS added,
        coalesce(-sum(units) FILTER (WHERE action = 'withdraw'), 0) AS removed FROM stock_movements
      WHERE sale_id = s.id AND generation = s.generation) m,
    LATERAL (SELECT coalesce(sum(units), 0) AS units FROM segment_cursors
      WHERE sale_id = s.id AND generation = s.generation) c
  WHERE s.id = ANY (?) AND s.archived_at IS NULL`;

/** What Postgres has given the segments of these sales. Archived sales are left out. */
export async function readGivenUnits(db: Database, saleIds: readonly string[]): Promise<GivenUnits[]> {
  const found = await rows<
    Record<'id' | keyof UnitCounts, string> & { readonly generation: number; readonly segments: number }
  >(db, GIVEN, [[...saleIds]]);
  return found.map(({ id, generation, segments, returned, credited, withdrawn }) => ({
    saleId: id,
    generation,
    segments,
    returned: Number(returned),
    credited: Number(credited),
    withdrawn: Number(withdrawn),
  }));
}

/** Units that the segments began their generation with, as Postgres has it. Archived sales are left out. */
export async function readBegunUnits(
  db: Database,
  saleIds: readonly string[],
): Promise<ReadonlyMap<string, { readonly generation: number; readonly units: number }>> {
  if (saleIds.length === 0) return new Map();
  const found = await rows<{ id: string; generation: number; began: string }>(db, BEGAN, [[...saleIds]]);
  return new Map(found.map(({ id, generation, began }) => [id, { generation, units: Number(began) }]));
}

/**
 * Whether the ledger and the orders explain the stock. If not, the stock was changed by hand, and proves nothing about the segments.
 * Reads all live orders of the sale.
 */
export async function isStockExplained(db: Database, saleId: string): Promise<boolean> {
  const [row] = await rows<{ gap: string }>(
    db,
    `SELECT s.initial_stock - s.stock
       + (SELECT coalesce(sum(units), 0) FROM stock_movements WHERE sale_id = s.id)
       - (SELECT coalesce(sum(quantity), 0) FROM orders WHERE sale_id = s.id AND status IN ${LIVE}) AS gap
     FROM sales s WHERE s.id = ?`,
    [saleId],
  );
  return Number(row?.gap) === 0;
}

/**
 * Units that the segments began with, as they say; `undefined` if one of them can't be read or is not published, if its counters
 * disagree, or if units kept moving between them while they were read.
 */
export function begunBySegments(segments: readonly SegmentAudit[]): number | undefined {
  let began = 0;
  for (const found of segments) {
    if (!isReadable(found) || found.isMoving || found.supplied !== found.left + found.taken) return undefined;
    began += begunUnits(found) + found.inTransit;
  }
  return began;
}

/** What the segments have counted; `undefined` if one of them can't be read, or is not published. */
export function countedUnits(segments: readonly SegmentAudit[]): UnitCounts | undefined {
  const sums = { returned: 0, credited: 0, withdrawn: 0 };
  for (const found of segments) {
    if (!isReadable(found)) return undefined;
    sums.returned += found.returned;
    sums.credited += found.credited;
    sums.withdrawn += found.withdrawn;
  }
  return sums;
}

function isReadable(found: SegmentAudit): found is Extract<SegmentAudit, { found: 'sound' }> {
  return found.found === 'sound' && ['open', 'paused', 'closed'].includes(found.state);
}
