/** Transactions with a latest time, held up at each of their messages. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { explain } from '../../../src/cli/terminal/explain.ts';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { ReplyLost } from '../../../src/lib/with-timeout.ts';
import { asLost, IN_TIME } from '../../../src/postgres/changes/in-time.ts';
import { rowsInTime } from '../../../src/postgres/changes/rows-in-time.ts';
import { transactionInTime } from '../../../src/postgres/changes/transaction-in-time.ts';
import { type Database, openDatabase, rows } from '../../../src/postgres/database.ts';
import { freshDatabase, until } from '../../support/fixtures.ts';
import { untilBlocked } from '../../support/postgres/blocked.ts';
import { setChangeClock } from '../../support/postgres/change-clock.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';

/** Long enough that everything before the message that is held up arrives. */
const IN_TIME_MS = 2_000;
const MINUTE_MS = 60_000;

let url: string;
let proxy: TcpProxy;
/** Through the proxy. */
let db: Database;
let direct: Database;

beforeEach(async () => {
  url = await freshDatabase();
  proxy = await TcpProxy.start(Number(new URL(url).port));
  direct = openDatabase({ url: asAdmin(url), maxConnections: 2 });
  await direct.raw('CREATE TABLE made (n integer)');
  db = openDatabase({ url: proxy.through(asAdmin(url)), maxConnections: 1 });
});

afterEach(async () => {
  await db.destroy();
  await direct.destroy();
  await proxy.stop();
});

const insert = (latestMs?: number) =>
  transactionInTime(db, latestMs, async (trx) => {
    await trx.raw('SELECT 1 FROM settings FOR UPDATE');
    const [made] = await rows<{ n: number }>(trx, 'INSERT INTO made VALUES (7) RETURNING n');
    return made!.n;
  });
const made = async () => (await rows(direct, 'SELECT 1 FROM made')).length;
const sessions = async (state: string) =>
  (
    await rows(
      direct,
      'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = ?',
      [state],
    )
  ).length;
const past = (ms: number) => until(() => monotonicMs() > ms, { what: 'the latest time is over' });

test('is not made, and its error says so, if Postgres takes no writes', async () => {
  await db.raw('SET default_transaction_read_only = on');
  const latestMs = monotonicMs() + MINUTE_MS;
  const insertAlone = () =>
    rowsInTime(db, latestMs, {
      sql: `INSERT INTO made VALUES (7) RETURNING ${IN_TIME}`,
      bindings: (latest) => [latest],
    });
  for (const change of [() => insert(latestMs), insertAlone]) {
    const error: unknown = await change().catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: 'unavailable',
      message: 'Postgres takes no writes, so the change was not made',
      cause: { code: '25006' },
    });
    expect(explain(error).lines[1]).toMatch(/primary.*default_transaction_read_only/);
  }
  expect(await made()).toBe(0);
});

test('is made in time, and its session serves others as before', async () => {
  for (let i = 1; i <= 3; i++) {
    expect(await insert(monotonicMs() + MINUTE_MS)).toBe(7);
    expect(await made()).toBe(i);
  }
  const [setting] = await rows(db, 'SHOW idle_in_transaction_session_timeout');
  expect(setting).toEqual({ idle_in_transaction_session_timeout: '0' });
  expect(proxy.counts.connections).toBe(1);
});

test('without a latest time it is made at any time', async () => {
  expect(await insert()).toBe(7);
  expect(await made()).toBe(1);
});

test('what is late does not begin', async () => {
  await expect(insert(monotonicMs() - 1)).rejects.toMatchObject({ code: 'timed_out' });
  expect(await made()).toBe(0);
});

test('it waits for a lock past its latest time: it is rolled back', async () => {
  await direct.raw("INSERT INTO settings (name, value) VALUES ('test', '1')");
  const lock = await direct.transaction();
  await lock.raw('SELECT 1 FROM settings FOR UPDATE');
  const latestMs = monotonicMs() + IN_TIME_MS;
  const change = insert(latestMs).catch((error: unknown) => error);
  await untilBlocked(direct, 1);
  await past(latestMs);
  await lock.rollback();
  expect(await change).toMatchObject({ code: 'timed_out' });
  expect(await made()).toBe(0);
});

describe('a message is held up past the latest time', () => {
  test.each(['INSERT INTO made', 'set_config'])('%s: all is rolled back', async (text) => {
    const { held } = proxy.hold((request) => request.includes(text));
    const latestMs = monotonicMs() + IN_TIME_MS;
    const change = insert(latestMs).catch((error: unknown) => error);
    await held;
    await past(latestMs);
    await proxy.release();
    expect(await change).toMatchObject({ code: 'timed_out' });
    expect(await made()).toBe(0);
  });

  test('COMMIT: Postgres has ended the session by then', async () => {
    const { held } = proxy.hold((request) => request.includes('COMMIT'));
    const latestMs = monotonicMs() + IN_TIME_MS;
    const change = insert(latestMs).catch((error: unknown) => error);
    await held;
    expect(await sessions('idle in transaction')).toBe(1);
    await until(async () => (await sessions('idle in transaction')) === 0, { what: 'Postgres ends it' });
    // By Postgres' clock it ends no later, and by this one sooner.
    expect(monotonicMs()).toBeGreaterThan(latestMs - IN_TIME_MS / 2);
    await proxy.release();
    expect(await change).toBeInstanceOf(Error);
    expect(await made()).toBe(0);
    const next = await until(() => insert(monotonicMs() + MINUTE_MS), {
      what: 'the pool has a new connection for the next one',
    });
    expect(next).toBe(7);
    expect(await made()).toBe(1);
  });
});

test('COMMIT is made, and its reply is lost: the error says that it may have been made', async () => {
  const { lost } = proxy.loseReplies((request) => request.includes('COMMIT'));
  await expect(insert(monotonicMs() + MINUTE_MS)).rejects.toThrow(ReplyLost);
  await lost;
  expect(await made()).toBe(1);
});

test('a connection that breaks earlier has changed nothing, and the error does not say otherwise', async () => {
  proxy.loseRequests((request) => request.includes('INSERT INTO made'));
  const error = await insert(monotonicMs() + MINUTE_MS).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  expect(error).not.toBeInstanceOf(ReplyLost);
  expect(await made()).toBe(0);
});

test('if Postgres’ clock is set forward, it is asked again, and the transaction is made once', async () => {
  await insert(monotonicMs() + MINUTE_MS);
  await setChangeClock(direct, 60 * MINUTE_MS);
  expect(await insert(monotonicMs() + MINUTE_MS)).toBe(7);
  expect(await made()).toBe(2);
});

test('an error of Postgres is thrown as it is; one of a connection, also of a proxy’s, says that the reply is lost', async () => {
  await direct.raw('ALTER TABLE made ADD CHECK (n < 7)');
  await expect(insert(monotonicMs() + MINUTE_MS)).rejects.toMatchObject({ code: '23514' });
  const refused = Object.assign(new Error('refused'), { code: '25P03' });
  expect(asLost(refused)).toBe(refused);
  for (const code of ['08P01', '08006', 'ECONNRESET', undefined])
    expect(asLost(Object.assign(new Error('gone'), { code }))).toBeInstanceOf(ReplyLost);
});
