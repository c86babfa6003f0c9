/**
 * A change that is held up on its way to Postgres, or by a lock there: once a buyer was told that its outcome is unknown, it can't take
 * effect any more, whatever has happened meanwhile at another node.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase, rows } from '../../../src/postgres/database.ts';
import { BY } from '../../support/author.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { type Answer, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';

const HOUR_MS = 3_600_000;
/** Long enough that a change is on its way to Postgres by then, also on a busy machine. */
const DEADLINE_MS = 3_000;
const IMPATIENT = { REQUEST_DEADLINE_MS: String(DEADLINE_MS), TAKE_TIMEOUT_MS: '2500', PUBLIC_PAYMENT: '1' };
const UNKNOWN = { status: 503, code: 'unknown' };

let proxy: TcpProxy;
let db: Database;
/** Its way to Postgres leads through the proxy, and it answers soon. */
let held: TestNode;
let other: TestNode;

beforeAll(async () => {
  const databaseUrl = await freshDatabase();
  proxy = await TcpProxy.start(Number(new URL(databaseUrl).port));
  db = openDatabase({ url: databaseUrl, maxConnections: 2 });
  const stores = { redisUrl: redisUrl(), databaseUrl, keyPrefix: freshPrefix() };
  other = await startTestNode({ ...stores, env: { PUBLIC_PAYMENT: '1' } });
  held = await startTestNode({
    ...{ ...stores, databaseUrl: proxy.through(databaseUrl) },
    env: { ...IMPATIENT, SYNC: 'off' },
  });
});

afterAll(async () => {
  await Promise.all([held, other].map((node) => node?.[Symbol.asyncDispose]()));
  await db?.destroy();
  await proxy?.stop();
});

afterEach(() => proxy.release());

let sales = 0;

async function sale(spec: Record<string, unknown> = {}): Promise<string> {
  const id = `sale-${++sales}`;
  await other.ops.create({ id, stock: 5, ...spec }, BY.actor);
  return id;
}

const change = (node: TestNode, orderId: string, kind: string, body?: object): Promise<Answer> =>
  node.request(`/v1/orders/${orderId}/${kind}`, {
    method: 'POST',
    headers: { 'x-buyer-id': 'anna' },
    ...(body && { body: JSON.stringify(body) }),
  });

const status = async (orderId: string) =>
  (await other.request(`/v1/orders/${orderId}`, { headers: { 'x-buyer-id': 'anna' } })).body.status;

const ask = (node: TestNode, method: 'GET' | 'POST' | 'DELETE', saleId: string, token?: string) =>
  node.request(`/v1/sales/${saleId}/place`, {
    method,
    headers: { 'x-buyer-id': 'anna', ...(token !== undefined && { 'place-token': token }) },
  });

/** The node learns of the sale before its way to Postgres is blocked. */
async function known(saleId: string): Promise<void> {
  await until(async () => (await held.request(`/v1/sales/${saleId}`)).status === 200, {
    what: 'the other node knows the sale',
  });
}

async function bought(): Promise<string> {
  const id = await sale();
  const { body } = await other.buy(id, 'anna');
  return body.orderId;
}

/** How many statements Postgres has executed since, or is executing, as the last of their sessions. */
const executing = async (sql: string, state: 'idle' | 'active', since = '-infinity') =>
  (
    await rows(
      db,
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
         AND state = ? AND query LIKE ? AND state_change > ?::timestamptz`,
      [state, `%${sql}%`, since],
    )
  ).length;

/** What was held arrives, and is executed. */
async function arrives(sql: string): Promise<void> {
  const [clock] = await rows<{ now: string }>(db, 'SELECT clock_timestamp()::text AS now');
  await proxy.release();
  await until(async () => (await executing(sql, 'idle', clock!.now)) > 0, {
    what: 'the statement has arrived',
  });
}

const hold = (sql: string) => proxy.hold((request) => request.includes(sql));

const ACCEPTED: [string, string, object | undefined][] = [
  ['a cancellation', 'cancel', undefined],
  ['a payment', 'pay', { payType: 'card' }],
];

test.each(ACCEPTED)('%s that arrives late changes nothing', async (_, kind, body) => {
  const orderId = await bought();
  const sql = 'FROM stockade_change_order(';
  hold(sql);
  expect(await change(held, orderId, kind, body)).toMatchObject(UNKNOWN);
  expect(await status(orderId)).toBe('unpaid');
  await arrives(sql);
  expect(await status(orderId)).toBe('unpaid');
  expect(await change(held, orderId, kind, body)).toMatchObject({ status: 200 });
});

test('a cancellation that gets the lock of its order late changes nothing', async () => {
  const orderId = await bought();
  const sql = 'FROM stockade_change_order(';
  const lock = await db.transaction();
  await lock.raw('SELECT 1 FROM orders WHERE order_id = ? FOR UPDATE', [orderId]);
  expect(await change(held, orderId, 'cancel')).toMatchObject(UNKNOWN);
  expect(await executing(sql, 'active')).toBe(1);
  await lock.rollback();
  await until(async () => (await executing(sql, 'active')) === 0, { what: 'it has got the lock' });
  expect(await status(orderId)).toBe('unpaid');
});

test('a change whose connection breaks is answered when it can’t take effect any more', async () => {
  const orderId = await bought();
  const { held: isHeld } = hold('FROM stockade_change_order(');
  const began = performance.now();
  const answer = change(held, orderId, 'cancel');
  await isHeld;
  proxy.cutAll();
  expect(await answer).toMatchObject(UNKNOWN);
  expect(performance.now() - began).toBeGreaterThan(DEADLINE_MS - 100);
  // Of a client that has gone, it returns only when the server has executed everything.
  await proxy.release();
  expect(await status(orderId)).toBe('unpaid');
});

test('an acceptance that arrives late changes nothing', async () => {
  const id = await sale({ queue: 'fifo', presenceSeconds: 0 });
  await ask(other, 'POST', id);
  const { offer } = await until(
    async () => {
      const { body } = await ask(other, 'GET', id);
      return body.state === 'offered' && body;
    },
    { what: 'anna has an offer' },
  );
  await known(id);
  const sql = 'FROM stockade_accept_offer(';
  hold(sql);
  const withOffer = { headers: { 'purchase-token': offer.token } };
  expect(await held.buy(id, 'anna', withOffer)).toMatchObject(UNKNOWN);
  await other.ops.change(id, { action: 'pause' }, BY);
  expect(await other.buy(id, 'anna', withOffer)).toMatchObject({ code: 'paused' });
  await other.ops.change(id, { action: 'resume' }, BY);
  await arrives(sql);
  expect((await ask(other, 'GET', id)).body).toMatchObject({ state: 'offered' });
  expect(await other.buy(id, 'anna', withOffer)).toMatchObject({ status: 201 });
});

test('a leave that arrives late does not end the place of a buyer who has come again', async () => {
  const id = await sale({ queue: 'fifo', startsAt: new Date(Date.now() + HOUR_MS).toISOString() });
  await ask(other, 'POST', id);
  await known(id);
  const sql = 'FROM stockade_leave_queue(';
  hold(sql);
  expect(await ask(held, 'DELETE', id)).toMatchObject(UNKNOWN);
  expect((await ask(other, 'DELETE', id)).body).toMatchObject({ number: 1, state: 'left' });
  expect((await ask(other, 'POST', id)).body).toMatchObject({ number: 2, state: 'waiting' });
  await arrives(sql);
  expect((await ask(other, 'GET', id)).body).toMatchObject({ number: 2, state: 'waiting' });
});

test('a leave with a place token ends no other place, also if its buyer has not waited for the answer', async () => {
  const id = await sale({ queue: 'fifo', startsAt: new Date(Date.now() + HOUR_MS).toISOString() });
  const { placeToken } = (await ask(other, 'POST', id)).body;
  await known(id);
  const { held: isHeld } = hold('FROM stockade_leave_queue(');
  const first = ask(held, 'DELETE', id, placeToken);
  await isHeld;
  expect((await ask(other, 'DELETE', id, placeToken)).body).toMatchObject({ number: 1, state: 'left' });
  expect((await ask(other, 'POST', id)).body).toMatchObject({ number: 2, state: 'waiting' });
  await proxy.release();
  expect((await first).body).toMatchObject({ number: 1, state: 'left' });
  expect((await ask(other, 'GET', id)).body).toMatchObject({ number: 2, state: 'waiting' });
  expect((await ask(other, 'DELETE', id)).body).toMatchObject({ number: 2, state: 'left' });
});
