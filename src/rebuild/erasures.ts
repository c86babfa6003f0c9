/**
 * Erases buyers: replaces their ids by pseudonyms, a different one in each sale. A sale in the backend is rebuilt for this: the
 * transaction that begins the next generation replaces the ids, and then the backend is loaded with the pseudonyms. An
 * archived sale is in Postgres alone, so one transaction is enough. States, crash points and what is left of an id:
 * docs/internals/erasure.md.
 *
 *   asked ──the sale is closed, or the operator wants it while it sells──> due ──next generation──> erased
 *                                                     └──archived: one transaction──> erased
 */
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import type { SaleState } from '../engine/contract.ts';
import { RESERVED_PREFIXES } from '../engine/limits.ts';
import type { Author } from '../engine/sale/author.ts';
import type { Erasure, ErasureWish, FoundBuyer } from '../operations/buyer-operations.ts';
import { secondsSince } from '../postgres/age.ts';
import { numbers, texts } from '../postgres/array-literal.ts';
import { type Database, LOCK_NOT_AVAILABLE, rows, sqlState } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';
import { ofBuyer } from '../postgres/live-orders.ts';
import { erasePlaces, placesOfBuyer } from '../queue/erasure.ts';
import { markAsked } from '../queue/presence.ts';
import { closeMovement, writeMovement } from '../sales/ledger.ts';

/** An erasure that can be carried out now. */
export interface DueErasure extends Author {
  readonly buyerId: string;
  readonly pseudonym: string;
}

export interface DueSale {
  readonly saleId: string;
  readonly isClosed: boolean;
  readonly isArchived: boolean;
  /** The age of its oldest request in seconds. A repeated request is as old as its last repetition. */
  readonly ageS: number;
}

/** SQL: whether erasure `e` can be carried out now in sale `s`. */
const DUE = "(s.state = 'closed' OR e.while_selling)";

export interface AskedErasure extends Erasure {
  /** False: it waits until the sale is closed. */
  readonly isDue: boolean;
  readonly isArchived: boolean;
}

const IN_SALE = 'sale_id = s.id AND buyer_id = ?';

/** SQL: the sales in which Postgres has the buyer. @param saleId only this sale; missing: all */
const inSales = (saleId: string | undefined) => `
     SELECT s.id, s.state, s.archived_at, o.orders FROM sales s
     CROSS JOIN LATERAL (SELECT count(*) AS orders FROM (${ofBuyer(IN_SALE)}) AS all_orders) AS o
     CROSS JOIN LATERAL (SELECT count(*) AS others FROM (
       SELECT 1 FROM lost_orders WHERE sale_id = s.id AND buyer_id = ? UNION ALL
       SELECT 1 FROM stock_returns WHERE sale_id = s.id AND reason LIKE 'rejected: %' AND buyer_id = ? UNION ALL
       SELECT 1 FROM (${placesOfBuyer(IN_SALE)}) AS all_places) AS one) AS r
     WHERE o.orders + r.others > 0
       AND s.id <> ALL (ARRAY(SELECT id FROM sales WHERE deleting_since IS NOT NULL)) ${saleId === undefined ? '' : 'AND s.id = ?'}`;

/** The values of `inSales`: three for `ofBuyer`, one for lost_orders, one for stock_returns, two for `placesOfBuyer`. */
const bindingsOf = (buyerId: string, saleId: string | undefined): string[] => [
  ...Array<string>(7).fill(buyerId),
  ...(saleId === undefined ? [] : [saleId]),
];

/** The sales in which an erasure would find the buyer now. */
export async function findBuyer(
  db: Database,
  { buyerId, saleId, running }: ErasureWish,
): Promise<FoundBuyer[]> {
  const found = await rows<{ id: string; orders: string; state: SaleState }>(
    db,
    `SELECT id, orders, state FROM (${inSales(saleId)}) AS found ORDER BY id`,
    bindingsOf(buyerId, saleId),
  );
  return found.map(({ id, orders, state }) => ({
    saleId: id,
    orders: Number(orders),
    ...(state !== 'closed' && !running && { until: 'closed' }),
  }));
}

/**
 * Records in which sales the buyer is to be erased: those in which Postgres has the buyer. If the request is repeated, the
 * pseudonym stays.
 */
export async function askErasures(
  db: Database,
  { buyerId, saleId, running }: ErasureWish,
  { actor, reason }: Author,
): Promise<AskedErasure[]> {
  const found = await rows<{
    sale_id: string;
    pseudonym: string;
    orders: string;
    is_due: boolean;
    is_archived: boolean;
  }>(
    db,
    `WITH found AS (${inSales(saleId)}
     ), asked AS (
       INSERT INTO erasures AS e (sale_id, buyer_id, pseudonym, while_selling, actor, reason)
       SELECT id, ?, 'erased-' || left(md5(? || id), 16), ?, ?, ? FROM found
       ON CONFLICT (sale_id, buyer_id) DO UPDATE SET while_selling = e.while_selling OR excluded.while_selling,
         actor = excluded.actor, reason = excluded.reason,
         asked_at = excluded.asked_at
       RETURNING sale_id, pseudonym, while_selling)
     SELECT e.sale_id, e.pseudonym, s.orders, ${DUE} AS is_due, s.archived_at IS NOT NULL AS is_archived
     FROM asked e JOIN found s ON s.id = e.sale_id ORDER BY e.sale_id`,
    [
      ...bindingsOf(buyerId, saleId),
      // Random, so that nobody can compute the pseudonym from the buyer's id.
      ...[buyerId, randomUUID(), running, actor, reason],
    ],
  );
  return found.map(({ sale_id, pseudonym, orders, is_due, is_archived }) => ({
    saleId: sale_id,
    pseudonym,
    orders: Number(orders),
    isDue: is_due,
    isArchived: is_archived,
  }));
}

/** The sales in which an erasure of this buyer waits or is under way. */
export async function readErasuresOf(db: Database, buyerId: string): Promise<Set<string>> {
  const found = await rows<{ id: string }>(db, 'SELECT sale_id AS id FROM erasures WHERE buyer_id = ?', [
    buyerId,
  ]);
  return new Set(found.map(({ id }) => id));
}

/**
 * How many orders got each of these pseudonyms, as the ledgers have it: not always as many as the buyer had when the erasure was asked
 * for. Orders may have come since, or another erasure of the buyer may have ended meanwhile.
 */
export async function readErasedOrders(
  db: Database,
  asked: readonly Pick<Erasure, 'saleId' | 'pseudonym'>[],
): Promise<ReadonlyMap<string, number>> {
  const found = await rows<{ pseudonym: string; orders: number }>(
    db,
    `SELECT m.detail->>'pseudonym' AS pseudonym, (m.detail->>'orders')::integer AS orders
     FROM unnest(?::text[], ?::text[]) AS a (sale_id, pseudonym) JOIN stock_movements m ON m.sale_id = a.sale_id
     WHERE m.action = 'erase' AND m.detail->>'pseudonym' = a.pseudonym`,
    [texts(asked.map(({ saleId }) => saleId)), texts(asked.map(({ pseudonym }) => pseudonym))],
  );
  return new Map(found.map(({ pseudonym, orders }) => [pseudonym, orders]));
}

/** Sales with an erasure that can be carried out now. */
export async function readDueSales(db: Database): Promise<DueSale[]> {
  const found = await rows<{ id: string; is_closed: boolean; is_archived: boolean; age_s: string }>(
    db,
    `SELECT s.id, s.state = 'closed' AS is_closed, s.archived_at IS NOT NULL AS is_archived,
       ${secondsSince('min(e.asked_at)')} AS age_s
     FROM erasures e JOIN sales s ON s.id = e.sale_id WHERE ${DUE} AND s.deleting_since IS NULL GROUP BY s.id`,
  );
  return found.map(({ id, is_closed, is_archived, age_s }) => ({
    saleId: id,
    isClosed: is_closed,
    isArchived: is_archived,
    ageS: Number(age_s),
  }));
}

/**
 * Carries out the erasures of an archived sale.
 * @param waitMs how long it may wait for each row that somebody has locked; then nothing is done. Missing: until the statement is given up
 */
export async function eraseInArchived(db: Database, saleId: string, waitMs?: number): Promise<void> {
  try {
    await erase(db, saleId, waitMs);
  } catch (error) {
    if (waitMs === undefined || sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
  }
}

async function erase(db: Database, saleId: string, waitMs: number | undefined): Promise<void> {
  await despiteDeadlocks(() =>
    db.transaction(async (trx) => {
      if (waitMs !== undefined) await trx.raw("SELECT set_config('lock_timeout', ?, true)", [String(waitMs)]);
      const due = await lockDueErasures(trx, saleId);
      const [sale] = await rows<{ generation: number }>(
        trx,
        'SELECT generation FROM sales WHERE id = ? AND archived_at IS NOT NULL AND deleting_since IS NULL FOR UPDATE',
        [saleId],
      );
      if (!sale) return;
      await leavePlaces(trx, saleId, due);
      await applyErasures(trx, { saleId, generation: sale.generation }, due);
    }),
  );
}

/**
 * Locks the sale's due erasures, and the orders that they concern. The caller locks the sale's row afterwards: rows of
 * orders are locked first.
 */
export async function lockDueErasures(trx: Knex.Transaction, saleId: string): Promise<DueErasure[]> {
  const due = await rows<DueErasure>(
    trx,
    `SELECT e.buyer_id AS "buyerId", e.pseudonym, e.actor, e.reason
     FROM erasures e JOIN sales s ON s.id = e.sale_id
     WHERE e.sale_id = ? AND ${DUE} AND s.deleting_since IS NULL ORDER BY e.buyer_id FOR UPDATE OF e`,
    [saleId],
  );
  const concerned: string[] = [];
  for (const { buyerId } of due) concerned.push(...(await readOrderIds(trx, saleId, buyerId)));
  if (concerned.length > 0) {
    await trx.raw('SELECT 1 FROM orders WHERE order_id = ANY (?::bigint[]) ORDER BY order_id FOR UPDATE', [
      numbers(concerned),
    ]);
  }
  return due;
}

/**
 * The buyers leave the queue, and give back their offers: nobody could accept them afterwards. It is done before the next generation
 * begins, so that units that come back are part of what is loaded. Under the lock on the sale's row no place gets an offer meanwhile, and
 * under that on the row of `queues` none of them gets another place, which would wait under the pseudonym.
 */
export async function leavePlaces(
  trx: Knex.Transaction,
  saleId: string,
  due: readonly DueErasure[],
): Promise<void> {
  if (due.length === 0) return;
  await trx.raw('SELECT 1 FROM sales WHERE id = ? FOR UPDATE', [saleId]);
  await trx.raw('SELECT 1 FROM queues WHERE sale_id = ? FOR UPDATE', [saleId]);
  for (const { buyerId } of due) await trx.raw('SELECT 1 FROM stockade_leave_queue(?, ?)', [saleId, buyerId]);
  await markAsked(trx, saleId);
}

/**
 * Replaces the ids, and notes it in the ledger. The caller holds the lock on the sale's row: so orders that another sync
 * has committed since `lockDueErasures` are found here, and later ones are refused.
 */
export async function applyErasures(
  trx: Knex.Transaction,
  sale: { readonly saleId: string; readonly generation: number },
  due: readonly DueErasure[],
): Promise<void> {
  for (const erasure of due) {
    const { actor, reason, pseudonym } = erasure;
    const orders = await replaceId(trx, sale.saleId, erasure);
    const detail = { pseudonym, orders };
    const movement = await writeMovement(trx, { ...sale, action: 'erase', detail }, { actor, reason });
    await closeMovement(trx, movement);
  }
}

/**
 * The key that a client gave to an order may name the buyer, so it goes too. Keys that Stockade has made stay: they name an order or
 * a place, and a repeated late payment needs them (orders/late-payment.ts).
 * @returns the number of the buyer's orders
 */
async function replaceId(
  trx: Knex.Transaction,
  saleId: string,
  { buyerId, pseudonym }: DueErasure,
): Promise<number> {
  const orders = await readOrderIds(trx, saleId, buyerId);
  const ids = numbers(orders);
  await trx.raw(
    `UPDATE orders SET buyer_id = ?,
       idempotency_key = CASE WHEN starts_with(idempotency_key, ?) OR starts_with(idempotency_key, ?)
         THEN idempotency_key END
     WHERE order_id = ANY (?::bigint[])`,
    [pseudonym, ...RESERVED_PREFIXES, ids],
  );
  await erasePlaces(trx, saleId, { buyerId, pseudonym });
  await trx.raw('UPDATE stock_returns SET buyer_id = ? WHERE buyer_id = ? AND order_id = ANY (?::bigint[])', [
    pseudonym,
    buyerId,
    ids,
  ]);
  // The order of such a return may belong to another buyer (sync/apply/apply-each.ts).
  await trx.raw(
    `UPDATE stock_returns SET buyer_id = ?
     WHERE sale_id = ? AND reason LIKE 'rejected: %' AND buyer_id = ?`,
    [pseudonym, saleId, buyerId],
  );
  await trx.raw('UPDATE lost_orders SET buyer_id = ? WHERE sale_id = ? AND buyer_id = ?', [
    pseudonym,
    saleId,
    buyerId,
  ]);
  await trx.raw('DELETE FROM erasures WHERE sale_id = ? AND buyer_id = ?', [saleId, buyerId]);
  return orders.length;
}

async function readOrderIds(trx: Knex.Transaction, saleId: string, buyerId: string): Promise<string[]> {
  const buyer = [saleId, buyerId];
  const found = await rows<{ id: string }>(
    trx,
    `SELECT order_id::text AS id FROM (${ofBuyer('sale_id = ? AND buyer_id = ?')}) AS all_orders`,
    [...buyer, ...buyer, ...buyer],
  );
  return found.map(({ id }) => id);
}
