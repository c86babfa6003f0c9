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
import { type Answer, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { expectKept, expectWithinLimit, ordersOf } from '../../support/shop/truth.ts';
import { inTier } from '../../support/tier.ts';

const SALE = 'tickets';
/** More units than any of the loads can buy. */
const STOCK = 100_000;
const SEGMENTS = 4;
const LINES = 24;
const FLUSH_EVERY_MS = 20;
/** Purchases while Redis forgets its scripts. */
const UNSCRIPTED = inTier({ test: 500, release: 2_000 });
/** Purchases before a process dies, and after that. */
const SOME = inTier({ test: 100, release: 500 });
const OUTAGE_MS = inTier({ test: 4_000, release: 10_000 });
/** Pause after a refused buyer, before the next one comes. */
const BREATH_MS = 10;
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

/** How one buyer's only request ended; `lost`: the node died before it answered. */
interface Ending {
  readonly buyerId: string;
  readonly code: string;
  readonly answer: Answer | undefined;
}

/** Lines of buyers. Each buyer asks once, with its own key, at one of the nodes that are up. */
class Rush implements AsyncDisposable {
  readonly endings: Ending[] = [];
  readonly #nodes: readonly TestNode[];
  readonly #most: number;
  readonly #ended: Promise<unknown>;
  readonly #underWay = new Map<TestNode, number>();
  #stopped = false;
  #next = 0;

  constructor(nodes: readonly TestNode[], most = STOCK) {
    this.#nodes = nodes;
    this.#most = most;
    this.#ended = Promise.all(Array.from({ length: LINES }, () => this.#line()));
  }

  codes(from = 0): Set<string> {
    return new Set(this.endings.slice(from).map(({ code }) => code));
  }

  /** The buyers whose requests had this end. */
  buyersWith(...codes: string[]): string[] {
    return this.endings.filter(({ code }) => codes.includes(code)).map(({ buyerId }) => buyerId);
  }

  promises(...codes: string[]) {
    return this.endings.flatMap(({ buyerId, code, answer }) =>
      codes.includes(code) ? [{ buyerId, orderId: answer!.body.orderId as string, quantity: 1 }] : [],
    );
  }

  /** Waits until this many more purchases had this end. */
  async more(count: number, ...codes: string[]): Promise<void> {
    const from = this.endings.length;
    const found = () => this.endings.slice(from).filter(({ code }) => codes.includes(code)).length >= count;
    await until(found, { what: `${count} more purchases end ${codes.join(' or ')}`, timeoutMs: 60_000 });
  }

  /** Requests that this node has not answered yet. */
  underWayAt(node: TestNode): number {
    return this.#underWay.get(node) ?? 0;
  }

  /** Resolves when all buyers have come. */
  async ended(): Promise<void> {
    await this.#ended;
  }

  /** Resolves when the last buyer has its answer. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #line(): Promise<void> {
    while (!this.#stopped && this.#next < this.#most) {
      const n = this.#next++;
      const up = this.#nodes.filter((node) => node.isUp);
      const buyerId = `buyer-${n}`;
      const node = up[n % up.length]!;
      this.#underWay.set(node, this.underWayAt(node) + 1);
      const answer = await buy(node, buyerId).catch(() => undefined);
      this.#underWay.set(node, this.underWayAt(node) - 1);
      this.endings.push({ buyerId, code: answer ? answer.code : 'lost', answer });
      if (answer?.status !== 201) await delay(BREATH_MS);
    }
  }
}

function buy(node: TestNode, buyerId: string): Promise<Answer> {
  return node.buy(SALE, buyerId, { key: `key-of-${buyerId}` });
}

/** Asks with the same key until the order is committed. */
async function settle(node: TestNode, buyerId: string): Promise<void> {
  await until(async () => (await buy(node, buyerId)).status === 201, {
    what: `the purchase of ${buyerId} is settled`,
  });
}

const DENIED = ['busy', 'unavailable'];

/**
 * Checks, once the logs are drained: each promise that ended with `kept` is an order of its own in Postgres, no buyer has two
 * orders, refused buyers have none, and the identities hold.
 */
async function expectTrue(node: TestNode, stores: Stores, rush: Rush, kept: readonly string[]) {
  const drained = async () => {
    const { remaining, committedUnits } = await node.ops.show(SALE);
    return remaining! + committedUnits === STOCK;
  };
  await until(drained, { what: 'all that was taken is committed', timeoutMs: 60_000 });
  const orders = await ordersOf(stores.databaseUrl, SALE);
  const promises = rush.promises(...kept);
  expectKept(promises, orders);
  expect(new Set(promises.map(({ orderId }) => orderId)).size).toBe(promises.length);
  expectWithinLimit(orders, 1);
  const holders = new Set([...orders.values()].map(({ buyerId }) => buyerId));
  expect(rush.buyersWith(...DENIED).filter((buyerId) => holders.has(buyerId))).toEqual([]);
  expect(await node.ops.verify(SALE)).toMatchObject({
    ok: true,
    findings: [],
    rejectedOrders: 0,
    committedOrders: orders.size,
    distinctBuyers: orders.size,
  });
  return orders;
}

test(`Redis forgets its scripts every 20 ms: ${UNSCRIPTED} purchases succeed`, async () => {
  const stores = await freshStores();
  await using node = await startNode(stores);
  await node.ops.create({ id: SALE, stock: STOCK, segments: SEGMENTS }, BY.actor);
  const operator = new Redis(redis.url);
  let flushes = 0;
  try {
    await using rush = new Rush([node], UNSCRIPTED);
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
    const orders = await expectTrue(node, stores, rush, ['committed']);
    expect(orders.size).toBe(UNSCRIPTED);
  } finally {
    operator.disconnect();
  }
});

test('Postgres is away: purchases are accepted, and all of them are committed when it is back', async () => {
  const stores = await freshStores();
  await using node = await startNode(stores, IMPATIENT);
  await node.ops.create({ id: SALE, stock: STOCK, segments: SEGMENTS }, BY.actor);
  await using rush = new Rush([node]);
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
  const orders = await expectTrue(node, stores, rush, ['committed', 'accepted']);
  expect(orders.size).toBe(rush.endings.length);
});

test('Postgres is frozen and the log is full: purchases are busy until Postgres runs again', async () => {
  const stores = await freshStores();
  await using node = await startNode(stores, { ...IMPATIENT, LOG_BACKLOG_MAX: String(MAX_BATCH_ORDERS) });
  await node.ops.create({ id: SALE, stock: STOCK, segments: 1 }, BY.actor);
  await settle(node, 'early');
  const fillers = Array.from({ length: MAX_BATCH_ORDERS }, (_, n) => `filler-${n}`);
  await postgres.pause();
  try {
    const filled = await Promise.all(
      fillers.map((buyerId) => node.buy(SALE, buyerId, { prefer: 'respond-async' })),
    );
    expect(new Set(filled.map(({ status, code }) => `${status} ${code}`))).toEqual(new Set(['202 accepted']));
    for (const buyerId of ['bob', 'carol', 'dave']) {
      expect(await buy(node, buyerId)).toMatchObject({
        status: 503,
        code: 'busy',
        headers: { 'retry-after': '1', 'content-type': 'application/problem+json' },
      });
    }
  } finally {
    postgres.resume();
  }
  for (const buyerId of ['bob', 'erin']) await settle(node, buyerId);
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
  await until(async () => (await buy(second, 'early')).status === 201, { what: 'the second node sells' });
  await using rush = new Rush([first, second]);
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
  await Promise.all(rush.buyersWith('lost', 'unknown', 'accepted').map((buyerId) => settle(second, buyerId)));
  const orders = await expectTrue(second, stores, rush, ['committed', 'accepted']);
  expect(orders.size).toBe(1 + rush.endings.length);
});

test('Redis is killed under load and restarts from its file: committed orders stay, the others are settled by key', async () => {
  const stores = await freshStores();
  await using node = await startNode(stores, IMPATIENT);
  await node.ops.create({ id: SALE, stock: STOCK, segments: SEGMENTS }, BY.actor);
  await using rush = new Rush([node]);
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
  await Promise.all(open.map((buyerId) => settle(node, buyerId)));
  const orders = await expectTrue(node, stores, rush, ['committed']);
  expect(orders.size).toBe(rush.promises('committed').length + open.length);
});
