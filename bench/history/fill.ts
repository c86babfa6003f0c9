/** Fills a migrated database with ended sales and their orders, as years of selling would leave them. */
import { note } from '../../src/cli/terminal/output.ts';
import { progressBar } from '../../src/cli/terminal/progress.ts';
import { type Database, rows } from '../../src/postgres/database.ts';
import { buildLargeIndexes } from '../../src/postgres/large-indexes.ts';
import { countAllSales } from '../../src/sales/live-orders.ts';
import { rounded } from '../support/figures.ts';
import type { HistoryParameters } from './options.ts';

const CHUNK_ORDERS = 500_000;
/** One of this many orders was cancelled. */
const CANCELLED = 20;
/** Orders that were taken in one second. */
const ORDERS_PER_SECOND = 200;
/** The second of the first order, as in an order id. */
const FIRST_SECOND = 10_000_000;
const BUYERS = 10_000_000;

export interface Filled {
  /** Seconds that `stockade migrate` takes for an index beside the migrations, and to count live orders. */
  readonly indexS: number;
  readonly countS: number;
  readonly gigabytes: number;
}

/** @param db without a bound on the time of a query */
export async function fill(db: Database, { orders, sales }: HistoryParameters): Promise<Filled> {
  note(`Filling: ${orders.toLocaleString('en')} orders of ${sales.toLocaleString('en')} ended sales`);
  await insertSales(db, sales, Math.floor(orders / sales));
  const indexes = await dropIndexes(db);
  const bar = progressBar(orders, 'orders');
  for (let at = 0; at < orders; at += CHUNK_ORDERS) {
    await insertOrders(db, at, Math.min(at + CHUNK_ORDERS, orders), orders / sales);
    bar.update(at);
  }
  bar.stop();
  note('Building the indexes');
  for (const sql of indexes) await db.raw(sql.replaceAll('?', '\\?'));
  await db.raw('VACUUM ANALYZE orders');
  await db.raw('ANALYZE');
  const indexS = await seconds(() => buildLargeIndexes(db));
  const countS = await seconds(() => countAllSales(db));
  await db.raw('VACUUM ANALYZE sales');
  const [size] = await rows<{ bytes: string }>(db, 'SELECT pg_database_size(current_database()) AS bytes');
  return { indexS, countS, gigabytes: rounded(Number(size!.bytes) / 1e9, 2) };
}

async function insertSales(db: Database, sales: number, ordersPerSale: number): Promise<void> {
  const cancelled = Math.ceil(ordersPerSale / CANCELLED);
  await db.raw(
    `INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, ends_at, state, generation,
       metadata, created_at, live_orders, archived_at)
     SELECT 'ended-' || lpad(i::text, 6, '0'), 'Ended', ?::bigint, ?::bigint, 8, 1, at, at + interval '1 hour', 'closed', 1,
       '{}', at, NULL, at + interval '2 hours'
     FROM (SELECT i, now() - interval '1 hour' * (?::integer + 1 - i) AS at FROM generate_series(1, ?::integer) AS i) AS s`,
    [ordersPerSale, cancelled, sales, sales],
  );
}

/** Drops all indexes of `orders`. @returns statements that create all but `orders_of_sale`, which `stockade migrate` builds */
async function dropIndexes(db: Database): Promise<string[]> {
  const found = await rows<{ name: string; definition: string; constraint: string | null }>(
    db,
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition,
       c.conname AS constraint
     FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid AND c.contype = 'p'
     WHERE i.indrelid = 'orders'::regclass`,
  );
  for (const { name, constraint } of found) {
    await db.raw(constraint ? `ALTER TABLE orders DROP CONSTRAINT ${constraint}` : `DROP INDEX ${name}`);
  }
  return found
    .filter(({ name }) => name !== 'orders_of_sale')
    .map(({ definition, constraint }) =>
      constraint ? `ALTER TABLE orders ADD CONSTRAINT ${constraint} PRIMARY KEY (order_id)` : definition,
    );
}

async function insertOrders(db: Database, from: number, to: number, ordersPerSale: number): Promise<void> {
  await db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer, committed_at, paid_at)
     SELECT ((?::bigint + n / ${ORDERS_PER_SECOND}) << 32) | ((n * 2654435761) & 4294967295),
       'ended-' || lpad((1 + n / ?::bigint)::text, 6, '0'),
       'buyer-' || lpad(((n * 7919) % ${BUYERS})::text, 8, '0'), 1,
       CASE WHEN n % ${CANCELLED} = 0 THEN 'cancelled' ELSE 'paid' END, true,
       now() - interval '1 hour' - interval '1 millisecond' * (?::bigint - n), now()
     FROM generate_series(?::bigint, ?::bigint) AS n`,
    [FIRST_SECOND, Math.floor(ordersPerSale), to, from, to - 1],
  );
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return rounded((performance.now() - began) / 1_000, 2);
}
