import { afterEach, expect, test } from 'vitest';
import { type Database, openDatabase, rows } from '../../../src/postgres/database.ts';
import { migrate } from '../../../src/postgres/migrate.ts';
import { emptyDatabase } from '../../support/fixtures.ts';

const ALL = ['001-initial.sql', '002-apply-batch.sql'];

const open: Database[] = [];

function connect(url: string): Database {
  const db = openDatabase({ url, maxConnections: 2 });
  open.push(db);
  return db;
}

afterEach(() => Promise.all(open.splice(0).map((db) => db.destroy())));

test('an empty database gets every migration, in the order of their numbers, and a second run finds nothing to do', async () => {
  const db = connect(await emptyDatabase());
  const applied = await migrate(db);
  expect(applied.slice(0, ALL.length)).toEqual(ALL);
  expect(applied).toEqual([...applied].sort());
  expect(await migrate(db)).toEqual([]);
});

test('several nodes start at once: one migrates, and the others find it done', async () => {
  const url = await emptyDatabase();
  const applied = await Promise.all(Array.from({ length: 4 }, () => migrate(connect(url))));
  const [most, ...others] = applied.sort((a, b) => b.length - a.length);
  expect(most!.length).toBeGreaterThanOrEqual(ALL.length);
  expect(others).toEqual([[], [], []]);
});

test('a migration that fails leaves nothing behind, and the next start does it all', async () => {
  const url = await emptyDatabase();
  const db = connect(url);
  await db.raw('CREATE TABLE orders (it int)');
  await expect(migrate(db)).rejects.toThrow(/"orders" already exists/);
  expect(await rows(db, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).toEqual([
    { tablename: 'orders' },
  ]);
  await db.raw('DROP TABLE orders');
  expect(await migrate(db)).toHaveLength((await rows(db, 'SELECT name FROM stockade_migrations')).length);
});
