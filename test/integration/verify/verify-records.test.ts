/**
 * Another program changes buyers' records in Redis. Verify names buyer and order, a repair rebuilds the sale, and no
 * buyer exceeds the limit.
 */
import { type Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import type { VerifyReport } from '../../../src/operations/sale-operations.ts';
import { rows } from '../../../src/postgres/database.ts';
import { clusterClient } from '../../../src/redis/clients.ts';
import { BY } from '../../support/author.ts';
import { redisUrl, until } from '../../support/fixtures.ts';
import { Load } from '../../support/http/load.ts';
import { asAdmin, asUser } from '../../support/postgres/least-rights.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

const SEGMENTS = 2;
const LIMIT = 2;
const STOCK = 20;
const COMMITTED = 6;
const ACCEPTED = 4;

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await RedisCluster.start();
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

const places = [
  { place: 'one Redis', urls: () => redisUrl(), admin: () => new Redis(asUser(redisUrl(), '')) },
  {
    place: 'a cluster',
    urls: () => [cluster.urls[0], ...cluster.urls.slice(1).map((url) => new URL(url).host)].join(','),
    admin: () => clusterClient(cluster.adminUrls),
  },
];

describe.each(places)('on $place', ({ place, urls, admin }) => {
  // A cluster differs in how keys are reached, and not in their content.
  const isCluster = place === 'a cluster';
  let shop: Shop;
  let redis: Redis | Cluster;
  let id: string;

  beforeEach(async () => {
    shop = await Shop.open({ redis: urls() });
    redis = admin();
    ({ id } = await shop.sell({ stock: STOCK, segments: SEGMENTS, perBuyerLimit: LIMIT }));
    const sync = await shop.startSync();
    await sync.ready;
    const till = await shop.startEngine();
    const bought = await till.buyAll(id, buyers(COMMITTED), { key: 'cart' });
    expect(bought.map(({ code }) => code)).toEqual(Array(COMMITTED).fill('committed'));
    await sync.stop();
    await till.buyAll(id, buyers(ACCEPTED, 'waiting'), { key: 'cart', awaitCommit: false });
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, findings: [] });
    return async () => {
      redis.disconnect();
      await shop[Symbol.asyncDispose]();
    };
  });

  const recordsOf = (buyer: string) =>
    new Keys(shop.keyPrefix).segment({ saleId: id, segment: homeSegment(buyer, SEGMENTS) }).buyers;
  const recordOf = async (buyer: string) => (await redis.hget(recordsOf(buyer), buyer))!;
  const write = (buyer: string, record: string) => redis.hset(recordsOf(buyer), buyer, record);

  /** The words of a record, as others would have them. */
  async function forge(buyer: string, change: (parts: string[]) => string[] | string): Promise<string> {
    const record = await recordOf(buyer);
    const changed = change(record.split(':'));
    await write(buyer, typeof changed === 'string' ? changed : changed.join(':'));
    return record.split(':')[0]!;
  }

  async function found(): Promise<VerifyReport> {
    const report = await shop.service.verify(id);
    expect(report.ok).toBe(false);
    const causes = report.differences.filter(({ isFault }) => isFault).map(({ cause }) => cause);
    expect(new Set(causes)).toEqual(new Set(['foreign_redis']));
    return report;
  }

  async function isRepaired(): Promise<void> {
    const report = await shop.service.verify(id, { repair: true });
    expect(report).toMatchObject({ ok: true, findings: [], committedOrders: COMMITTED + ACCEPTED });
    expect(report.repairs).toEqual([
      {
        cause: 'foreign_redis',
        done: true,
        what: expect.stringMatching(/^built generation 2 from Postgres/),
      },
    ]);
  }

  /** The sale is as before the foreign write, with all orders, and sells exactly the rest. */
  async function sellsOut(): Promise<void> {
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const all = [...buyers(COMMITTED), ...buyers(ACCEPTED, 'waiting')];
    const more = await till.buyAll(id, all, { quantity: LIMIT });
    expect(more.map(({ code }) => code)).toEqual(all.map(() => 'limit_reached'));
    const repeated = await till.buyAll(id, all, { key: 'cart' });
    expect(repeated.map(({ code }) => code)).toEqual(all.map(() => 'committed'));
    const left = STOCK - COMMITTED - ACCEPTED;
    const late = await till.buyAll(id, buyers(left + 3, 'late'));
    expect(late.filter(({ code }) => code === 'committed')).toHaveLength(left);
    await sync.stop();
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, differences: [], rejectedOrders: 0 });
  }

  type Change = (parts: string[]) => string[] | string;
  const kinds: [kind: string, change: Change, what: RegExp][] = [
    ['too many units', ([o, , ...rest]) => [o!, '2', ...rest], /as 2 units instead of 1/],
    ['another key', ([o, q, seq]) => [o!, q!, seq!, 'other'], /under another idempotency key/],
    ['no key', ([o, q, seq]) => [o!, q!, seq!, ''], /under another idempotency key/],
    ['a later entry of the log', ([o, q, , key]) => [o!, q!, '4000', key!], /entry 4000/],
    ['the order twice', (parts) => `${parts.join(':')} ${parts.join(':')}`, /twice/],
    ['an order id that exists nowhere', ([, ...rest]) => ['77', ...rest], /order 77 /],
    ['an order that nobody made beside it', (parts) => `${parts.join(':')} 77:1:1:`, /order 77 /],
    ['another order of the log', (parts) => `${parts.join(':')} 77:1:4000:`, /order 77 /],
  ];

  describe.each(isCluster ? ['waiting'] : ['buyer', 'waiting'])('the record of %s-0 holds', (name) => {
    const buyer = `${name}-0`;

    test.each(isCluster ? kinds.slice(-3) : kinds)('%s', async (_, change, what) => {
      await forge(buyer, change);
      const { findings } = await found();
      expect(findings.join('\n')).toMatch(what);
      expect(findings.join('\n')).toContain(`buyer ${buyer} `);
      await isRepaired();
    });

    test.skipIf(isCluster).each(['buyer-1', 'waiting-1'])('the order of %s', async (other) => {
      const [word] = (await recordOf(other)).split(' ');
      await forge(buyer, (parts) => `${parts.join(':')} ${word}`);
      const { findings } = await found();
      expect(findings.join('\n')).toContain(`order ${word!.split(':')[0]} of buyer ${buyer} `);
      // If only the log of another segment holds the order, its buyer can't be told.
      if (other === 'buyer-1') expect(findings.join('\n')).toContain('is that of buyer buyer-1');
      await isRepaired();
    });

    test('a deleted record', async () => {
      const [order] = (await recordOf(buyer)).split(':');
      await redis.hdel(recordsOf(buyer), buyer);
      const { findings } = await found();
      expect(findings.join('\n')).toContain(`order ${order} of buyer ${buyer}`);
      // If the order is in Postgres, its record is restored without a rebuild.
      if (name === 'waiting') await isRepaired();
      else expect(await shop.service.verify(id, { repair: true })).toMatchObject({ ok: true, findings: [] });
    });

    test.skipIf(isCluster).each(['0', '1001', 'many'])('%s units', async (units) => {
      await forge(buyer, ([order, , ...rest]) => [order!, units, ...rest]);
      const { findings } = await found();
      expect(findings.join('\n')).toContain(`buyer ${buyer} `);
      await isRepaired();
    });
  });

  test.skipIf(isCluster)(
    'beside counters that no repair may touch, it is repaired with them by a rebuild',
    async () => {
      await forge('buyer-0', ([, ...rest]) => ['77', ...rest]);
      const { segment } = new Keys(shop.keyPrefix).segment({ saleId: id, segment: 0 });
      await redis.hincrby(segment, 'left', 4);
      await redis.hincrby(segment, 'supplied', 4);
      const { differences } = await shop.service.verify(id);
      expect(differences.map(({ cause }) => cause)).toContain('unexplained');
      await isRepaired();
      await sellsOut();
    },
  );

  test.skipIf(isCluster)('a record with too few units', async () => {
    const till = await shop.startEngine();
    const sync = await shop.startSync();
    expect(await till.buy(id, 'two', { quantity: 2 })).toMatchObject({ code: 'committed' });
    await sync.stop();
    await forge('two', ([order, , ...rest]) => [order!, '1', ...rest]);
    const { findings } = await found();
    expect(findings).toEqual([expect.stringMatching(/order \d+ of buyer two .*as 1 unit instead of 2/)]);
    expect(await shop.service.verify(id, { repair: true })).toMatchObject({ ok: true, findings: [] });
    expect(await recordOf('two')).toMatch(/^\d+:2:0:$/);
  });

  test('a forged record of a buyer without orders prevents a purchase', async () => {
    await write('refused', '78:2:0:');
    const till = await shop.startEngine();
    expect(await till.buy(id, 'refused')).toMatchObject({ code: 'limit_reached' });
    const { findings } = await found();
    expect(findings.join('\n')).toMatch(/order 78 of buyer refused /);
    await isRepaired();
    await sellsOut();
  });

  test.skipIf(isCluster)('a record in a segment that is not its home', async () => {
    const record = await recordOf('buyer-0');
    const home = homeSegment('buyer-0', SEGMENTS);
    const other = new Keys(shop.keyPrefix).segment({ saleId: id, segment: 1 - home }).buyers;
    await redis.hset(other, 'buyer-0', record, 'no buyer', record);
    const { findings } = await found();
    const why = 'it was written by others, or the backend has gone back to an older state';
    expect([...findings].sort()).toEqual([
      `segment ${1 - home} has a record under "no buyer", which is no buyer's id: ${why}`,
      `the record of buyer buyer-0 is in segment ${1 - home}, and its home is segment ${home}: ${why}`,
    ]);
    await isRepaired();
  });

  test.skipIf(isCluster)('an order of another sale', async () => {
    const other = await shop.sell({ stock: 2 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const bought = await till.buy(other.id, 'late-0');
    await sync.stop();
    const { orderId } = bought as { orderId: string };
    await write('refused', `${orderId}:1:1:`);
    const { findings } = await found();
    expect(findings.join('\n')).toContain(`order ${orderId} of buyer refused `);
    expect(findings.join('\n')).toContain(other.id);
  });

  test.skipIf(isCluster)('hundreds of forged records: some are named, the others counted', async () => {
    for (const buyer of buyers(300, 'refused')) await write(buyer, '79:1:0:');
    const { findings } = await found();
    expect(findings.length).toBeLessThan(10);
    expect(findings.join('\n')).toMatch(/295 more/);
    await isRepaired();
    await sellsOut();
  });

  test('an order that was returned and was written back into its record', async () => {
    const record = await recordOf('buyer-0');
    const till = await shop.startEngine();
    const [orderId] = record.split(':');
    await shop.orders(till.take).changeOrder(orderId!, { kind: 'cancel' }, BY);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true });
    await write('buyer-0', record);
    const { findings } = await found();
    expect(findings.join('\n')).toMatch(new RegExp(`order ${orderId} of buyer buyer-0 .*it has ended`));
  });

  test.skipIf(isCluster)(
    'an order deleted in Postgres, and forged records: the report does not tell which is which',
    async () => {
      const [orderId] = (await recordOf('buyer-0')).split(':');
      await query(asAdmin(shop.databaseUrl), 'DELETE FROM orders WHERE order_id = $1', [orderId]);
      await write('refused', '78:2:0:');
      const report = await shop.service.verify(id, { repair: true });
      expect(report.ok).toBe(false);
      expect(report.findings.join('\n')).toContain(`order ${orderId} of buyer buyer-0`);
      expect(report.findings.join('\n')).toContain('order 78 of buyer refused');
      expect(report.repairs!.every(({ done }) => !done)).toBe(true);
    },
  );
});

test('during a sale with returns, exactly the forged records are found', async () => {
  await using shop = await Shop.open();
  const redis = new Redis(asUser(redisUrl(), ''));
  try {
    const { id } = await shop.sell({ stock: 200_000, segments: 4, perBuyerLimit: 2 });
    await shop.startSync({ batchRows: 200 });
    const till = await shop.startEngine();
    await using load = new Load(till, id, { lines: 50, keyed: true });
    await until(() => load.promised.length > 500, { what: 'the sale runs' });
    const orders = shop.orders(till.take);
    const cancel = async () => {
      const live = await rows<{ id: string }>(
        shop.db,
        "SELECT order_id::text AS id FROM orders WHERE sale_id = ? AND status = 'unpaid' LIMIT 20",
        [id],
      );
      await Promise.all(live.map((order) => orders.changeOrder(order.id, { kind: 'cancel' }, BY)));
    };
    const { buyers: key } = new Keys(shop.keyPrefix).segment({
      saleId: id,
      segment: homeSegment('refused', 4),
    });
    for (let round = 0; round < 4; round++) {
      await cancel();
      const [sound] = await Promise.all([shop.service.verify(id), cancel()]);
      expect(sound).toMatchObject({ ok: true, findings: [] });
      await redis.hset(key, 'refused', `78:2:${round}:`);
      const [report] = await Promise.all([shop.service.verify(id), cancel()]);
      expect(report.findings).toEqual([expect.stringMatching(/order 78 of buyer refused /)]);
      await redis.hdel(key, 'refused');
    }
    await shop.service.change(id, { action: 'pause' }, BY);
  } finally {
    redis.disconnect();
  }
});
