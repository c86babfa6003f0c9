/**
 * Deletes what belongs to a sale whose deletion has begun: its orders page by page, each page in a transaction of its
 * own, and at last everything else together with the sale's row. It keeps no state, so it can be started again at any
 * time, and by several processes at once: the lock only saves double work. A process that comes too late does no harm: each statement
 * deletes only while its deletion goes on, because afterwards another sale may have the id.
 */
import type { Knex } from 'knex';
import { numbers } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { closeDeletion, type DeletedSale } from '../sales/deleted-sales.ts';
import { BEFORE_ALL_ORDERS, IS_AFTER, ORDERS_AFTER } from './orders-of-sale.ts';

/** Rows that one statement deletes. */
const PAGE_ROWS = 1_000;
/** SQL: whether a deletion goes on. Its values: the sale and the generation of the deletion. */
const GOES_ON =
  'EXISTS (SELECT 1 FROM sales s WHERE s.id = ? AND s.generation = ? AND s.deleting_since IS NOT NULL)';

/**
 * @param signal ends it after the page under way
 * @returns whether the sale is deleted now; false if another process deletes it, or the signal was sent
 */
export async function finishDeletion(
  db: Database,
  locks: SaleLocks,
  sale: DeletedSale,
  signal?: AbortSignal,
): Promise<boolean> {
  // No sale has such an id: SALE_ID_PATTERN.
  const name = `delete:${sale.saleId}`;
  if (!(await locks.tryLock(name))) return false;
  try {
    do {
      await deleteOrders(db, sale, signal);
      await deleteLost(db, sale, signal);
      await deletePlaces(db, sale, signal);
      if (signal?.aborted) return false;
    } while (!(await despiteDeadlocks(() => db.transaction((trx) => deleteRest(trx, sale)))));
    return true;
  } finally {
    await locks.unlock(name);
  }
}

/**
 * A page begins after the last one, so that no statement passes by the rows that earlier ones have deleted: Postgres
 * keeps those for a while. What another process deletes meanwhile is missing in a page.
 */
async function deleteOrders(db: Database, sale: DeletedSale, signal: AbortSignal | undefined): Promise<void> {
  for (let last: string | undefined = BEFORE_ALL_ORDERS; last !== undefined && !signal?.aborted; ) {
    const after: string = last;
    last = await despiteDeadlocks(() => db.transaction((trx) => deleteOrderPage(trx, sale, after)));
  }
}

/**
 * Deletes a page of orders with all that names them, and counts them. Arrays, so that every plan uses the indexes of the
 * ids: a join may read a whole table instead.
 *
 * The orders are locked before, in a statement of their own: it waits for changes that began before the deletion, and the next one
 * sees what they have written.
 * @returns the page's last order
 */
async function deleteOrderPage(
  trx: Knex.Transaction,
  { saleId, generation }: DeletedSale,
  after: string,
): Promise<string | undefined> {
  const page = await rows<{ id: string }>(
    trx,
    `SELECT order_id::text AS id FROM orders WHERE ${IS_AFTER} AND ${GOES_ON}
     ORDER BY sale_id, orders.order_id LIMIT ? FOR UPDATE`,
    [saleId, after, saleId, saleId, generation, PAGE_ROWS],
  );
  const ids = numbers(page.map(({ id }) => id));
  await trx.raw(
    `WITH page AS (
       SELECT unnest(?::bigint[]) AS order_id
     ), changes AS (
       DELETE FROM order_changes WHERE order_id = ANY (ARRAY(SELECT order_id FROM page))
     ), returns AS (
       DELETE FROM stock_returns WHERE order_id = ANY (ARRAY(SELECT order_id FROM page))
     ), gone AS (
       DELETE FROM orders WHERE order_id = ANY (ARRAY(SELECT order_id FROM page)) RETURNING order_id
     )
     UPDATE deleted_sales SET done = done + (SELECT count(*) FROM gone) WHERE id = ? AND generation = ?`,
    [ids, saleId, generation],
  );
  return page.at(-1)?.id;
}

/** There may be one for each order that a Redis has lost. */
const LOST_ORDERS = `DELETE FROM lost_orders WHERE order_id = ANY (ARRAY(
  SELECT order_id FROM lost_orders WHERE sale_id = ? AND ${GOES_ON} LIMIT ?)) RETURNING 1`;

async function deleteLost(
  db: Database,
  { saleId, generation }: DeletedSale,
  signal: AbortSignal | undefined,
): Promise<void> {
  for (let deleted = PAGE_ROWS; deleted === PAGE_ROWS && !signal?.aborted; ) {
    const gone = await despiteDeadlocks(() => rows(db, LOST_ORDERS, [saleId, saleId, generation, PAGE_ROWS]));
    deleted = gone.length;
  }
}

/** There may be as many as people came. Pages as those of the orders. */
async function deletePlaces(db: Database, sale: DeletedSale, signal: AbortSignal | undefined): Promise<void> {
  for (let last: string | null = '0'; last !== null && !signal?.aborted; ) {
    const after: string = last;
    last = await despiteDeadlocks(() => deletePlacePage(db, sale, after));
  }
}

/**
 * The end of the page is a bound of its number alone. By pairs, Postgres would read on to the sale's last place.
 * @returns the page's last number
 */
async function deletePlacePage(
  db: Database,
  { saleId, generation }: DeletedSale,
  after: string,
): Promise<string | null> {
  const [page] = await rows<{ last: string | null }>(
    db,
    `WITH page AS (
       SELECT max(number) AS last FROM (
         SELECT number FROM places
         WHERE (sale_id, number) > (?, ?::bigint) AND (sale_id, number) <= (?, ${2n ** 63n - 1n}) AND ${GOES_ON}
         ORDER BY sale_id, number LIMIT ?) AS next
     ), gone AS (
       DELETE FROM places WHERE sale_id = ? AND number > ? AND number <= (SELECT last FROM page)
     )
     SELECT last::text FROM page`,
    [saleId, after, saleId, saleId, generation, PAGE_ROWS, saleId, after],
  );
  return page!.last;
}

/**
 * The last transaction. A row that a slower statement has added to these tables was committed before the lock, because
 * it needs the sale's row.
 * @returns false, and nothing was deleted, if there are orders
 */
async function deleteRest(trx: Knex.Transaction, sale: DeletedSale): Promise<boolean> {
  const { saleId, generation } = sale;
  const found = await rows(
    trx,
    'SELECT 1 FROM sales WHERE id = ? AND generation = ? AND deleting_since IS NOT NULL FOR UPDATE',
    [saleId, generation],
  );
  // Another process was faster.
  if (found.length === 0) return true;
  const left = await rows(trx, `SELECT 1 ${ORDERS_AFTER} LIMIT 1`, [saleId, BEFORE_ALL_ORDERS, saleId]);
  if (left.length > 0) return false;
  await trx.raw('DELETE FROM lost_orders WHERE sale_id = ?', [saleId]);
  await trx.raw('DELETE FROM places WHERE sale_id = ?', [saleId]);
  await trx.raw('DELETE FROM sale_losses WHERE sale_id = ?', [saleId]);
  await trx.raw('DELETE FROM stock_returns WHERE sale_id = ?', [saleId]);
  await trx.raw('DELETE FROM segment_cursors WHERE sale_id = ?', [saleId]);
  await trx.raw('DELETE FROM stock_movements WHERE sale_id = ?', [saleId]);
  await trx.raw('DELETE FROM queue_presence WHERE sale_id = ?', [saleId]);
  await trx.raw('DELETE FROM begun_offers WHERE sale_id = ?', [saleId]);
  await trx.raw('DELETE FROM queues WHERE sale_id = ?', [saleId]);
  await trx.raw('DELETE FROM sales WHERE id = ?', [saleId]);
  await closeDeletion(trx, sale);
  return true;
}
