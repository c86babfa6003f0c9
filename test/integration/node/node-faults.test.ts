/**
 * Faults of the stores behind a running node, under load where that matters: it keeps its promises, reports the fault in its
 * metrics and its log, and the sale continues.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import {
  type CrowdAnswer,
  type CrowdOptions,
  crowd,
  everNewBuyers,
  startCrowd,
} from '../../support/nodes/crowd.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { expectKept, expectWithinLimit, ordersOf, query, unitsSold } from '../../support/shop/truth.ts';
import { inTier, isRelease } from '../../support/tier.ts';

const SALE = 'tickets';
const PLENTY = 1_000_000;
/** Units of the sale in which Redis is emptied twice. */
const EMPTIED_STOCK = inTier({ test: 1_000, release: 4_000 });
/** How often a sale is cut off from Redis. */
const CUTS = inTier({ test: 3, release: 8 });
/** Longer than the deadlines of `IMPATIENT`. */
const OUTAGE_MS = inTier({ test: 4_000, release: 10_000 });
/** Long enough for a machine with other work. Without a deadline there would be no answer at all. */
const ANSWER_LIMIT_MS = 10_000;
/** Purchases wait a short time for Postgres and are then accepted. Redis may still be slow for a while. */
const IMPATIENT = { REQUEST_DEADLINE_MS: '2500', TAKE_TIMEOUT_MS: '2000' };
/** Each buyer asks with its key until the answer is final. */
const PERSISTENT = { keyed: true, retryUntilAnsweredMs: 20_000 };

interface MarketSpec {
  readonly redis?: string;
  readonly database?: string;
  readonly stock?: number;
  readonly segments?: number;
  readonly env?: Record<string, string>;
}

/** Stores, a node on them, and a sale. */
class Market implements AsyncDisposable {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly keyPrefix = freshPrefix();
  readonly #nodes: TestNode[] = [];

  private constructor(redis: string, database: string) {
    this.redisUrl = redis;
    this.databaseUrl = database;
  }

  static async open(spec: MarketSpec = {}): Promise<Market> {
    const { stock = PLENTY, segments = 8, env = {} } = spec;
    const market = new Market(spec.redis ?? redisUrl(), spec.database ?? (await freshDatabase()));
    try {
      const node = await market.startNode(env);
      await node.ops.create({ id: SALE, stock, segments }, BY.actor);
      return market;
    } catch (error) {
      await market[Symbol.asyncDispose]();
      throw error;
    }
  }

  async startNode(env: Record<string, string> = {}): Promise<TestNode> {
    const { redisUrl, databaseUrl, keyPrefix } = this;
    const node = await startTestNode({ redisUrl, databaseUrl, keyPrefix, env: { WORKERS: '2', ...env } });
    this.#nodes.push(node);
    return node;
  }

  get node(): TestNode {
    return this.#nodes[0]!;
  }

  /** Buyers arrive until the test ends the load. */
  load(clients: number, more: Pick<CrowdOptions, 'keyed' | 'retryUntilAnsweredMs' | 'headers'> = {}) {
    return startCrowd({
      ...{ url: this.node.publicUrl, saleId: SALE, clients, buyers: everNewBuyers() },
      ...more,
    });
  }

  /** The log is written a moment after what it tells of. */
  saysInLog(words: string): Promise<boolean> {
    return until(async () => (await this.node.log()).includes(words), { what: `the log says: ${words}` });
  }

  /** Checks, when the logs are drained: every promise is kept, no buyer has two units, nothing was refused. */
  async expectTrue(answers: readonly CrowdAnswer[]): Promise<number> {
    const report = await until(
      async () => {
        const verified = await this.node.ops.verify(SALE);
        const { right } = verified.identities[1]!;
        return right.find(({ name }) => name === 'in logs beyond the cursors')?.units === 0 && verified;
      },
      { what: 'the logs are drained', timeoutMs: 60_000 },
    );
    expect(report).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
    const orders = await ordersOf(this.databaseUrl, SALE);
    expectKept(
      answers.filter(({ status }) => status === 201 || status === 202),
      orders,
    );
    expectWithinLimit(orders, 1);
    expect(await metric(this.node, 'stockade_guard_rejections_total')).toBe(0);
    return orders.size;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#nodes.map((node) => node[Symbol.asyncDispose]()));
  }
}

describe('Postgres', () => {
  let postgres: PostgresServer;

  beforeAll(async () => {
    postgres = await PostgresServer.start();
  });

  afterAll(() => postgres[Symbol.asyncDispose]());

  // `faults.test.ts`, `lost-data.test.ts` and `lost-replies.test.ts` have these faults on fewer nodes, or in one process.
  if (isRelease) {
    test('is frozen: buyers are accepted, and afterwards all their orders are in Postgres', async () => {
      await using market = await Market.open({ database: await postgres.createDatabase(), env: IMPATIENT });
      await using running = market.load(100);
      const { answers } = running.result;
      await until(() => running.result.with('committed').length > 500, { what: 'the sale runs' });
      await postgres.pause();
      const paused = answers.length;
      try {
        const until10s = performance.now() + OUTAGE_MS;
        await until(() => performance.now() > until10s, { what: 'the outage', timeoutMs: 2 * OUTAGE_MS });
      } finally {
        postgres.resume();
      }
      const during = answers.slice(paused).filter(({ code }) => code === 'accepted');
      // A slow machine accepts some dozens in this time.
      expect(during.length).toBeGreaterThan(20);
      const resumed = answers.length;
      await until(() => answers.slice(resumed).some(({ code }) => code === 'committed'), {
        what: 'orders are committed again',
        timeoutMs: 60_000,
      });
      const { codes } = await running.stop();
      expect(Object.keys(codes).sort()).toEqual(['accepted', 'committed']);
      expect(await market.expectTrue(answers)).toBe(answers.length);
    });

    test('is stopped until the logs are full: purchases are busy, and afterwards every accepted order is in Postgres', async () => {
      await using market = await Market.open({
        ...{ database: await postgres.createDatabase(), segments: 2 },
        env: { LOG_BACKLOG_MAX: '500' },
      });
      const full = await (async () => {
        await postgres.stop();
        try {
          await using running = market.load(100, { headers: { prefer: 'respond-async' } });
          await until(() => running.result.with('busy').length > 200, { what: 'the logs are full' });
          const { retryAfter } = running.result.with('busy')[0]!;
          expect(retryAfter).toBe(1);
          return await running.stop();
        } finally {
          await postgres.restart();
        }
      })();
      expect(Object.keys(full.codes).sort()).toEqual(['accepted', 'busy']);
      expect(full.promised.length).toBeLessThanOrEqual(1_000);
      expect(full.promised.length).toBeGreaterThan(500);
      const later = await crowd({
        ...{ url: market.node.publicUrl, saleId: SALE, clients: 50, ...PERSISTENT },
        buyers: Array.from({ length: 500 }, (_, i) => `later-${i}`),
      });
      expect(later.promised).toHaveLength(500);
      const all = await market.expectTrue([...full.answers, ...later.answers]);
      expect(all).toBe(full.promised.length + 500);
    });
  }

  test('has lost a table for a moment: sync reports it in the log and the metrics, tries again, and loses nothing', async () => {
    await using market = await Market.open({ database: await postgres.createDatabase() });
    await using running = market.load(20);
    await until(() => running.result.with('committed').length > 100, { what: 'the sale runs' });
    await query(market.databaseUrl, 'ALTER TABLE orders RENAME TO orders_away');
    await until(async () => (await metric(market.node, 'stockade_sync_crashes_total')) >= 3, {
      what: 'sync has failed three times',
    });
    await query(market.databaseUrl, 'ALTER TABLE orders_away RENAME TO orders');
    const before = running.result.answers.length;
    await until(() => running.result.answers.slice(before).some(({ code }) => code === 'committed'), {
      what: 'orders are committed again',
    });
    const { answers } = await running.stop();
    await market.saysInLog('sync failed and will start again');
    expect(await market.expectTrue(answers)).toBe(answers.length);
  });
});

describe('Redis', () => {
  test('is emptied in the middle of the sale: the sale is rebuilt, exactly its stock is sold, committed orders stay', async () => {
    await using redis = await RedisServer.start();
    await using market = await Market.open({ redis: redis.productUrl, stock: EMPTIED_STOCK });
    await using keys = new RedisKeys(market);
    await using running = market.load(50, PERSISTENT);
    for (const sold of [EMPTIED_STOCK / 4, EMPTIED_STOCK / 2]) {
      await until(() => running.result.promised.length > sold, { what: `${sold} are sold` });
      const built = await metric(market.node, 'stockade_rebuilds_total');
      await keys.redis.flushall();
      await until(async () => (await metric(market.node, 'stockade_rebuilds_total')) > built, {
        what: 'the sale is built again',
      });
    }
    await until(() => running.result.with('sold_out').length > 0, { what: 'the end', timeoutMs: 60_000 });
    const { answers, codes } = await running.stop();
    const expected = ['committed', 'accepted', 'sold_out'];
    expect(Object.keys(codes).filter((code) => !expected.includes(code))).toEqual([]);
    await market.expectTrue(answers.filter(({ code }) => code === 'committed'));
    expect(unitsSold(await ordersOf(market.databaseUrl, SALE))).toBe(EMPTIED_STOCK);
  });

  if (isRelease) {
    test('has lost an entry of a log: metrics and log report it, and the other entries are saved', async () => {
      await using market = await Market.open({ segments: 2, stock: 20, env: { SYNC: 'off' } });
      await using keys = new RedisKeys(market);
      const accepted = await crowd({
        ...{ url: market.node.publicUrl, saleId: SALE, clients: 1, headers: { prefer: 'respond-async' } },
        buyers: Array.from({ length: 12 }, (_, i) => `buyer-${i}`),
      });
      expect(accepted.codes).toEqual({ accepted: 12 });
      const [log] = await keys.entries(SALE, 2);
      await keys.redis.xdel(keys.of(SALE, log!.segment).log, log!.ids[1]!);
      const carrier = await market.startNode();
      expect(await metric(carrier, 'stockade_log_breaks_total')).toBe(1);
      expect(await metric(carrier, 'stockade_rebuilds_total')).toBe(1);
      expect(await metric(carrier, 'stockade_sync_lost_orders_total')).toBe(1);
      const said = await carrier.log();
      expect(said).toContain('an order log has lost writes; sync rebuilds the sale from Postgres');
      expect(said).toContain('at least this many orders are lost for good: they were not in Postgres yet');
      expect(said).toContain('a sale was rebuilt from Postgres');
      expect((await ordersOf(market.databaseUrl, SALE)).size).toBe(11);
      expect(await carrier.ops.verify(SALE)).toMatchObject({ ok: true, findings: [] });
    });

    test('has forgotten a buyer: the second order is rejected, counted, and its unit sold to another', async () => {
      await using market = await Market.open({ segments: 2, stock: 2 });
      await using keys = new RedisKeys(market);
      const { node } = market;
      expect((await node.buy(SALE, 'anna')).status).toBe(201);
      await keys.forgetBuyer(SALE, 2, 'anna');
      expect(await node.buy(SALE, 'anna')).toMatchObject({ status: 409, code: 'limit_reached' });
      await until(async () => (await metric(node, 'stockade_guard_rejections_total')) === 1, {
        what: 'the rejection is counted',
      });
      await market.saysInLog('Postgres rejected an order; sync undoes it in the backend');
      const orders = [...(await ordersOf(market.databaseUrl, SALE)).values()];
      expect(orders.map(({ status }) => status).sort()).toEqual(['rejected', 'unpaid']);
      const { orderId } = orders.find(({ status }) => status === 'rejected')!;
      const told = await node.request(`/v1/orders/${orderId}`, { headers: { 'x-buyer-id': 'anna' } });
      expect(told.body).toMatchObject({ status: 'rejected' });
      await until(async () => (await node.buy(SALE, 'ben', { key: 'until-sold' })).status === 201, {
        what: 'the unit is sold to another',
      });
      expect((await node.buy(SALE, 'cleo')).code).toBe('sold_out');
      expect(await node.ops.verify(SALE)).toMatchObject({
        ok: false,
        rejectedOrders: 1,
        findings: [expect.stringContaining('of buyer anna: it was removed')],
      });
      expect(await node.ops.verify(SALE, { repair: true })).toMatchObject({ ok: true, rejectedOrders: 1 });
    });
  }

  test('is cut off repeatedly under load: a buyer without an answer repeats the purchase, and has one order', async () => {
    await using proxy = await TcpProxy.start(Number(new URL(redisUrl()).port));
    await using market = await Market.open({ redis: proxy.through(redisUrl()) });
    await using running = market.load(100, PERSISTENT);
    const { answers } = running.result;
    for (let time = 0; time < CUTS; time++) {
      const before = answers.length;
      proxy.cutAll();
      await until(() => answers.length > before + 200, { what: 'the sale goes on' });
    }
    const { codes } = await running.stop();
    expect(Object.keys(codes).filter((code) => !['committed', 'accepted'].includes(code))).toEqual([]);
    expect(proxy.counts.cut).toBeGreaterThanOrEqual(CUTS);
    expect(await market.expectTrue(answers)).toBe(answers.length);
  });

  if (isRelease) {
    test('is frozen: a purchase in a sale that the worker does not know yet is answered by its deadline', async () => {
      await using redis = await RedisServer.start();
      await using market = await Market.open({ redis: redis.productUrl, env: IMPATIENT });
      await redis.pause();
      const began = performance.now();
      const answers = await Promise.all(['anna', 'ben'].map((buyer) => market.node.buy(SALE, buyer)));
      expect(performance.now() - began).toBeLessThan(ANSWER_LIMIT_MS);
      for (const { status } of answers) expect(status).toBe(503);
      redis.resume();
      await until(async () => (await market.node.buy(SALE, 'cleo', { key: 'until-sold' })).status === 201, {
        what: 'the sale runs',
      });
    });
  }
});
