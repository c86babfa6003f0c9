/** Changes with a latest time: how a connection learns the clock of Postgres, and what is not sent at all. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { IN_TIME } from '../../../src/postgres/changes/in-time.ts';
import { rowsInTime } from '../../../src/postgres/changes/rows-in-time.ts';
import { type Database, openDatabase, rows } from '../../../src/postgres/database.ts';
import { freshDatabase } from '../../support/fixtures.ts';
import { setChangeClock } from '../../support/postgres/change-clock.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';

const HOUR_MS = 3_600_000;

let db: Database;
let sent: string[];

beforeEach(async () => {
  db = openDatabase({ url: asAdmin(await freshDatabase()), maxConnections: 1 });
  await db.raw('CREATE TABLE made (n integer)');
  sent = [];
  db.on('query', ({ sql }: { sql: string }) => sent.push(sql));
});

afterEach(() => db.destroy());

const make = (latestMs?: number) =>
  rowsInTime<{ n: number }>(db, latestMs, {
    sql: `WITH done AS (INSERT INTO made VALUES (7) RETURNING n) SELECT ${IN_TIME}, n FROM done`,
    bindings: (latest) => [latest],
  });
const made = async () => (await rows(db, 'SELECT 1 FROM made')).length;

test('a connection asks for the time once', async () => {
  for (let i = 0; i < 3; i++) expect(await make(monotonicMs() + HOUR_MS)).toMatchObject([{ n: 7 }]);
  expect(sent).toHaveLength(4);
  expect(await made()).toBe(3);
});

test('without a latest time a change is made at any time, and nothing is asked', async () => {
  expect(await make()).toMatchObject([{ n: 7 }]);
  expect(sent).toHaveLength(1);
});

test('what is late is not sent', async () => {
  await expect(make(monotonicMs() - 1)).rejects.toMatchObject({ code: 'timed_out' });
  expect(sent).toEqual([]);
});

test('nor is what waits too long for a connection', async () => {
  const other = await db.transaction();
  const latestMs = monotonicMs() + 100;
  const change = make(latestMs).catch((error: unknown) => error);
  await other.raw('SELECT pg_sleep(0.2)');
  await other.rollback();
  sent = [];
  expect(await change).toMatchObject({ code: 'timed_out' });
  expect(await made()).toBe(0);
  expect(sent.filter((sql) => sql.includes('INSERT'))).toEqual([]);
});

test('if Postgres’ clock is set forward, it is asked again', async () => {
  await make(monotonicMs() + 60_000);
  await setChangeClock(db, HOUR_MS);
  sent = [];
  expect(await make(monotonicMs() + 60_000)).toMatchObject([{ n: 7 }]);
  // Refused, asked, made.
  expect(sent).toHaveLength(3);
  expect(await made()).toBe(2);
});

test('an error of Postgres is thrown as it is', async () => {
  await db.raw('ALTER TABLE made ADD CHECK (n < 7)');
  await expect(make(monotonicMs() + 60_000)).rejects.toMatchObject({ code: '23514' });
});
