/**
 * Counts the places of a sale's queue, all in Postgres and at one instant. The order of an offer proves the state of its place, because
 * both change in the same transactions.
 */
import type { Knex } from 'knex';
import { PLACE_STATES, type PlaceStateName } from '../operations/queue/queue-operations.ts';
import { rows } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';

/** At most this many places are named. */
const NAMED = 5;

export interface PlaceCounts {
  readonly given: number;
  readonly states: Readonly<Record<PlaceStateName, number>>;
  /** Places whose order proves another state, the first ones. */
  readonly wrong: readonly WrongPlace[];
  readonly wrongCount: number;
  /** Offers that no place names as its own. */
  readonly strayOffers: number;
}

export interface WrongPlace {
  readonly number: string;
  readonly state: string;
  readonly order: string;
  /** `null` if the order proves nothing. */
  readonly proven: string | null;
}

/** The state that the order of a place proves; null if there is no such order. */
const PROVEN = `CASE WHEN o.order_id IS NULL THEN NULL
  WHEN o.offer_of IS NULL THEN 'bought'
  WHEN o.offer_of <> p.number THEN NULL
  WHEN o.status = 'unpaid' THEN 'offered'
  WHEN o.status = 'expired' THEN 'lapsed'
  WHEN o.status = 'cancelled' THEN 'left' END`;

/**
 * Offers of a sale `?` that no place names as its own. An order names its place from the transaction that makes the place `offered`
 * until the one that ends or accepts the offer. So an unpaid order with a place proves that the place is `offered`.
 */
const STRAY = `FROM orders o WHERE o.sale_id = ? AND o.offer_of IS NOT NULL AND o.status = 'unpaid'
  AND NOT EXISTS (SELECT 1 FROM places p
    WHERE p.sale_id = o.sale_id AND p.number = o.offer_of AND p.order_id = o.order_id)`;

/** Of a sale `?`. */
const WRONG = `FROM places p LEFT JOIN orders o ON o.order_id = p.order_id AND o.sale_id = p.sale_id
  WHERE p.sale_id = ? AND p.order_id IS NOT NULL AND p.state IS DISTINCT FROM ${PROVEN}`;

/** @returns `undefined` for a sale that never had a queue */
export async function readPlaceCounts(trx: Knex, saleId: string): Promise<PlaceCounts | undefined> {
  const [queue] = await rows<{ given: string }>(
    trx,
    'SELECT last_number::text AS given FROM queues WHERE sale_id = ?',
    [saleId],
  );
  if (!queue) return undefined;
  const [states] = await rows<Record<PlaceStateName, string>>(
    trx,
    `SELECT ${PLACE_STATES.map((state) => `count(*) FILTER (WHERE state = '${state}') AS "${state}"`).join(', ')}
     FROM places WHERE sale_id = ?`,
    [saleId],
  );
  const wrong = await rows<WrongPlace & { all: string }>(
    trx,
    `SELECT p.number::text, p.state, p.order_id::text AS "order", ${PROVEN} AS proven, count(*) OVER () AS "all"
     ${WRONG} ORDER BY p.number LIMIT ?`,
    [saleId, NAMED],
  );
  const [stray] = await rows<{ count: string }>(trx, `SELECT count(*) ${STRAY}`, [saleId]);
  const counts = PLACE_STATES.map((state) => [state, Number(states![state])] as const);
  return {
    given: Number(queue.given),
    states: Object.fromEntries(counts) as Record<PlaceStateName, number>,
    wrong,
    wrongCount: Number(wrong[0]?.all ?? 0),
    strayOffers: Number(stray!.count),
  };
}

/** Gives places the states that their orders prove. @returns how many */
export async function repairPlaces(db: Knex, saleId: string): Promise<number> {
  return db.transaction(async (trx) => {
    // Orders are locked before places, as by everything that changes them.
    await trx.raw(
      `SELECT 1 FROM orders WHERE order_id = ANY (ARRAY(SELECT p.order_id ${WRONG})) ORDER BY order_id FOR SHARE`,
      [saleId],
    );
    const repaired = await rows(
      trx,
      `UPDATE places t SET state = w.proven, reason = CASE w.proven WHEN 'left' THEN 'asked' END,
         ended_at = CASE WHEN w.proven <> 'offered' THEN coalesce(t.ended_at, now()) END
       FROM (SELECT p.number, ${PROVEN} AS proven ${WRONG}) AS w
       WHERE t.sale_id = ? AND t.number = w.number AND w.proven IS NOT NULL RETURNING 1`,
      [saleId, saleId],
    );
    return repaired.length;
  });
}

/**
 * Gives places the offers that name them. A place that has another order is left alone, and so is a buyer who has another live place,
 * or two such offers: then a program has changed more than one row, and nobody can say which of them is right.
 * @returns how many
 */
export async function relinkOffers(db: Knex, saleId: string): Promise<number> {
  return despiteDeadlocks(() =>
    db.transaction(async (trx) => {
      // The lock keeps these buyers from getting a new place. Only an erasure locks this row after orders.
      await trx.raw('SELECT 1 FROM queues WHERE sale_id = ? FOR UPDATE', [saleId]);
      await trx.raw(`SELECT 1 ${STRAY} ORDER BY o.order_id FOR SHARE`, [saleId]);
      const relinked = await rows(
        trx,
        `UPDATE places t SET state = 'offered', order_id = s.order_id, reason = NULL, ended_at = NULL
         FROM (SELECT o.order_id, o.offer_of, o.buyer_id, count(*) OVER (PARTITION BY o.offer_of) AS of_place,
             count(*) OVER (PARTITION BY o.buyer_id) AS of_buyer ${STRAY}) AS s
         WHERE t.sale_id = ? AND t.number = s.offer_of AND t.buyer_id = s.buyer_id AND t.order_id IS NULL
           AND s.of_place = 1 AND s.of_buyer = 1
           AND NOT EXISTS (SELECT 1 FROM places other WHERE other.sale_id = t.sale_id AND other.buyer_id = t.buyer_id
             AND other.state IN ('waiting', 'offered') AND other.number <> t.number) RETURNING 1`,
        [saleId, saleId],
      );
      return relinked.length;
    }),
  );
}
