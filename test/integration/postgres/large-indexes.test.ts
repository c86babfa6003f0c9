/** An index of a large table is built beside the migrations, and a build that died is started again. */
import { afterEach, expect, test } from 'vitest';
import { type Database, openDatabase, rows } from '../../../src/postgres/database.ts';
import { buildLargeIndexes, missingIndexes } from '../../../src/postgres/large-indexes.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { emptyDatabase, until } from '../../support/fixtures.ts';

const INDEX = 'orders_of_sale';
/** With a tenth of each page in use, these rows fill more than 64 MB, up to which a migration builds the index. */
const MANY_ORDERS = 80_000;

const open: Database[] = [];

async function migrated(): Promise<{ db: Database; another: () => Database }> {
  const url = await emptyDatabase();
  const another = () => {
    const db = openDatabase({ url, maxConnections: 2, queryTimeoutMs: 0 });
    open.push(db);
    return db;
  };
  const db = another();
  await migrate(db);
  return { db, another };
}

afterEach(() => Promise.all(open.splice(0).map((db) => db.destroy())));

test('a migration builds the index of a small table', async () => {
  const { db } = await migrated();
  expect(await missingIndexes(db)).toEqual([]);
  expect(await buildLargeIndexes(db)).toEqual([]);
});

test('a migration leaves out the index of a large table, and it is built afterwards', async () => {
  const { db } = await migrated();
  await db.raw(`DROP INDEX ${INDEX}, sales_newest, sales_at_work`);
  await db.raw('ALTER TABLE sales DROP COLUMN live_orders');
  await db.raw("DELETE FROM stockade_migrations WHERE name LIKE '014-%'");
  await db.raw('ALTER TABLE orders SET (fillfactor = 10)');
  await insertOrders(db, MANY_ORDERS);
  await migrate(db);
  expect(await missingIndexes(db)).toEqual([INDEX]);
  expect(await buildLargeIndexes(db)).toEqual([INDEX]);
  expect(await missingIndexes(db)).toEqual([]);
});

test('an index that a dead build has left invalid is built again', async () => {
  const { db } = await migrated();
  await db.raw('UPDATE pg_index SET indisvalid = false WHERE indexrelid = ?::regclass', [INDEX]);
  expect(await missingIndexes(db)).toEqual([INDEX]);
  await buildLargeIndexes(db);
  expect(await missingIndexes(db)).toEqual([]);
});

test('of two processes one builds it while orders are written, and the other waits for its end', async () => {
  const { db, another } = await migrated();
  await db.raw(`DROP INDEX ${INDEX}`);
  // An open transaction that has written prevents the end of the build.
  const writer = await another().transaction();
  await insertOrders(writer, 1);
  const builds = [buildLargeIndexes(db), buildLargeIndexes(another())];
  const begun = "SELECT 1 FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting for %'";
  await until(async () => (await rows(db, begun)).length > 0, { what: 'a build that waits' });
  await insertOrders(another(), 1, 2);
  expect(await missingIndexes(another())).toEqual([INDEX]);
  await writer.commit();
  await Promise.all(builds);
  expect(await missingIndexes(db)).toEqual([]);
});

async function insertOrders(db: Pick<Database, 'raw'>, count: number, from = 1): Promise<void> {
  await db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer)
     SELECT n, 'old', 'buyer-' || n, 1, true FROM generate_series(?::bigint, ?) AS n`,
    [from, from + count - 1],
  );
}
