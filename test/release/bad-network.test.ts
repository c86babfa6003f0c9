/**
 * Two nodes sell one sale over a bad network: each is on a machine of its own, a network namespace, and reaches Redis and Postgres
 * only over links with delay, losses and cuts (test/support/servers/network/bad-link.ts says why not `netem`).
 */
import { expect, test } from 'vitest';
import { Teardown } from '../../src/lib/teardown.ts';
import { BY } from '../support/author.ts';
import { freshDatabase, freshPrefix, redisUrl, seed, until } from '../support/fixtures.ts';
import { type Answer, startTestNode, type TestNode } from '../support/nodes/node.ts';
import { random } from '../support/random.ts';
import { BadLink } from '../support/servers/network/bad-link.ts';
import { NetworkNamespace, whyNoNamespaces } from '../support/servers/network/network-namespace.ts';
import { buyers } from '../support/shop/shop.ts';
import { expectKept, expectWithinLimit, ordersOf, unitsSold } from '../support/shop/truth.ts';

const WEATHER = { delayMs: 20, jitterMs: 10, lossShare: 0.02 };
/** Of the pieces of data, while buyers come. A node does not start if its stores can't be reached. */
const CUT_SHARE = 0.02;
const STOCK = 300;
const BUYERS = 450;
/** Purchases under way at each node. */
const LINES = 25;
/** Answers after which a buyer asks again, with the same key. */
const AGAIN = new Set(['unavailable', 'unknown', 'busy']);
const MOST_ATTEMPTS = 200;

const noNamespaces = whyNoNamespaces();
const where = noNamespaces ? ` (on the loopback: ${noNamespaces})` : '';

test(`two nodes behind bad links sell a sale to its last unit${where}`, async () => {
  const { unit } = random(seed());
  const stores = { databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
  const teardown = new Teardown((error) => console.error(error));
  await using _end = { [Symbol.asyncDispose]: () => teardown.release() };
  const links: BadLink[] = [];
  const nodes: TestNode[] = [];
  for (let i = 0; i < 2; i++) {
    const namespace = noNamespaces ? undefined : NetworkNamespace.create();
    teardown.add(async () => namespace?.[Symbol.dispose]());
    const linkTo = async (url: string) => {
      const here = namespace?.hostAddress ?? '127.0.0.1';
      const link = await BadLink.start(Number(new URL(url).port), here, WEATHER, unit);
      teardown.add(() => link[Symbol.asyncDispose]());
      links.push(link);
      return link.through(url);
    };
    const node = await startTestNode({
      ...stores,
      redisUrl: await linkTo(redisUrl()),
      databaseUrl: await linkTo(stores.databaseUrl),
      ...(namespace && {
        launcher: namespace.launcher,
        env: { HOST: namespace.address, OPS_HOST: namespace.address, TRUST_BUYER_HEADER: '1' },
      }),
    });
    teardown.add(() => node[Symbol.asyncDispose]());
    nodes.push(node);
  }
  const { id } = await nodes[0]!.ops.create({ id: 'tickets', stock: STOCK, segments: 4 }, BY.actor);
  for (const link of links) link.cutShare = CUT_SHARE;

  const answers = await Promise.all(nodes.map((node, i) => sellAt(node, id, buyers(BUYERS / 2, `at-${i}`))));
  // An operator whose request is cut off gets an error, and asks again.
  for (const link of links) link.cutShare = 0;
  const promised = answers
    .flat()
    .flatMap(({ buyerId, answer: { status, body } }) =>
      status === 201 || status === 202 ? [{ buyerId, orderId: body.orderId, quantity: body.quantity }] : [],
    );
  const codes = new Set(answers.flat().map(({ answer: { code } }) => code));
  expect([...codes].filter((code) => !['committed', 'accepted', 'sold_out'].includes(code))).toEqual([]);
  expect(promised).toHaveLength(STOCK);
  await until(async () => (await nodes[1]!.ops.verify(id)).differences.length === 0, {
    what: 'all orders in Postgres',
  });
  const orders = await ordersOf(stores.databaseUrl, id);
  expectKept(promised, orders);
  expectWithinLimit(orders, 1);
  expect(unitsSold(orders)).toBe(STOCK);
  expect(await nodes[1]!.ops.verify(id)).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
  const total = (of: 'lost' | 'cuts') => links.reduce((sum, { counts }) => sum + counts[of], 0);
  expect(total('lost'), 'lost packets').toBeGreaterThan(0);
  expect(total('cuts'), 'cut connections').toBeGreaterThan(0);
  console.log(`${total('lost')} lost packets, ${total('cuts')} cut connections`);
});

interface Told {
  readonly buyerId: string;
  readonly answer: Answer;
}

/** Every buyer buys, and asks again until the answer is final. */
async function sellAt(node: TestNode, saleId: string, crowd: readonly string[]): Promise<Told[]> {
  const waiting = [...crowd];
  const told: Told[] = [];
  const line = async () => {
    for (let buyerId = waiting.shift(); buyerId !== undefined; buyerId = waiting.shift()) {
      told.push({ buyerId, answer: await buyFinally(node, saleId, buyerId) });
    }
  };
  await Promise.all(Array.from({ length: LINES }, line));
  return told;
}

async function buyFinally(node: TestNode, saleId: string, buyerId: string): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const answer = await node.buy(saleId, buyerId, { key: `key-${buyerId}` });
    if (!AGAIN.has(answer.code)) return answer;
    if (attempt === MOST_ATTEMPTS) throw new Error(`${buyerId} was answered ${answer.code} ${attempt} times`);
    await new Promise((resolve) => setTimeout(resolve, Number(answer.headers['retry-after'] ?? 0) * 100));
  }
}
