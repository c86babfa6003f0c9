/** The locks of sales on one Postgres, and what happens to them when a connection fails. */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { PostgresLocks } from '../../../src/postgres/sale-locks.ts';
import { freshDatabase, until } from '../../support/fixtures.ts';

let locks: PostgresLocks;
let elsewhere: PostgresLocks;
/** The connections of all locks, the oldest first. */
let clients: pg.Client[];
/** Warnings of the driver. It gives each of them once in a process. */
const warnings: Error[] = [];
const onWarning = (warning: Error) => warnings.push(warning);

beforeAll(() => void process.on('warning', onWarning));
afterAll(() => void process.off('warning', onWarning));

beforeEach(async () => {
  clients = [];
  const connect = pg.Client.prototype.connect;
  vi.spyOn(pg.Client.prototype, 'connect').mockImplementation(function (
    this: pg.Client,
    ...callback: unknown[]
  ) {
    clients.push(this);
    return Reflect.apply(connect, this, callback);
  });
  const url = await freshDatabase();
  clients.length = 0;
  [locks, elsewhere] = [new PostgresLocks(url), new PostgresLocks(url)];
});

afterEach(async () => {
  await Promise.all([locks.close(), elsewhere.close()]);
  vi.restoreAllMocks();
});

const asked = () => new Error('no answer within 30 s');

/** Makes the next queries of a connection fail, each when the test calls its function. */
function failing(client: pg.Client) {
  const failures: (() => void)[] = [];
  vi.spyOn(client, 'query').mockImplementation(
    (() => new Promise((_, reject) => failures.push(() => reject(asked())))) as typeof client.query,
  );
  return failures;
}

describe('calls at once', () => {
  const sales = Array.from({ length: 20 }, (_, i) => `sale-${i}`);

  test('are sent one after the other, as the driver requires', async () => {
    expect(await Promise.all(sales.map((sale) => locks.tryLock(sale)))).not.toContain(false);
    expect(await Promise.all(sales.map((sale) => elsewhere.tryLock(sale)))).not.toContain(true);
    await Promise.all(sales.map((sale) => locks.unlock(sale)));
    expect(await Promise.all(sales.map((sale) => elsewhere.tryLock(sale)))).not.toContain(false);
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  });

  test('that release and lock a sale again leave it locked', async () => {
    await locks.tryLock('sale');
    const [, again] = await Promise.all([locks.unlock('sale'), locks.tryLock('sale')]);
    expect([again, await elsewhere.tryLock('sale')]).toEqual([true, false]);
    await locks.unlock('sale');
    expect(await elsewhere.tryLock('sale')).toBe(true);
  });
});

describe('many locks at once', () => {
  test('are tried in one statement, which gets those that are free', async () => {
    expect(await elsewhere.tryLock('b')).toBe(true);
    expect(await locks.tryLock('c')).toBe(true);
    const query = vi.spyOn(clients[1]!, 'query');
    expect(await locks.tryLocks(['a', 'b', 'c', 'd'])).toEqual(new Set(['a', 'd']));
    expect(query).toHaveBeenCalledTimes(1);
    expect(await elsewhere.tryLocks(['a', 'c', 'd'])).toEqual(new Set());
    await elsewhere.unlock('b');
    // The refused attempt has left nothing behind.
    expect(await locks.tryLocks(['b'])).toEqual(new Set(['b']));
  });
});

describe('a connection that has failed', () => {
  test('is dropped with its locks, and the next one has later locks', async () => {
    expect(await locks.tryLock('held')).toBe(true);
    const failures = failing(clients[0]!);
    const refused = expect(locks.tryLock('other')).rejects.toThrow('no answer');
    await until(() => failures.length === 1, { what: 'the query is asked' });
    failures[0]!();
    await refused;
    expect(await locks.tryLock('other')).toBe(true);
    expect(await elsewhere.tryLock('other')).toBe(false);
    await until(() => elsewhere.tryLock('held'), { what: 'the lock is free' });
  });

  test('and fails again after it was dropped, does not affect its successor', async () => {
    await locks.tryLock('first');
    const [old] = clients;
    const failures = failing(old!);
    const refused = expect(locks.tryLock('sale')).rejects.toThrow('no answer');
    await until(() => failures.length === 1, { what: 'the query is asked' });
    failures[0]!();
    await refused;
    expect(await locks.tryLock('sale')).toBe(true);
    old!.emit('error', Object.assign(new Error('read ETIMEDOUT'), { code: 'ETIMEDOUT' }));
    await locks.unlock('sale');
    expect(await elsewhere.tryLock('sale')).toBe(true);
    expect(clients).toHaveLength(3);
  });

  test('under two calls is dropped once: its successor keeps its locks', async () => {
    await locks.tryLock('first');
    const failures = failing(clients[0]!);
    const refused = ['one', 'two'].map((name) => expect(locks.tryLock(name)).rejects.toThrow('no answer'));
    await until(() => failures.length === 1, { what: 'the first query is asked' });
    failures[0]!();
    await refused[0];
    expect(await locks.tryLock('sale')).toBe(true);
    await until(() => failures.length === 2, { what: 'the second query is asked' });
    failures[1]!();
    await refused[1];
    expect(await locks.tryLock('later')).toBe(true);
    expect(await elsewhere.tryLock('sale')).toBe(false);
    await locks.unlock('sale');
    expect(await elsewhere.tryLock('sale')).toBe(true);
  });

  test('and was ended by the database, has lost its locks, and its successor does not have them', async () => {
    await locks.tryLocks(['held', 'other']);
    expect(await locks.holds('held')).toBe(true);
    expect(await locks.holds('free')).toBe(false);
    await elsewhere.tryLock('unrelated');
    const [{ processID }] = clients as unknown as [{ processID: number }];
    await clients[1]!.query('SELECT pg_terminate_backend($1)', [processID]);
    await until(async () => !(await locks.holds('held')), { what: 'the lock is lost' });
    await locks.unlock('other');
    expect(await locks.tryLock('other')).toBe(true);
    expect([await locks.holds('other'), await locks.holds('held')]).toEqual([true, false]);
    await locks.unlock('held');
    expect(await locks.tryLock('held')).toBe(true);
    expect(await locks.holds('held')).toBe(true);
  });

  test('without a word, is found out by a question', async () => {
    await locks.tryLock('held');
    const failures = failing(clients[0]!);
    expect(await locks.holds('held'), 'it has just answered').toBe(true);
    await delay(1_100);
    const holds = locks.holds('held');
    await until(() => failures.length === 1, { what: 'the connection is asked' });
    failures[0]!();
    expect(await holds).toBe(false);
    await until(() => elsewhere.tryLock('held'), { what: 'the lock is free' });
  });
});
