/** Postgres ends a statement whose caller has given up. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BoundedWork } from '../../../src/node/operations/bounded-work.ts';
import { OperationTimedOut } from '../../../src/operations/operation-faults.ts';
import { type Database, openDatabase, rows } from '../../../src/postgres/database.ts';
import { emptyDatabase, until } from '../../support/fixtures.ts';

const SLOW = 'SELECT pg_sleep(600)';
const AT_HAND = { away: async () => [], backendAway: async () => undefined };

let url: string;
let admin: Database;
const open: Database[] = [];

function connect(queryTimeoutMs?: number): Database {
  const db = openDatabase({ url, maxConnections: 2, ...(queryTimeoutMs && { queryTimeoutMs }) });
  open.push(db);
  return db;
}

beforeEach(async () => {
  url = await emptyDatabase();
  admin = connect();
});

afterEach(() => Promise.all(open.splice(0).map((db) => db.destroy())));

const running = async () =>
  (
    await rows(
      admin,
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query = ?`,
      [SLOW],
    )
  ).length;
const ended = () => until(async () => (await running()) === 0, { what: 'the statement has ended' });

test('a query beyond its time limit', async () => {
  const db = connect(500);
  await expect(rows(db, SLOW)).rejects.toThrow('Query read timeout');
  await ended();
  await db.raw('SELECT 1');
});

test('a query beyond its time limit is not cancelled where one connection is all that there is', async () => {
  const db = openDatabase({ url, maxConnections: 1, queryTimeoutMs: 300 });
  open.push(db);
  await admin.raw('CREATE TABLE ends (at timestamptz)');
  const statement = 'INSERT INTO ends SELECT now() FROM pg_sleep(1)';
  await expect(rows(db, statement)).rejects.toThrow('Query read timeout');
  await until(async () => (await rows(admin, 'SELECT 1 FROM ends')).length === 1, {
    what: 'it has run to its end',
  });
});

/** An operation that is given up while its statement runs: late enough that a slow machine sees it run. */
async function operation(work: () => Promise<unknown>, changes = false): Promise<unknown> {
  const bounded = new BoundedWork(AT_HAND, { operationMs: 3_000, verifyMs: 3_000, checkEveryMs: 50 });
  const end = bounded.run('look', work, { changes }).catch((error: unknown) => error);
  await until(async () => (await running()) === 1, { what: 'the statement runs' });
  return end;
}

test('an operation that only reads, at its deadline', async () => {
  const db = connect();
  const error = await operation(() => rows(db, SLOW));
  expect(error).toBeInstanceOf(OperationTimedOut);
  await ended();
  await db.raw('SELECT 1');
});

test('in a transaction, which is rolled back; its later statements are refused', async () => {
  const db = connect();
  let next: unknown;
  await operation(() =>
    db.transaction(async (trx) => {
      await trx.raw(SLOW).catch(() => {});
      next = await db.raw('SELECT 1').catch((error: unknown) => error);
    }),
  );
  await ended();
  await until(() => next, { what: 'the next statement' });
  expect(next).toMatchObject({ code: 'given_up' });
  await db.raw('SELECT 1');
});

test('an operation that changes something continues', async () => {
  const db = connect();
  expect(await operation(() => rows(db, SLOW), true)).toBeInstanceOf(OperationTimedOut);
  expect(await running()).toBe(1);
  await admin.raw('SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = ?', [SLOW]);
  await ended();
});

test('an operation that ends in time leaves its connection to the next one, after a transaction too', async () => {
  const db = connect();
  const bounded = new BoundedWork(AT_HAND);
  const pid = async () => (await rows<{ pid: number }>(db, 'SELECT pg_backend_pid() AS pid'))[0]!.pid;
  const first = await bounded.run('look', pid);
  await bounded.run('look', () => db.transaction((trx) => trx.raw('SELECT 1')));
  await bounded.run('look', () => db.transaction((trx) => trx.raw('SELECT no_such_column'))).catch(() => {});
  expect(await bounded.run('look', pid)).toBe(first);
});
