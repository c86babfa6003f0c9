/**
 * Two whole nodes on a Redis Cluster, with their syncs, under load: a primary dies, and its replica takes over. Every order that was
 * answered `201` stays, buyers without a final answer settle by key, and the segments of the dead server sell again.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { BY } from '../../support/author.ts';
import { freshDatabase, freshPrefix, until } from '../../support/fixtures.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { Rush, settle } from '../../support/nodes/rush.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';
import { expectKept, expectWithinLimit, ordersOf, unitsSold } from '../../support/shop/truth.ts';

const SALE = 'tickets';
/** More than the rush can buy. */
const STOCK = 100_000;
/** Enough that each server has some of them. */
const SEGMENTS = 9;
/** Purchases before the server dies, and after that. */
const SOME = 100;
/** A failover takes longer than this deadline, so buyers of that server get answers that are not final. */
const IMPATIENT = { REQUEST_DEADLINE_MS: '2000', TAKE_TIMEOUT_MS: '1500' };

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await RedisCluster.start({ replicas: true, nodeTimeoutMs: 1_000 });
});

afterAll(() => cluster?.[Symbol.asyncDispose]());

test('nodes sell through the failover of a primary: promises stay, its segments sell again, and verify explains the rest', async () => {
  const stores = { redisUrl: cluster.url, databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
  await using first = await startTestNode({ ...stores, env: IMPATIENT });
  await using second = await startTestNode({ ...stores, env: IMPATIENT });
  await first.ops.create({ id: SALE, stock: STOCK, segments: SEGMENTS }, BY.actor);
  await settle(second, SALE, 'early');
  const keys = new Keys(stores.keyPrefix);
  const segments = keys.segments(SALE, SEGMENTS);
  const servers = await Promise.all(segments.map((segment) => cluster.primaryOf(segment)));
  // Not that of the sale's record: a server that only sells.
  const ofRecord = await cluster.primaryOf(keys.sale(SALE));
  const dying = servers.find((server) => server !== ofRecord)!;
  const isThere = (buyerId: string) => servers[homeSegment(buyerId, SEGMENTS)] === dying;

  await using rush = new Rush(SALE, [first, second]);
  await rush.more(SOME, 'committed');
  // It is frozen first, so that purchases are certainly under way when it dies.
  await cluster.primaries[dying]!.pause();
  await rush.more(1, 'unknown', 'accepted', 'unavailable');
  await cluster.primaries[dying]!.kill();
  const dead = rush.endings.length;
  const sellsThere = () =>
    rush.endings.slice(dead).some(({ buyerId, code }) => code === 'committed' && isThere(buyerId));
  await until(sellsThere, { what: 'the replica sells', timeoutMs: 60_000 });
  await rush.more(SOME, 'committed');
  await rush.stop();

  expect([first.isUp, second.isUp]).toEqual([true, true]);
  const possible = ['committed', 'accepted', 'busy', 'unavailable', 'unknown'];
  expect([...rush.codes()].filter((code) => !possible.includes(code))).toEqual([]);
  const open = rush.buyersWith('unknown', 'accepted');
  expect(open.length).toBeGreaterThan(0);
  await Promise.all(open.map((buyerId) => settle(second, SALE, buyerId)));
  const isSound = async () => (await second.ops.verify(SALE)).differences.length === 0;
  await until(isSound, { what: 'all that was taken is committed', timeoutMs: 60_000 });
  const orders = await ordersOf(stores.databaseUrl, SALE);
  expectKept(rush.promises('committed'), orders);
  expectWithinLimit(orders, 1);
  const holders = new Set([...orders.values()].map(({ buyerId }) => buyerId));
  expect(rush.buyersWith('busy', 'unavailable').filter((buyerId) => holders.has(buyerId))).toEqual([]);
  expect(unitsSold(orders)).toBe(1 + rush.promises('committed').length + open.length);
  expect(await second.ops.verify(SALE)).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
});
