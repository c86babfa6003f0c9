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
import { expectTrue, Rush, STOCK, settle } from '../../support/nodes/rush.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';
import { unitsSold } from '../../support/shop/truth.ts';

const SALE = 'tickets';
/** Enough that each server has some of them. */
const SEGMENTS = 9;
/** Purchases before the server dies, and after that. */
const SOME = 100;
/** The servers of the cluster wait so long before they give a server up. */
const GIVEN_UP_AFTER_MS = 3_000;
/** A shorter deadline, so buyers of the dead server get answers that are not final. */
const IMPATIENT = { REQUEST_DEADLINE_MS: '2000', TAKE_TIMEOUT_MS: '1500' };

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await RedisCluster.start({ replicas: true, nodeTimeoutMs: GIVEN_UP_AFTER_MS });
});

afterAll(() => cluster?.[Symbol.asyncDispose]());

test('nodes sell through the failover of a primary: promises stay, its segments sell again, and the books balance', async () => {
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
  const orders = await expectTrue(second, stores.databaseUrl, rush, ['committed']);
  expect(unitsSold(orders)).toBe(1 + rush.promises('committed').length + open.length);
});
