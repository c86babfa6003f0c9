/** Redis loses a part of a sale that is closed and whose orders are all in Postgres. Nobody buys there, so no purchase shows the loss. */
import { expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { buyers, Shop, type WatchedSync } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

const released = (shop: Shop, saleId: string) =>
  until(() => shop.isUnlocked(saleId), { what: 'the closed sale is released' });

const rebuilt = ({ seen }: WatchedSync) =>
  until(() => seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });

test('a segment that is gone is built again', async () => {
  await using shop = await Shop.open();
  await using keys = new RedisKeys(shop);
  const { id } = await shop.sell({ stock: 10, segments: 2 });
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  await till.buyAll(id, buyers(4));
  await shop.service.change(id, { action: 'close' }, BY);
  await released(shop, id);
  expect(await keys.redis.del(Object.values(keys.of(id, 1)))).toBeGreaterThan(0);
  await rebuilt(sync);
  expect(sync.seen.breaks).toMatchObject([{ saleId: id, segment: 1, problem: /the segment is missing/ }]);
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 4 });
});

test('an order that only its node knows of is counted and named', async () => {
  await using server = await RedisServer.start();
  await using shop = await Shop.open({ redis: server.productUrl });
  await using keys = new RedisKeys(shop);
  const { id } = await shop.sell({ stock: 10, segments: 1 });
  const till = await shop.startEngine();
  await till.buyAll(id, buyers(2, 'kept'), { awaitCommit: false });
  const copy = await keys.dump(Object.values(keys.of(id, 0)));
  const lost = await till.buyAll(id, buyers(2, 'lost'), { awaitCommit: false });
  expect(lost.map(({ code }) => code)).toEqual(['accepted', 'accepted']);
  await keys.restore(Object.values(keys.of(id, 0)), copy);
  await shop.service.change(id, { action: 'close' }, BY);
  const sync = await shop.startSync();
  // Nobody has had the sale until now: it is free before sync takes it, and again when sync has committed its orders.
  await until(() => sync.seen.orders === 2, { what: 'the kept orders are committed' });
  await released(shop, id);
  expect(sync.seen.losses).toEqual([]);
  // The node's connection breaks, as it does when a server has lost data.
  await keys.redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await rebuilt(sync);
  expect(sync.seen.losses).toEqual([{ saleId: id, segment: 0, orders: 2 }]);
  const named = () => query(shop.databaseUrl, 'SELECT buyer_id FROM lost_orders ORDER BY buyer_id');
  await until(async () => (await named()).length > 0, { what: 'the lost orders are named' });
  expect(await named()).toEqual([{ buyer_id: 'lost-0' }, { buyer_id: 'lost-1' }]);
});
