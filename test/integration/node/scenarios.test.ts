/** The reference scenarios over HTTP: a crowd on real connections, a node in its own process, and Postgres as the judge. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { BY } from '../../support/author.ts';
import { freshDatabase, freshPrefix, redisUrl, seed, until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import { type CrowdResult, crowd } from '../../support/nodes/crowd.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { embedded } from '../../support/nodes/stores.ts';
import { random } from '../../support/random.ts';
import { expectKept, expectWithinLimit, ordersOf, unitsSold } from '../../support/shop/truth.ts';
import { inTier, isRelease } from '../../support/tier.ts';

const S1_REQUESTS_EACH = inTier({ test: 10, release: 100 });
const S3_BUYERS = inTier({ test: 1_000, release: 100_000 });
const LAST_UNITS_BUYERS = inTier({ test: 2_000, release: 10_000 });
const S3_RETRY_LIMIT_MS = 30_000;

let salesMade = 0;

async function sell(node: TestNode, spec: { stock: number } & Record<string, unknown>): Promise<string> {
  return (await node.ops.create({ id: `sale-${++salesMade}`, ...spec }, BY.actor)).id;
}

interface Expected {
  readonly databaseUrl: string;
  readonly saleId: string;
  readonly stock: number;
  readonly limit?: number;
}

/** Exactly the stock is sold, to buyers who were told so and to nobody else, and nothing was refused by Postgres. */
async function expectSoldExactly(node: TestNode, result: CrowdResult, expected: Expected): Promise<void> {
  const { databaseUrl, saleId, stock, limit = 1 } = expected;
  const report = await until(
    async () => {
      const verified = await node.ops.verify(saleId);
      const { right } = verified.identities[1]!;
      return right.find(({ name }) => name === 'in logs beyond the cursors')?.units === 0 && verified;
    },
    { what: 'the logs are drained' },
  );
  expect(report).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
  const orders = await ordersOf(databaseUrl, saleId);
  expect(unitsSold(orders)).toBe(stock);
  expectWithinLimit(orders, limit);
  expectKept(result.promised, orders);
  expect(new Set(result.promised.map(({ orderId }) => orderId)).size).toBe(orders.size);
  expect(await metric(node, 'stockade_guard_rejections_total')).toBe(0);
}

describe('on Redis and Postgres', () => {
  let node: TestNode;
  let databaseUrl: string;

  beforeAll(async () => {
    databaseUrl = await freshDatabase();
    node = await startTestNode({
      redisUrl: redisUrl(),
      databaseUrl,
      keyPrefix: freshPrefix(),
      env: { WORKERS: '2' },
    });
  });

  afterAll(() => node[Symbol.asyncDispose]());

  describe.each(inTier({ test: [4], release: [1, 4, 64] }))('in %i segments', (segments) => {
    test(`S1: 200 clients send ${S1_REQUESTS_EACH} requests each for 100 units, from 500 buyers at random`, async () => {
      const saleId = await sell(node, { stock: 100, segments });
      const rng = random(seed());
      const buyers = Array.from({ length: 200 * S1_REQUESTS_EACH }, () =>
        String(rng.whole(100_003, 100_502)),
      );
      const result = await crowd({ url: node.publicUrl, saleId, clients: 200, buyers });
      await expectSoldExactly(node, result, { databaseUrl, saleId, stock: 100 });
      expect(result.codes).toMatchObject({ committed: 100 });
      expect(Object.keys(result.codes).sort()).toEqual(['committed', 'limit_reached', 'sold_out']);
    });

    test('S2: 200 clients ask once each for 100 units: 100 get one, 100 are refused', async () => {
      const saleId = await sell(node, { stock: 100, segments });
      const buyers = Array.from({ length: 200 }, (_, i) => `client-${i}`);
      const result = await crowd({ url: node.publicUrl, saleId, clients: 200, buyers });
      expect(result.codes).toEqual({ committed: 100, sold_out: 100 });
      await expectSoldExactly(node, result, { databaseUrl, saleId, stock: 100 });
      expect((await ordersOf(databaseUrl, saleId)).size).toBe(100);
    });

    test(`S3: ${S3_BUYERS} buyers want one of 10 units, and ask until they are answered`, async () => {
      const saleId = await sell(node, { stock: 10, segments });
      const buyers = Array.from({ length: S3_BUYERS }, (_, i) => `buyer-${i}`);
      const result = await crowd({
        ...{ url: node.publicUrl, saleId, clients: 400, buyers },
        retryUntilAnsweredMs: S3_RETRY_LIMIT_MS,
      });
      expect(result.codes).toEqual({ committed: 10, sold_out: S3_BUYERS - 10 });
      await expectSoldExactly(node, result, { databaseUrl, saleId, stock: 10 });
    });
  });

  lastUnits(() => ({ node, databaseUrl }));
});

// The stock of `test/contract/` and the demo are in one process, too.
if (isRelease)
  describe('embedded, without Redis and Postgres', () => {
    let node: TestNode;

    beforeAll(async () => {
      node = await startTestNode(await embedded());
    });

    afterAll(() => node[Symbol.asyncDispose]());

    lastUnits(() => ({ node }));
  });

/** Few units in many segments, some of which are easily left unsold. */
function lastUnits(place: () => { node: TestNode; databaseUrl?: string }): void {
  /** Without a database that the test could read, the node's own word must do. */
  async function expectSold(result: CrowdResult, saleId: string, stock: number, limit = 1): Promise<void> {
    const { node, databaseUrl } = place();
    if (databaseUrl) return expectSoldExactly(node, result, { databaseUrl, saleId, stock, limit });
    expect(await node.ops.verify(saleId)).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
    expect((await node.ops.show(saleId)).committedUnits).toBe(stock);
    expect(result.with('committed').reduce((sum, { quantity }) => sum + quantity, 0)).toBe(stock);
    for (const { orderId, buyerId, quantity } of result.promised) {
      const order = await node.request(`/v1/orders/${orderId}`, { headers: { 'x-buyer-id': buyerId } });
      expect(order.body).toMatchObject({ orderId, saleId, quantity, status: 'unpaid' });
    }
    expect(await metric(node, 'stockade_guard_rejections_total')).toBe(0);
  }

  test('one unit in 64 segments is sold to the first buyer', async () => {
    const { node } = place();
    const saleId = await sell(node, { stock: 1, segments: 64 });
    const far = Array.from({ length: 1_000 }, (_, i) => `buyer-${i}`).find((b) => homeSegment(b, 64) === 63)!;
    const ask = (buyers: string[]) => crowd({ url: node.publicUrl, saleId, clients: 1, buyers });
    const first = await ask([far]);
    expect(first.codes).toEqual({ committed: 1 });
    expect((await ask(['late'])).codes).toEqual({ sold_out: 1 });
    await expectSold(first, saleId, 1);
  });

  test(`10 units in 64 segments are sold to 10 of ${LAST_UNITS_BUYERS} buyers`, async () => {
    const { node } = place();
    const saleId = await sell(node, { stock: 10, segments: 64 });
    const buyers = Array.from({ length: LAST_UNITS_BUYERS }, (_, i) => `buyer-${i}`);
    const result = await crowd({
      ...{ url: node.publicUrl, saleId, clients: 200, buyers },
      retryUntilAnsweredMs: S3_RETRY_LIMIT_MS,
    });
    expect(result.codes).toEqual({ committed: 10, sold_out: LAST_UNITS_BUYERS - 10 });
    await expectSold(result, saleId, 10);
  });

  test('3 of the 5 units that are left in two segments are sold in one order, and the last 2 are not lost', async () => {
    const { node } = place();
    const saleId = await sell(node, { stock: 5, segments: 2, perBuyerLimit: 3 });
    const [anna, ben, cleo] = Array.from({ length: 100 }, (_, i) => `buyer-${i}`).filter(
      (buyer) => homeSegment(buyer, 2) === 1,
    );
    const ask = (buyer: string, quantity: number) =>
      crowd({ url: node.publicUrl, saleId, clients: 1, buyers: [buyer], quantity });
    const first = await ask(anna!, 3);
    expect(first.codes).toEqual({ committed: 1 });
    expect((await ask(ben!, 3)).codes).toEqual({ insufficient_stock: 1 });
    const second = await ask(ben!, 2);
    expect(second.codes).toEqual({ committed: 1 });
    expect((await ask(cleo!, 1)).codes).toEqual({ sold_out: 1 });
    first.answers.push(...second.answers);
    await expectSold(first, saleId, 5, 3);
  });

  test('orders of different quantities are sold as far as they fit', async () => {
    const { node } = place();
    const rng = random(seed());
    const saleId = await sell(node, { stock: 100, segments: 8, perBuyerLimit: 7 });
    const results = await Promise.all(
      [7, 5, 3, 2].map((quantity) =>
        crowd({
          ...{ url: node.publicUrl, saleId, clients: 10, quantity },
          buyers: Array.from({ length: 20 }, () => `buyer-${quantity}-${rng.whole(1, 1_000)}`),
        }),
      ),
    );
    const singles = Array.from({ length: 20 }, (_, i) => `last-${i}`);
    results.push(await crowd({ url: node.publicUrl, saleId, clients: 10, buyers: singles }));
    const [all, ...others] = results;
    for (const { answers } of others) all!.answers.push(...answers);
    await expectSold(all!, saleId, 100, 7);
  });
}
