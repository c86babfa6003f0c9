import type { Knex } from 'knex';
import type { LogPosition } from '../engine/contract.ts';
import { rows } from './database.ts';

/** A segment's cursor, with the counts that go with it. */
export interface Cursor extends LogPosition {
  readonly orders: number;
  readonly units: number;
}

/** Whether the cursor is there, in the position's generation and at its entry. */
export function isAt(cursor: Cursor | undefined, { generation, seq }: LogPosition): boolean {
  return cursor?.generation === generation && cursor.seq === seq;
}

/** The cursors of one sale in the order of its segments; empty if its state was never built. */
export async function readCursors(db: Knex, saleId: string): Promise<Cursor[]> {
  const found = await rows<{
    segment: number;
    generation: number;
    position: string;
    tail: string;
    orders: string;
    units: string;
  }>(
    db,
    'SELECT segment, generation, position, tail, orders, units FROM segment_cursors WHERE sale_id = ? ORDER BY segment',
    [saleId],
  );
  return found.map((row) => ({
    saleId,
    segment: row.segment,
    generation: row.generation,
    seq: Number(row.position),
    tail: row.tail,
    orders: Number(row.orders),
    units: Number(row.units),
  }));
}

/** The positions of the cursors of many sales, each in the order of its segments. A sale without cursors is missing. */
export async function readPositions(
  db: Knex,
  saleIds: readonly string[],
): Promise<ReadonlyMap<string, readonly LogPosition[]>> {
  const found = await rows<{
    sale_id: string;
    segment: number;
    generation: number;
    position: string;
    tail: string;
  }>(
    db,
    `SELECT sale_id, segment, generation, position, tail FROM segment_cursors
     WHERE sale_id = ANY (?) ORDER BY sale_id, segment`,
    [[...saleIds]],
  );
  const bySale = new Map<string, LogPosition[]>();
  for (const { sale_id: saleId, segment, generation, position, tail } of found) {
    const ofSale = bySale.get(saleId) ?? [];
    ofSale.push({ saleId, segment, generation, seq: Number(position), tail });
    bySale.set(saleId, ofSale);
  }
  return bySale;
}
