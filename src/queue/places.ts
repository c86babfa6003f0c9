/**
 * The places of a queue in Postgres: they are given, read and left here. Postgres has them before anybody is told, so no place is
 * ever lost. States and crash points: docs/internals/queue.md.
 *
 * A queue may fill before Postgres has statistics of it. Then `number = ANY` reads the whole queue. Many places are looked up with
 * LATERAL and LIMIT, which uses the index even then. An UPDATE can't do that with the table that it changes: there, see `named`.
 */
import { MAX_PER_BUYER_LIMIT } from '../engine/limits.ts';
import { numbers, texts } from '../postgres/array-literal.ts';
import { IN_TIME } from '../postgres/changes/in-time.ts';
import { rowsInTime } from '../postgres/changes/rows-in-time.ts';
import { type Database, rows } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';
import { liveOrdersOf } from '../postgres/live-orders.ts';
import type { LeftReason, Place, PlaceState, PlaceWish } from './place.ts';
import { IS_ABSENT } from './presence.ts';
import { IS_SAME_QUEUE, type ReadQueue, sameQueue } from './queue-state.ts';

interface RawPlace {
  sale_id: string;
  number: string;
  buyer_id: string;
  quantity: number;
  state: PlaceState;
  reason: LeftReason | null;
  order_id: string | null;
  offered_until: Date | null;
  offered_units: number | null;
  is_over?: boolean;
}

/** Of places that wait or have an offer. Each column of a row costs time, and places are given by the ten thousand. */
const LIVE_COLUMNS = `p.number::text, p.buyer_id, p.quantity, p.state, p.order_id::text,
  CASE p.state WHEN 'offered' THEN (SELECT o.expires_at FROM orders o WHERE o.order_id = p.order_id) END AS offered_until,
  CASE p.state WHEN 'offered' THEN (SELECT o.quantity FROM orders o WHERE o.order_id = p.order_id) END AS offered_units`;
const COLUMNS = `p.sale_id, p.reason, ${LIVE_COLUMNS}`;

/**
 * After the end of the window an offer may still be committed by a transaction that had looked at the clock just before it. None takes
 * as long as this.
 */
const COMMIT_S = 5;
const IS_OVER = `EXISTS (SELECT 1 FROM sales s
  WHERE s.id = p.sale_id AND s.ends_at <= now() - ${COMMIT_S} * interval '1 second') AS is_over`;

/**
 * Rows `n` that name places for an UPDATE, as SQL. Bindings: the sale, and an array for each column. OFFSET 0 hides the sale from the
 * planner, and the inner SELECTs hide the numbers. If it knew the sale, it would expect a few places there, and read the whole queue.
 */
const named = (columns: Readonly<Record<string, 'bigint' | 'integer'>>) => {
  const arrays = Object.values(columns).map((type) => `(SELECT ?::${type}[])`);
  const names = Object.keys(columns).join(', ');
  return `(SELECT ?::text AS sale_id, ${names} FROM unnest(${arrays.join(', ')}) AS n (${names}) OFFSET 0) AS n`;
};
/** IS TRUE keeps the planner from reading all of an index of waiting places that it takes to be short. */
const IS_NAMED_WAITING = "p.sale_id = n.sale_id AND p.number = n.number AND (p.state = 'waiting') IS TRUE";

function placeOf(row: RawPlace): Place {
  return {
    saleId: row.sale_id,
    number: Number(row.number),
    buyerId: row.buyer_id,
    quantity: row.quantity,
    state: row.state,
    reason: row.reason ?? undefined,
    orderId: row.order_id ?? undefined,
    offeredUntil: row.offered_until ?? undefined,
    offeredUnits: row.offered_units ?? undefined,
    isOver: row.is_over,
  };
}

/**
 * Gives each buyer a place behind all others. A buyer whose place still waits or has an offer keeps that place, also if it now asks
 * for another quantity. Who gets a new place is present.
 * @param wishes no two of the same buyer
 * @returns by buyer. A buyer is missing if the queue is full, off, or over, or because of the limit (`limitReachedBy`)
 */
export async function givePlaces(
  db: Database,
  saleId: string,
  wishes: readonly PlaceWish[],
): Promise<Map<string, Place>> {
  const found = await despiteDeadlocks(() =>
    rows<Omit<RawPlace, 'sale_id' | 'reason'>>(
      db,
      `SELECT ${LIVE_COLUMNS} FROM stockade_give_places(?, ?::text[], ?::integer[]) p`,
      [saleId, texts(wishes.map(({ buyerId }) => buyerId)), numbers(wishes.map(({ quantity }) => quantity))],
    ),
  );
  return new Map(found.map((row) => [row.buyer_id, placeOf({ ...row, sale_id: saleId, reason: null })]));
}

/** The buyer's place that waits or has an offer; without one, the newest of those that have ended. */
export async function readPlaceOf(db: Database, saleId: string, buyerId: string): Promise<Place | undefined> {
  const of = `SELECT ${COLUMNS}, ${IS_OVER} FROM places p WHERE p.sale_id = ? AND p.buyer_id = ?`;
  const [live] = await rows<RawPlace>(db, `${of} AND p.state IN ('waiting', 'offered')`, [saleId, buyerId]);
  if (live) return placeOf(live);
  const [ended] = await rows<RawPlace>(
    db,
    `${of} AND p.state NOT IN ('waiting', 'offered') ORDER BY p.number DESC LIMIT 1`,
    [saleId, buyerId],
  );
  return ended && placeOf(ended);
}

/**
 * Places by their numbers, in the order of the numbers. A number that was never given is missing.
 * @param wanted no two the same
 */
export async function readPlaces(db: Database, saleId: string, wanted: readonly number[]): Promise<Place[]> {
  const found = await rows<RawPlace>(
    db,
    `SELECT ${COLUMNS} FROM unnest(?::bigint[]) AS n (number) CROSS JOIN LATERAL (SELECT * FROM places
       WHERE sale_id = ? AND number = n.number LIMIT 1) AS p ORDER BY n.number`,
    [numbers(wanted), saleId],
  );
  return found.map(placeOf);
}

/**
 * The next places that wait, in the order of their numbers.
 * @param mostUnits only places that want no more than these
 */
export async function readWaiting(
  db: Database,
  saleId: string,
  after: number,
  most: number,
  mostUnits = MAX_PER_BUYER_LIMIT,
): Promise<Place[]> {
  const found = await rows<RawPlace>(
    db,
    `SELECT ${COLUMNS} FROM places p WHERE p.sale_id = ? AND p.state = 'waiting' AND p.number > ? AND p.quantity <= ?
     ORDER BY p.number LIMIT ?`,
    [saleId, after, mostUnits, most],
  );
  return found.map(placeOf);
}

/**
 * Those of the places that wait.
 * @param wanted no two the same
 * @param mostUnits only places that want no more than these
 */
export async function waitingAmong(
  db: Database,
  saleId: string,
  wanted: readonly number[],
  mostUnits = MAX_PER_BUYER_LIMIT,
): Promise<ReadonlySet<number>> {
  if (wanted.length === 0) return new Set();
  const found = await rows<{ number: string }>(
    db,
    `SELECT p.number::text FROM unnest(?::bigint[]) AS n (number) CROSS JOIN LATERAL (SELECT number FROM places
       WHERE sale_id = ? AND number = n.number AND state = 'waiting' AND quantity <= ? LIMIT 1) AS p`,
    [numbers(wanted), saleId, mostUnits],
  );
  return new Set(found.map(({ number }) => Number(number)));
}

/**
 * The numbers of the places that wait, from `after` + 1 to `last`, in any order. They come as the bytes of one value, because a row for
 * each would cost far more.
 */
export async function waitingBetween(
  db: Database,
  saleId: string,
  after: number,
  last: number,
): Promise<number[]> {
  const [found] = await rows<{ steps: Buffer | null }>(
    db,
    `SELECT string_agg(int4send((number - ?::bigint)::integer), '') AS steps FROM places
     WHERE sale_id = ? AND state = 'waiting' AND number > ? AND number <= ?`,
    [after, saleId, after, last],
  );
  const steps = found?.steps ?? Buffer.alloc(0);
  return Array.from({ length: steps.length / 4 }, (_, i) => after + steps.readUInt32BE(4 * i));
}

export interface Left {
  readonly place: Place;
  /** The order whose units come back. The caller applies the return (orders/returns.ts); otherwise sync does. */
  readonly returned: string | undefined;
}

export interface Leaving {
  /** The place that is left, if the buyer has named it. A place that the buyer has got since stays. */
  readonly number?: number | undefined;
  /** As for `rowsInTime`. */
  readonly latestMs?: number | undefined;
}

/**
 * The buyer leaves, and gives back its offer if it has one.
 * @returns `undefined` if it has no place that waits or has an offer, or not the one that it names. @throws as `rowsInTime`
 */
export async function leaveQueue(
  db: Database,
  saleId: string,
  buyerId: string,
  { number, latestMs }: Leaving = {},
): Promise<Left | undefined> {
  const [row] = await despiteDeadlocks(() =>
    rowsInTime<RawPlace & { returned: string | null }>(db, latestMs, {
      sql: `SELECT ${IN_TIME}, ${COLUMNS}, l.returned::text FROM stockade_leave_queue(?, ?, ?) l
        CROSS JOIN LATERAL (SELECT (l.place).*) p`,
      bindings: (latest) => [latest, saleId, buyerId, number ?? null],
    }),
  );
  return row && { place: placeOf(row), returned: row.returned ?? undefined };
}

/**
 * Ends places that wait, because their turn has come and their buyers are absent. Postgres checks both once more: the statement may come
 * late, when a buyer is back or the ranks have changed.
 * @returns how many have left
 */
export async function passOverAbsent(
  db: Database,
  queue: ReadQueue,
  passed: readonly Place[],
): Promise<number> {
  if (passed.length === 0) return 0;
  const left = await despiteDeadlocks(() =>
    rows(
      db,
      `UPDATE places p SET state = 'left', reason = 'absent', ended_at = now()
       FROM ${named({ number: 'bigint' })} WHERE ${IS_NAMED_WAITING} AND ${IS_ABSENT}
         AND EXISTS (SELECT 1 FROM queues WHERE ${IS_SAME_QUEUE}) RETURNING 1`,
      [queue.saleId, numbers(passed.map(({ number }) => number)), ...sameQueue(queue)],
    ),
  );
  return left.length;
}

/**
 * Ends places that wait, because their turn has come and their buyers may not hold that many more units. Postgres decides that:
 * the backend may still count units of an order that has ended, or that will be refused because its place was left. None leaves if the
 * ranks have changed since.
 * @returns the numbers of the places that have left
 */
export async function passOverLimited(
  db: Database,
  queue: ReadQueue,
  passed: readonly { readonly place: Place; readonly quantity: number }[],
): Promise<ReadonlySet<number>> {
  if (passed.length === 0) return new Set();
  const left = await despiteDeadlocks(() =>
    rows<{ number: string }>(
      db,
      `UPDATE places p SET state = 'left', reason = 'limit', ended_at = now()
     FROM ${named({ number: 'bigint', quantity: 'integer' })}, sales s
     WHERE ${IS_NAMED_WAITING} AND s.id = p.sale_id
       AND n.quantity + (SELECT coalesce(sum(h.quantity), 0)
         FROM (${liveOrdersOf('p.sale_id', 'p.buyer_id')}) AS h) > s.per_buyer_limit
       AND EXISTS (SELECT 1 FROM queues WHERE ${IS_SAME_QUEUE})
     RETURNING p.number::text`,
      [
        queue.saleId,
        numbers(passed.map(({ place }) => place.number)),
        numbers(passed.map(({ quantity }) => quantity)),
        ...sameQueue(queue),
      ],
    ),
  );
  return new Set(left.map(({ number }) => Number(number)));
}
