/**
 * An operator changes a Redis Cluster while a sale sells on it: slots move, a primary is added, and one that has no replica is lost
 * for good.
 */
import { expect, test } from 'vitest';
import { slotOf } from '../../../src/engine/cluster/slot.ts';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { clusterClient, connect } from '../../../src/redis/clients.ts';
import { until } from '../../support/fixtures.ts';
import { Load } from '../../support/http/load.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import {
  expectKept,
  expectWithinLimit,
  ordersOf,
  promisesOf,
  query,
  unitsSold,
} from '../../support/shop/truth.ts';

const SEGMENTS = 6;
const STOCK = 100_000;

function slotsOf(shop: Shop, saleId: string): number[] {
  const keys = new Keys(shop.keyPrefix);
  return Array.from({ length: SEGMENTS }, (_, segment) => slotOf(keys.segment({ saleId, segment }).segment));
}

/** Expects that every promise of the load is in Postgres, and that the books balance. */
async function expectSound(shop: Shop, saleId: string, load: Load): Promise<void> {
  const promised = await load.stop();
  await until(async () => (await shop.service.verify(saleId)).differences.length === 0, {
    what: 'everything is in Postgres',
  });
  const orders = await ordersOf(shop.databaseUrl, saleId);
  expectKept(promised, orders);
  expectWithinLimit(orders, 1);
  expect(unitsSold(orders)).toBeLessThanOrEqual(STOCK);
  expect(await shop.service.verify(saleId)).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
}

test('slots move while their segments sell: every buyer is served, also those who come in the middle of a move', async () => {
  await using servers = await RedisCluster.start();
  await using shop = await Shop.open({ redis: servers.url });
  const { seen } = await shop.startSync();
  const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
  const till = await shop.startEngine();
  await using load = new Load(till, id, { lines: 30 });
  for (const [segment, slot] of slotsOf(shop, id).entries()) {
    const from = await servers.ownerOf(slot);
    const refused = await servers.errorsOf(from, 'ASK');
    const before = load.promised.length;
    await servers.moveSlot(slot, from, (from + 1) % 3, {
      moved: async () => {
        await until(async () => (await servers.errorsOf(from, 'ASK')) > refused, {
          what: `the old server refuses takes of segment ${segment}`,
        });
      },
    });
    await until(
      () => load.promised.slice(before).some(({ buyerId }) => homeSegment(buyerId, SEGMENTS) === segment),
      {
        what: `segment ${segment} sells at the new server`,
      },
    );
  }
  await expectSound(shop, id, load);
  expect([...load.codes.keys()]).toEqual(['committed']);
  expect([till.faults, seen.failures, seen.breaks, seen.rebuilds]).toEqual([[], [], [], []]);
});

test('the log of a segment that has sold nothing is read while its slot moves, however long that takes', async () => {
  await using servers = await RedisCluster.start();
  await using shop = await Shop.open({ redis: servers.url });
  const { id } = await shop.sell({ stock: 10, segments: 1 });
  const position = { saleId: id, segment: 0, generation: 1, seq: 0, tail: '' };
  const expectEmpty = async () => {
    const [read] = await shop.backend.log.readLog([position], 10);
    expect(read).toEqual({ position, head: expect.objectContaining({ seq: 0, state: 'open' }), entries: [] });
  };
  const slot = slotsOf(shop, id)[0]!;
  const from = await servers.ownerOf(slot);
  // There is no key of the log, and a command that names it with another key would be refused with TRYAGAIN.
  await servers.moveSlot(slot, from, (from + 1) % 3, { announced: expectEmpty, moved: expectEmpty });
  await expectEmpty();
});

test('a new primary to which a slot moves does not answer: what was to ask it is sent again, and no error is left unhandled', async () => {
  await using servers = await RedisCluster.start();
  const cluster = await connect(clusterClient(servers.adminUrls));
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  process.on('unhandledRejection', note);
  try {
    const key = 'moving';
    await cluster.set(key, 'found');
    const slot = slotOf(key);
    const from = await servers.ownerOf(slot);
    const added = await servers.addPrimary();
    await servers.moveSlot(slot, from, added, {
      moved: async () => {
        await servers.primaries[added]!.pause();
        // The map does not name the new primary before it has a slot. So the next refresh closes the connection to it.
        const closed = new Promise((resolve) => cluster.once('-node', resolve));
        const value = cluster.get(key);
        await closed;
        servers.primaries[added]!.resume();
        expect(await value).toBe('found');
      },
    });
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', note);
    cluster.disconnect();
  }
});

test('a primary is added while a sale sells, and slots move to it', async () => {
  await using servers = await RedisCluster.start();
  await using shop = await Shop.open({ redis: servers.url });
  const { seen } = await shop.startSync();
  const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
  const tills = [await shop.startEngine(), await shop.startEngine({ backend: await shop.anotherBackend() })];
  await using load = new Load(tills[0]!, id, { lines: 20 });
  const added = await servers.addPrimary();
  const moved = [0, 1, 2, 3];
  for (const segment of moved) {
    const slot = slotsOf(shop, id)[segment]!;
    await servers.moveSlot(slot, await servers.ownerOf(slot), added);
  }
  const before = load.promised.length;
  await until(
    () =>
      moved.every((segment) =>
        load.promised.slice(before).some(({ buyerId }) => homeSegment(buyerId, SEGMENTS) === segment),
      ),
    { what: 'the new primary sells' },
  );
  const late = await tills[1]!.buyAll(id, buyers(50, 'late'));
  expect(late.map(({ code }) => code)).toEqual(late.map(() => 'committed'));
  await expectSound(shop, id, load);
  expect([...load.codes.keys()]).toEqual(['committed']);
  expect([tills[0]!.faults, seen.failures, seen.breaks, seen.rebuilds]).toEqual([[], [], [], []]);
});

test('a primary without a replica is lost for good: its slots go to the others, the sale is rebuilt from Postgres, and accepted orders that only it had are named', async () => {
  await using servers = await RedisCluster.start({ nodeTimeoutMs: 4_000 });
  await using shop = await Shop.open({ redis: servers.url });
  const { stop } = await shop.startSync();
  const { id } = await shop.sell({ stock: 300, segments: SEGMENTS });
  const till = await shop.startEngine();
  const committed = buyers(100, 'early');
  const early = await till.buyAll(id, committed);
  expect(early.map(({ code }) => code)).toEqual(early.map(() => 'committed'));
  await stop();
  // Nothing copies these to Postgres.
  const waiting = buyers(60, 'waiting');
  const accepted = promisesOf(await till.buyAll(id, waiting, { awaitCommit: false }), waiting);
  expect(accepted).toHaveLength(60);
  const slots = slotsOf(shop, id);
  const isGone = await Promise.all(slots.map(async (slot) => (await servers.ownerOf(slot)) === 2));
  const lost = accepted.filter(({ buyerId }) => isGone[homeSegment(buyerId, SEGMENTS)]);
  expect(lost.length, 'accepted orders in the segments of that primary').toBeGreaterThan(0);

  await servers.primaries[2]!.kill();
  // Each server learns it by itself, and sells its own slots until then.
  for (const survivor of [0, 1])
    await until(async () => (await servers.stateSeenBy(survivor)) === 'fail', {
      what: 'the cluster notices',
    });
  const meanwhile = await till.buyAll(id, buyers(20, 'meanwhile'));
  for (const { code } of meanwhile) expect(['unavailable', 'unknown']).toContain(code);
  await servers.giveSlotsOfLostPrimaries();

  const { seen } = await shop.startSync();
  // With a key: an order that was accepted before the rebuild would make another one of this buyer exceed the limit.
  await until(async () => (await till.buy(id, 'first', { key: 'first' })).code === 'committed', {
    what: 'the sale sells again',
    timeoutMs: 60_000,
  });
  await until(() => seen.rebuilds.length > 0, { what: 'sync reports the rebuild' });
  expect(seen.rebuilds).toMatchObject([{ saleId: id, again: true }]);
  // An order of the buyer who was awaited may be among them.
  expect(seen.rebuilds[0]!.salvagedOrders).toBeGreaterThanOrEqual(60 - lost.length);
  const named = await until(
    async () => {
      const rows = await query<{ id: string }>(
        shop.databaseUrl,
        'SELECT order_id::text AS id FROM lost_orders',
      );
      return rows.length >= lost.length ? rows.map((row) => row.id) : undefined;
    },
    { what: 'the node names the lost orders' },
  );
  expect([...named!].sort()).toEqual(lost.map(({ orderId }) => orderId).sort());

  const crowd = buyers(400, 'late');
  const late = await till.buyAll(id, crowd);
  expect(new Set(late.map(({ code }) => code))).toEqual(new Set(['committed', 'sold_out']));
  const orders = await ordersOf(shop.databaseUrl, id);
  const kept = accepted.filter((promise) => !lost.includes(promise));
  expectKept([...promisesOf(early, committed), ...kept, ...promisesOf(late, crowd)], orders);
  expectWithinLimit(orders, 1);
  expect(unitsSold(orders)).toBe(300);
  expect(await shop.service.verify(id)).toMatchObject({
    ...{ ok: true, findings: [], rejectedOrders: 0, lostOrders: lost.length },
  });
});
