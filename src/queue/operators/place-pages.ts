/**
 * Pages of places for operators, in the order of their numbers. Each is one statement, whose cost does not depend on the length of the
 * queue:
 *
 * | filter | what is read |
 * |---|---|
 * | none | the page, from the primary key |
 * | waiting, offered | the page, from the partial index of that state |
 * | bought, lapsed, left | at most SCANNED_PLACES places, from the primary key |
 */
import {
  DEFAULT_PAGE_PLACES,
  MAX_PAGE_PLACES,
  type PlacePage,
  type PlaceQuery,
  type PlaceStateName,
  type PlaceStatus,
} from '../../operations/queue/queue-operations.ts';
import { type Database, rows } from '../../postgres/database.ts';
import type { LeftReason } from '../place.ts';

/** Places that are read for one page in search of a state that has no index. */
const SCANNED_PLACES = 20_000;

interface RawPlace {
  number: string;
  buyer_id: string;
  quantity: number;
  state: PlaceStateName;
  reason: LeftReason | null;
  order_id: string | null;
  given_at: Date;
  ended_at: Date | null;
  offered_until: Date | null;
}

const COLUMNS = `p.number::text, p.buyer_id, p.quantity, p.state, p.reason, p.order_id::text, p.given_at, p.ended_at,
  CASE p.state WHEN 'offered' THEN (SELECT o.expires_at FROM orders o WHERE o.order_id = p.order_id) END AS offered_until`;

function statusOf(row: RawPlace): PlaceStatus {
  const { buyer_id: buyerId, quantity, state, reason, order_id: orderId } = row;
  return {
    number: Number(row.number),
    ...{ buyerId, quantity, state },
    ...(reason !== null && { reason }),
    ...(orderId !== null && { orderId }),
    givenAt: row.given_at.toISOString(),
    ...(row.ended_at !== null && { endedAt: row.ended_at.toISOString() }),
    ...(row.offered_until !== null && { offeredUntil: row.offered_until.toISOString() }),
  };
}

/** @param lastNumber of the newest place */
export async function readPlacePage(
  db: Database,
  saleId: string,
  lastNumber: number,
  { state, after = 0, limit = DEFAULT_PAGE_PLACES }: Omit<PlaceQuery, 'buyer'>,
): Promise<PlacePage> {
  const isIndexed = state === 'waiting' || state === 'offered';
  const isScanned = state !== undefined && !isIndexed;
  const edge = isScanned ? Math.min(lastNumber, after + SCANNED_PLACES) : lastNumber;
  const found = await rows<RawPlace>(
    db,
    isIndexed ? indexedSql(state) : scannedSql(state),
    isIndexed ? [saleId, after, limit + 1] : [saleId, after, saleId, edge, limit + 1],
  );
  const places = found.slice(0, limit).map(statusOf);
  if (found.length > limit) return { places, next: places.at(-1)!.number };
  return edge < lastNumber ? { places, next: edge } : { places };
}

// A queue may fill before Postgres has statistics of it. Both statements are read in the order of an index even then: one that
// sorts would read all places.

function indexedSql(state: 'waiting' | 'offered'): string {
  return `SELECT ${COLUMNS} FROM places p WHERE p.sale_id = ? AND p.number > ? AND p.state = '${state}'
    ORDER BY p.number LIMIT ?`;
}

function scannedSql(state: PlaceStateName | undefined): string {
  return `SELECT ${COLUMNS} FROM (
      SELECT * FROM places WHERE (sale_id, number) > (?, ?::bigint) AND (sale_id, number) <= (?, ?::bigint)
      ORDER BY sale_id, number OFFSET 0
    ) p ${state === undefined ? '' : `WHERE p.state = '${state}'`} ORDER BY p.sale_id, p.number LIMIT ?`;
}

/** A page of the places of one buyer, the newest first. It begins after the number `after`: with the next smaller one. */
export async function readPlacesOfBuyer(
  db: Database,
  saleId: string,
  buyerId: string,
  { after = Number.MAX_SAFE_INTEGER, limit = MAX_PAGE_PLACES }: Pick<PlaceQuery, 'after' | 'limit'>,
): Promise<PlacePage> {
  const of = `SELECT ${COLUMNS}, p.number AS sorted FROM places p
    WHERE p.sale_id = ? AND p.buyer_id = ? AND p.number < ? AND p.state`;
  const found = await rows<RawPlace>(
    db,
    `SELECT * FROM (${of} IN ('waiting', 'offered') UNION ALL ${of} NOT IN ('waiting', 'offered')) found
     ORDER BY sorted DESC LIMIT ?`,
    [saleId, buyerId, after, saleId, buyerId, after, limit + 1],
  );
  const places = found.slice(0, limit).map(statusOf);
  return found.length > limit ? { places, next: places.at(-1)!.number } : { places };
}
