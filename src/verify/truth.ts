/** A sale's data in Postgres, read at one instant. */

import { secondsSince } from '../postgres/age.ts';
import { type Cursor, readCursors } from '../postgres/cursors.ts';
import { type Database, rows } from '../postgres/database.ts';
import { LIVE } from '../postgres/live-orders.ts';
import { type PlaceCounts, readPlaceCounts } from '../queue/place-counts.ts';
import { readLosses } from '../rebuild/lost-orders.ts';
import { readKnownSale, type SaleRow } from '../sales/sale-rows.ts';

/** At most this many buyers above their limit are named. */
const NAMED_BUYERS = 20;

export interface Pending {
  readonly count: number;
  readonly units: number;
  /** Age of the oldest. */
  readonly ageS: number;
}

export interface Truth {
  readonly row: SaleRow;
  readonly cursors: readonly Cursor[];
  /** Units that operators have added minus those that they have withdrawn. */
  readonly movements: number;
  readonly liveUnits: number;
  readonly committedOrders: number;
  readonly distinctBuyers: number;
  readonly rejectedOrders: number;
  readonly lostOrders: number;
  readonly aboveLimit: readonly string[];
  /** Units of this generation that the segments should have received or given up, applied or not. */
  readonly returned: number;
  readonly toppedUp: number;
  readonly withdrawn: number;
  /** Changes that the segments may not have applied yet. */
  readonly pendingReturns: Pending;
  readonly pendingTopUps: Pending;
  readonly openWithdrawals: Pending;
  readonly pendingChanges: Pending;
  /** Resizes that wait for the next generation. */
  readonly pendingResizes: Pending;
  /** Id of the ledger's newest row; 0: none. */
  readonly lastMovement: string;
  /** `undefined`: the sale never had a queue. */
  readonly places: PlaceCounts | undefined;
}

/** @throws UnknownSale */
export async function readTruth(db: Database, saleId: string): Promise<Truth> {
  return db.transaction(
    async (trx) => {
      const row = await readKnownSale(trx, saleId);
      const { generation, sale } = row;
      const [sold] = await rows<Record<'units' | 'orders' | 'buyers' | 'rejected', string>>(
        trx,
        `SELECT coalesce(sum(quantity), 0) AS units, count(*) AS orders, count(DISTINCT buyer_id) AS buyers,
           (SELECT count(*) FROM orders WHERE sale_id = ? AND status = 'rejected') AS rejected
         FROM orders WHERE sale_id = ? AND status IN ${LIVE}`,
        [saleId, saleId],
      );
      const above = await rows<{ buyer_id: string; units: string }>(
        trx,
        `SELECT buyer_id, sum(quantity) AS units FROM orders
         WHERE sale_id = ? AND status IN ${LIVE}
         GROUP BY buyer_id HAVING sum(quantity) > ? ORDER BY buyer_id LIMIT ?`,
        [saleId, sale.perBuyerLimit, NAMED_BUYERS],
      );
      const [given] = await rows<Record<string, string>>(trx, MOVEMENTS, [generation, generation, saleId]);
      const [returns] = await rows<Record<string, string>>(trx, RETURNS, [generation, saleId]);
      const losses = await readLosses(trx, saleId);
      const places = await readPlaceCounts(trx, saleId);
      return {
        row,
        places,
        cursors: await readCursors(trx, saleId),
        movements: Number(given!.movements),
        liveUnits: Number(sold!.units),
        committedOrders: Number(sold!.orders),
        distinctBuyers: Number(sold!.buyers),
        rejectedOrders: Number(sold!.rejected),
        lostOrders: losses.reduce((sum, { orders }) => sum + orders, 0),
        aboveLimit: above.map(
          (b) => `buyer ${b.buyer_id} holds ${b.units} units, above ${sale.perBuyerLimit}`,
        ),
        returned: Number(returns!.returned),
        toppedUp: Number(given!.topped_up),
        withdrawn: Number(given!.withdrawn),
        pendingReturns: pendingOf(returns!, ''),
        pendingTopUps: pendingOf(given!, 'top_up_'),
        openWithdrawals: pendingOf(given!, 'withdrawal_'),
        pendingChanges: pendingOf(given!, 'change_'),
        pendingResizes: pendingOf(given!, 'resize_'),
        lastMovement: given!.last!,
      };
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  );
}

/** SQL: count, units and age of the movements for which `which` holds, in columns that begin with `prefix`. */
const openOf = (prefix: string, which: string, units: string) => `
  count(*) FILTER (WHERE ${which}) AS ${prefix}count, coalesce(sum(${units}) FILTER (WHERE ${which}), 0) AS ${prefix}units,
  coalesce(${secondsSince(`min(moved_at) FILTER (WHERE ${which})`)}, 0) AS ${prefix}age`;

const MOVEMENTS = `
  SELECT coalesce(sum(units), 0) AS movements, coalesce(max(id), 0)::text AS last,
    coalesce(sum(units) FILTER (WHERE action = 'top-up' AND generation = ?), 0) AS topped_up,
    coalesce(-sum(units) FILTER (WHERE action = 'withdraw' AND generation = ?), 0) AS withdrawn,
    ${openOf('top_up_', "action = 'top-up' AND applied_at IS NULL", 'units')},
    ${openOf('withdrawal_', "action = 'withdraw' AND applied_at IS NULL", "(detail->>'wanted')::bigint")},
    ${openOf('change_', "action NOT IN ('top-up', 'withdraw', 'resize') AND applied_at IS NULL", 'units')},
    ${openOf('resize_', "action = 'resize' AND applied_at IS NULL", 'units')}
  FROM stock_movements WHERE sale_id = ?`;

const RETURNS = `
  SELECT coalesce(sum(units + units_before) FILTER (WHERE generation = ?), 0) AS returned,
    count(*) FILTER (WHERE applied_at IS NULL) AS count,
    coalesce(sum(units) FILTER (WHERE applied_at IS NULL), 0) AS units,
    coalesce(${secondsSince('min(created_at) FILTER (WHERE applied_at IS NULL)')}, 0) AS age
  FROM stock_returns WHERE sale_id = ?`;

function pendingOf(row: Record<string, string>, prefix: string): Pending {
  return {
    count: Number(row[`${prefix}count`]),
    units: Number(row[`${prefix}units`]),
    ageS: Number(row[`${prefix}age`]),
  };
}

/** Changes since a truth was read. */
export interface Since {
  readonly isRebuilt: boolean;
  /** Operators have changed the sale. */
  readonly isChanged: boolean;
  /** Segments whose cursors have moved. */
  readonly moved: ReadonlySet<number>;
}

/** @param cursors the cursors when the counting of logs began */
export async function changesSince(
  db: Database,
  { row, lastMovement }: Truth,
  cursors: readonly Cursor[],
): Promise<Since> {
  const { id } = row.sale;
  const now = await readCursors(db, id);
  const [head] = await rows<{ generation: number; last: string }>(
    db,
    `SELECT generation,
       (SELECT coalesce(max(m.id), 0)::text FROM stock_movements m WHERE m.sale_id = s.id) AS last
     FROM sales s WHERE id = ?`,
    [id],
  );
  const moved = now.filter(
    ({ seq, generation }, i) => seq !== cursors[i]?.seq || generation !== cursors[i]?.generation,
  );
  return {
    isRebuilt: head?.generation !== row.generation,
    isChanged: head?.last !== lastMovement,
    moved: new Set(moved.map(({ segment }) => segment)),
  };
}
