/**
 * Nodes under load while something breaks: Redis forgets its scripts, Postgres goes away or freezes, a node dies, Redis
 * dies. Every promise is kept, no buyer has bought twice, a buyer whose answer said that nothing was taken has no order, and the
 * sale sells again after the fault.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MAX_BATCH_ORDERS } from '../../../src/engine/limits.ts';
import { BY } from '../../support/author.ts';
import { freshPrefix, until } from '../../support/fixtures.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { buy, expectTrue, LINES, Rush, STOCK, settle } from '../../support/nodes/rush.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { ordersOf } from '../../support/shop/truth.ts';
import { inTier } from '../../support/tier.ts';

const SALE = 'tickets';
const SEGMENTS = 4;
const FLUSH_EVERY_MS = 20;
/** Purchases while Redis forgets its scripts. */
const UNSCRIPTED = inTier({ test: 500, release: 2_000 });
/** Purchases before a process dies, and after that. */
const SOME = inTier({ test: 100, release: 500 });
const OUTAGE_MS = inTier({ test: 4_000, release: 10_000 });
const IMPATIENT = { REQUEST_DEADLINE_MS: '2000', TAKE_TIMEOUT_MS: '1500' };

let redis: RedisServer;
let postgres: PostgresServer;

beforeAll(async () => {
  [redis, postgres] = await Promise.all([RedisServer.start({ appendonly: true }), PostgresServer.start()]);
});

afterAll(() => Promise.all([redis?.[Symbol.asyncDispose](), postgres?.[Symbol.asyncDispose]()]));

interface Stores {
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly keyPrefix: string;
}

async function freshStores(): Promise<Stores> {
  const databaseUrl = await postgres.createDatabase();
  return { redisUrl: redis.productUrl, databaseUrl, keyPrefix: freshPrefix() };
}

function startNode(stores: Stores, env: Record<string, string> = {}): Promise<TestNode> {
  return startTestNode({ ...stores, env: { WORKERS: '1', ...env } });
}

test(`Redis forgets its scripts every 20 ms: ${UNSCRIPTED} purchases succeed`, async () => {
  const stores = await freshStores();
  await using node = await startNode(stores);
  await node.ops.create({ id: SALE, stock: STOCK, segments: SEGMENTS }, BY.actor);
  const operator = new Redis(redis.url);
  let flushes = 0;
  try {
    await using rush = new Rush(SALE, [node], UNSCRIPTED);
    const over = new AbortController();
    const flushing = (async () => {
      for (; !over.signal.aborted; flushes++) {
        await operator.script('FLUSH');
        await delay(FLUSH_EVERY_MS);
      }
    })();
    await rush.ended().finally(() => over.abort());
    await flushing;
    expect(flushes).toBeGreaterThan(5);
    expect([...rush.codes()]).toEqual(['committed']);
    const orders = await expectTrue(node, stores.databaseUrl, rush, ['committed']);
    expect(orders.size).toBe(UNSCRIPTED);
  } finally {
    operator.disconnect();
  }
});

test('Postgres is away: purchases are accepted, and all of them are committed when it is back', async () => {
  const stores = await freshStores();
  await using node = await startNode(stores, IMPATIENT);
  await node.ops.create({ id: SALE, stock: STOCK, segments: SEGMENTS }, BY.actor);
  await using rush = new Rush(SALE, [node]);
  await rush.more(200, 'committed');
  await postgres.stop('immediate');
  const away = rush.endings.length;
  try {
    // Purchases that were committed just before may be answered a moment later, no others.
    await Promise.all([delay(OUTAGE_MS), rush.more(3 * LINES, 'accepted')]);
    expect([...rush.codes(away + 2 * LINES)]).toEqual(['accepted']);
  } finally {
    await postgres.restart();
  }
  await rush.more(200, 'committed');
  await rush.stop();
  expect([...rush.codes()].sort()).toEqual(['accepted', 'committed']);
  const orders = await expectTrue(node, stores.databaseUrl, rush, ['committed', 'accepted']);
  expect(orders.size).toBe(rush.endings.length);
});

test('Postgres is frozen and the log is full: purchases are busy until Postgres runs again', async () => {
  const stores = await freshStores();
  await using node = await startNode(stores, { ...IMPATIENT, LOG_BACKLOG_MAX: String(MAX_BATCH_ORDERS) });
  await node.ops.create({ id: SALE, stock: STOCK, segments: 1 }, BY.actor);
  await settle(node, SALE, 'early');
  const fillers = Array.from({ length: MAX_BATCH_ORDERS }, (_, n) => `filler-${n}`);
  await postgres.pause();
  try {
    const filled = await Promise.all(
      fillers.map((buyerId) => node.buy(SALE, buyerId, { prefer: 'respond-async' })),
    );
    expect(new Set(filled.map(({ status, code }) => `${status} ${code}`))).toEqual(new Set(['202 accepted']));
    for (const buyerId of ['bob', 'carol', 'dave']) {
      expect(await buy(node, SALE, buyerId)).toMatchObject({
        status: 503,
        code: 'busy',
        headers: { 'retry-after': '1', 'content-type': 'application/problem+json' },
      });
    }
  } finally {
    postgres.resume();
  }
  for (const buyerId of ['bob', 'erin']) await settle(node, SALE, buyerId);
  const orders = await ordersOf(stores.databaseUrl, SALE);
  const names = [...orders.values()].map(({ buyerId }) => buyerId);
  expect(names.sort()).toEqual(['bob', 'early', 'erin', ...fillers].sort());
  expect(await node.ops.show(SALE)).toMatchObject({
    remaining: STOCK - names.length,
    committedUnits: names.length,
  });
  expect(await node.ops.verify(SALE)).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
});

test('a node is killed under load: the other one keeps its promises and sells on', async () => {
  const stores = await freshStores();
  await using first = await startNode(stores);
  await using second = await startNode(stores);
  await first.ops.create({ id: SALE, stock: STOCK, segments: SEGMENTS }, BY.actor);
  await until(async () => (await buy(second, SALE, 'early')).status === 201, {
    what: 'the second node sells',
  });
  await using rush = new Rush(SALE, [first, second]);
  await rush.more(SOME, 'committed');
  // It is frozen first: requests that reach it from then on are still waiting when it dies.
  first.signal('SIGSTOP');
  await second.opsRequest('/healthz');
  await until(() => rush.underWayAt(first) > 0, { what: 'somebody waits for the node that will die' });
  await first.kill();
  const dead = rush.endings.length;
  await rush.more(SOME, 'committed');
  await rush.stop();
  expect(rush.buyersWith('lost').length).toBeGreaterThan(0);
  expect(rush.codes(dead)).not.toContain('unavailable');
  await Promise.all(
    rush.buyersWith('lost', 'unknown', 'accepted').map((buyerId) => settle(second, SALE, buyerId)),
  );
  const orders = await expectTrue(second, stores.databaseUrl, rush, ['committed', 'accepted']);
  expect(orders.size).toBe(1 + rush.endings.length);
});

test('Redis is killed under load and restarts from its file: committed orders stay, the others are settled by key', async () => {
  const stores = await freshStores();
  await using node = await startNode(stores, IMPATIENT);
  await node.ops.create({ id: SALE, stock: STOCK, segments: SEGMENTS }, BY.actor);
  await using rush = new Rush(SALE, [node]);
  await rush.more(SOME, 'committed');
  // It is frozen first, so that purchases are certainly under way when it dies.
  await redis.pause();
  await rush.more(1, 'unknown', 'accepted');
  await redis.kill();
  try {
    const killed = rush.endings.length;
    await rush.more(100, 'unavailable');
    const refused = rush.endings.slice(killed).filter(({ answer }) => answer?.status === 503);
    for (const { answer } of refused) expect(answer!.headers['retry-after']).toBe('1');
  } finally {
    await redis.restart();
  }
  await rush.more(SOME, 'committed');
  await rush.stop();
  // Busy: it was queued behind an unconfirmed batch until its deadline, and nothing was taken.
  const possible = ['committed', 'accepted', 'busy', 'unavailable', 'unknown'];
  expect([...rush.codes()].filter((code) => !possible.includes(code))).toEqual([]);
  const open = rush.buyersWith('unknown', 'accepted');
  expect(open.length).toBeGreaterThan(0);
  await Promise.all(open.map((buyerId) => settle(node, SALE, buyerId)));
  const orders = await expectTrue(node, stores.databaseUrl, rush, ['committed']);
  expect(orders.size).toBe(rush.promises('committed').length + open.length);
});
