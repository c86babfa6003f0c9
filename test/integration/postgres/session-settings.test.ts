/** What a database or a role has as its default does not reach the sessions of Stockade. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase, rows } from '../../../src/postgres/database.ts';
import { PostgresLocks } from '../../../src/postgres/sale-locks.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { until } from '../../support/until.ts';

const IDLE_LIMIT_MS = 100;

let postgres: PostgresServer;
let db: Database;

beforeAll(async () => {
  postgres = await PostgresServer.start({
    settings: {
      default_transaction_isolation: 'serializable',
      datestyle: 'German',
      synchronous_commit: 'off',
      idle_session_timeout: String(IDLE_LIMIT_MS),
    },
  });
  db = openDatabase({ url: postgres.url, maxConnections: 2 });
});

afterAll(async () => {
  await db?.destroy();
  await postgres?.[Symbol.asyncDispose]();
});

test('transactions are read committed, and wait for the disk', async () => {
  const show = 'SELECT current_setting(?) AS value';
  const [isolation, commit] = await db.transaction(async (trx) => [
    ...(await rows(trx, show, ['transaction_isolation'])),
    ...(await rows(trx, show, ['synchronous_commit'])),
  ]);
  expect([isolation, commit]).toEqual([{ value: 'read committed' }, { value: 'on' }]);
});

test('a stronger level of synchronous_commit stays', async () => {
  await db.raw("ALTER ROLE postgres SET synchronous_commit = 'remote_write'");
  const other = openDatabase({ url: postgres.url, maxConnections: 1 });
  try {
    const found = await rows(other, "SELECT current_setting('synchronous_commit') AS value");
    expect(found).toEqual([{ value: 'remote_write' }]);
  } finally {
    await other.destroy();
    await db.raw('ALTER ROLE postgres RESET synchronous_commit');
  }
});

test('a session that can’t be given them is closed, and the statement fails', async () => {
  await db.raw('CREATE ROLE weak LOGIN');
  // Postgres itself does not close its sessions.
  await db.raw('ALTER ROLE weak SET idle_session_timeout = 0');
  await db.raw('REVOKE EXECUTE ON FUNCTION set_config(text, text, boolean) FROM PUBLIC');
  const other = openDatabase({ url: postgres.url.replace('postgres@', 'weak@'), maxConnections: 1 });
  try {
    await expect(other.raw('SELECT 1')).rejects.toThrow(/permission denied for function set_config/);
    const sessions = () => rows(db, "SELECT 1 FROM pg_stat_activity WHERE usename = 'weak'");
    await until(async () => (await sessions()).length === 0, { what: 'no session of the role is left' });
  } finally {
    await other.destroy();
  }
});

test('times are read as they are', async () => {
  const [found] = await rows<{ at: Date }>(db, "SELECT timestamptz '2026-02-01 10:00:00Z' AS at");
  expect(found!.at).toEqual(new Date('2026-02-01T10:00:00Z'));
});

test('a session that holds locks may be idle', async () => {
  const locks = new PostgresLocks(postgres.url);
  try {
    expect(await locks.tryLock('tickets')).toBe(true);
    const idleMs = async () => {
      const [session] = await rows<{ idle_ms: string }>(
        db,
        `SELECT extract(epoch FROM clock_timestamp() - a.state_change) * 1000 AS idle_ms
         FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory'`,
      );
      expect(session, 'it has its session').toBeDefined();
      return Number(session!.idle_ms);
    };
    await until(async () => (await idleMs()) > 5 * IDLE_LIMIT_MS, { what: 'it has been idle for long' });
    expect(await locks.holds('tickets')).toBe(true);
  } finally {
    await locks.close();
  }
});
