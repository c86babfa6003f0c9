/**
 * The connection to Redis loses replies, loses takes, delivers them late, or is gone. Whatever a buyer was answered, repeating the
 * purchase with the same Idempotency-Key tells its outcome, and no buyer gets a second unit.
 */
import pLimit from 'p-limit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { BY } from '../../support/author.ts';
import { freshDatabase, freshPrefix, until } from '../../support/fixtures.ts';
import { type Answer, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { type Predicate, TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { ordersOf } from '../../support/shop/truth.ts';

const STOCK = 500;
const SEGMENTS = 4;
/** So many purchases are committed within the deadline below, also on a busy machine. */
const AT_ONCE = 5;
/** Short, so that a test can let it pass; the answer after it is `unknown`. */
const IMPATIENT = { REQUEST_DEADLINE_MS: '2000', TAKE_TIMEOUT_MS: '500' };

let redis: RedisServer;
let proxy: TcpProxy;
let node: TestNode;
let databaseUrl: string;
let saleId = '';
let salesMade = 0;

beforeAll(async () => {
  redis = await RedisServer.start();
  proxy = await TcpProxy.start(redis.port);
  databaseUrl = await freshDatabase();
  const stores = { redisUrl: proxy.through(redis.url), databaseUrl, keyPrefix: freshPrefix() };
  node = await startTestNode({ ...stores, env: { WORKERS: '1', ...IMPATIENT } });
});

afterAll(async () => {
  await node?.[Symbol.asyncDispose]();
  await proxy?.stop();
  await redis?.[Symbol.asyncDispose]();
});

/** One buyer in every segment. They buy first, so that the scripts are in Redis: then a take whose reply is lost was executed. */
const earlyBuyers = Array.from({ length: SEGMENTS }, (_, segment) => {
  for (let n = 0; ; n++) if (homeSegment(`early-${n}`, SEGMENTS) === segment) return `early-${n}`;
});

beforeEach(async () => {
  saleId = `tickets-${++salesMade}`;
  await node.ops.create({ id: saleId, stock: STOCK, segments: SEGMENTS }, BY.actor);
  await Promise.all(earlyBuyers.map(settle));
});

afterEach(async () => {
  proxy.refuse(false);
  await proxy.release();
  await until(async () => (await node.opsRequest('/readyz')).status === 200, { what: 'the node is ready' });
});

/** Matches only takes of this sale: no other command uses both a segment's buyers and its log. */
const takeOf =
  (buyerId: string): Predicate =>
  (request) =>
    [`{${saleId}:`, ':buyers', ':log', buyerId].every((part) => request.includes(part));

const crowd = (count: number, first = 0) => Array.from({ length: count }, (_, n) => `buyer-${first + n}`);

function buy(buyerId: string): Promise<Answer> {
  return node.buy(saleId, buyerId, { key: `key-of-${buyerId}` });
}

/** All at once; their answers by buyer. */
async function buyAll(buyerIds: readonly string[]): Promise<Map<string, Answer>> {
  return new Map(await Promise.all(buyerIds.map(async (buyerId) => [buyerId, await buy(buyerId)] as const)));
}

/** Asks with the same key until the order is committed; every answer that names an order names the same. */
async function settle(buyerId: string): Promise<string> {
  const named = new Set<string>();
  await until(
    async () => {
      const { status, body } = await buy(buyerId);
      if (status < 300) named.add(body.orderId);
      return status === 201;
    },
    { what: `the purchase of ${buyerId} is settled` },
  );
  expect(named.size, `orders that ${buyerId} was told of`).toBe(1);
  return [...named][0]!;
}

/** Bought, unknown, or not taken: and as many units are gone as that allows. */
async function expectHonest(answers: ReadonlyMap<string, Answer>): Promise<void> {
  const count = { committed: 0, accepted: 0, unknown: 0, unavailable: 0, busy: 0 };
  for (const [buyerId, { code }] of answers) {
    expect(Object.keys(count), buyerId).toContain(code);
    count[code as keyof typeof count] += 1;
  }
  const { remaining } = await until(() => node.ops.show(saleId), { what: 'the sale is shown' });
  const taken = STOCK - SEGMENTS - remaining!;
  const bought = count.committed + count.accepted;
  expect(taken).toBeGreaterThanOrEqual(bought);
  expect(taken).toBeLessThanOrEqual(bought + count.unknown);
}

/**
 * Each of these buyers has exactly one unit, learns of it by its key, and was promised no other. No other buyer has bought
 * anything.
 */
async function expectOneEach(answers: ReadonlyMap<string, Answer>): Promise<void> {
  const settled = new Map<string, string>();
  await pLimit(AT_ONCE).map(answers, async ([buyerId, { status, body }]) => {
    const orderId = await settle(buyerId);
    if (status < 300) expect(orderId, `the order of ${buyerId}`).toBe(body.orderId);
    settled.set(orderId, buyerId);
  });
  const orders = [...(await ordersOf(databaseUrl, saleId)).values()];
  const late = orders.filter(({ buyerId }) => !earlyBuyers.includes(buyerId));
  expect(new Map(late.map(({ orderId, buyerId }) => [orderId, buyerId]))).toEqual(settled);
  expect(orders.filter(({ quantity }) => quantity !== 1)).toEqual([]);
  expect(await node.ops.verify(saleId)).toMatchObject({
    ok: true,
    findings: [],
    rejectedOrders: 0,
    committedOrders: SEGMENTS + settled.size,
    distinctBuyers: SEGMENTS + settled.size,
  });
  expect(await node.ops.show(saleId)).toMatchObject({ remaining: STOCK - orders.length });
}

describe.each([
  ['the reply to a take', 'loseReplies', 'lostReplies'],
  ['a take on its way to Redis', 'loseRequests', 'lostRequests'],
] as const)('%s is lost', (_, lose, counter) => {
  test('the buyer has one unit, and the same key finds its order', async () => {
    const before = proxy.counts[counter];
    const loss = proxy[lose](takeOf('alice'));
    const answers = await buyAll(['alice']);
    await loss.lost;
    await expectHonest(answers);
    await expectOneEach(answers);
    expect(proxy.counts[counter] - before).toBe(1);
  });

  test('always, until the deadline has passed: the answer is unknown, and the key settles it', async () => {
    const loss = proxy[lose](takeOf('alice'), { times: 1_000 });
    const answers = await buyAll(['alice']);
    loss.cancel();
    expect(answers.get('alice')).toMatchObject({
      status: 503,
      code: 'unknown',
      headers: { 'retry-after': '1' },
    });
    expect(loss.count).toBeGreaterThanOrEqual(1);
    await expectHonest(answers);
    await expectOneEach(answers);
  });

  test('five times, with fifty concurrent buyers: each of them has one order', async () => {
    const before = proxy.counts[counter];
    const loss = proxy[lose](takeOf('buyer-'), { times: 5 });
    const answers = await buyAll(crowd(50));
    // On a busy machine, fewer than five takes are sent before the deadline of the first fifty buyers.
    while (loss.count < 5)
      for (const [buyerId, answer] of await buyAll(crowd(AT_ONCE, answers.size)))
        answers.set(buyerId, answer);
    await expectHonest(answers);
    await expectOneEach(answers);
    expect(proxy.counts[counter] - before).toBe(5);
  });
});

describe('a take is delayed beyond the deadline of its purchase', () => {
  /** A purchase that was answered `unknown`, while all attempts at its take still wait in the proxy. */
  async function heldUp() {
    const before = proxy.counts.held;
    let holding = true;
    const isHeld = takeOf('alice');
    const hold = proxy.hold((request) => holding && isHeld(request));
    const answers = await buyAll(['alice']);
    await hold.held;
    expect(answers.get('alice')).toMatchObject({ status: 503, code: 'unknown' });
    expect(proxy.counts.held - before).toBeGreaterThanOrEqual(1);
    return {
      answers,
      /** New takes get through, past those held. */
      letPass: () => {
        holding = false;
      },
    };
  }

  test('it arrives after the second attempt: the segment refuses it', async () => {
    const { answers, letPass } = await heldUp();
    letPass();
    const orderId = await settle('alice');
    await proxy.release();
    await expectOneEach(answers);
    expect(await settle('alice')).toBe(orderId);
  });

  test('it arrives before the second attempt: it is not made, because its buyer has been answered', async () => {
    const { answers, letPass } = await heldUp();
    await proxy.release();
    letPass();
    await settle('bob');
    expect((await node.ops.show(saleId)).committedOrders).toBe(SEGMENTS + 1);
    await expectOneEach(new Map([...answers, ...(await buyAll(['bob']))]));
  });

  test('it arrives while fifty others buy: each buyer has one order', async () => {
    const { answers } = await heldUp();
    const [others] = await Promise.all([buyAll(crowd(50)), proxy.release()]);
    const all = new Map([...others, ...answers]);
    await expectHonest(all);
    await expectOneEach(all);
  });
});

describe('Redis can’t be reached', () => {
  test('purchases are refused and say when to ask again; when it is back they succeed', async () => {
    proxy.refuse(true);
    proxy.cutAll();
    await until(async () => (await buy('scout')).code === 'unavailable', {
      what: 'the node has noticed it',
    });
    const refused = await buyAll(crowd(20));
    for (const answer of refused.values()) {
      expect(answer).toMatchObject({
        status: 503,
        code: 'unavailable',
        headers: { 'retry-after': '1', 'content-type': 'application/problem+json' },
      });
    }

    proxy.refuse(false);
    await settle('scout');
    const bought = await buyAll(crowd(20));
    // On a busy machine the short deadline may end before the commit.
    for (const { status } of bought.values()) expect([201, 202]).toContain(status);
    const scout = await buyAll(['scout']);
    await expectOneEach(new Map([...bought, ...scout]));
  });
});
