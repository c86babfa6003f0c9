/** What is left of an offer if a process dies halfway, or two do the same work. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { applyReturnsOf } from '../../../../src/orders/returns.ts';
import { acceptOffer, offerTo } from '../../../../src/queue/offers.ts';
import { leaveQueue, readPlaceOf } from '../../../../src/queue/places.ts';
import { BY } from '../../../support/author.ts';
import { until } from '../../../support/fixtures.ts';
import { RedisCluster } from '../../../support/servers/redis-cluster.ts';
import { aged } from '../../../support/shop/orders.ts';
import { offered, QUEUE, queued, states, untilStates } from '../../../support/shop/queue.ts';
import { Shop } from '../../../support/shop/shop.ts';

describe.each(['redis', 'memory', 'cluster'] as const)('on %s', (place) => {
  let cluster: RedisCluster | undefined;
  let shop: Shop;

  beforeAll(async () => {
    if (place === 'cluster') cluster = await RedisCluster.start();
  });

  afterAll(() => cluster?.[Symbol.asyncDispose]());

  beforeEach(async () => {
    shop = await Shop.open(
      cluster ? { redis: cluster.url } : { backend: place === 'memory' ? place : 'redis' },
    );
  });

  afterEach(() => shop[Symbol.asyncDispose]());

  const unitsTaken = async (saleId: string) => {
    const { stock, remaining } = await shop.service.show(saleId);
    return stock - (remaining ?? stock);
  };

  /** Sells a unit, which a head takes for anna while no sync commits it. */
  const takenForAnna = async () => {
    const { id } = await shop.sell({ stock: 2, ...QUEUE });
    await queued(shop, id, ['anna', 'bert']);
    const till = await shop.startEngine({ requestDeadlineMs: 500 });
    const anna = (await readPlaceOf(shop.db, id, 'anna'))!;
    const outcome = await till.take(offerTo(anna, 1));
    expect(['accepted', 'unknown']).toContain(outcome.code);
    expect(await unitsTaken(id)).toBe(1);
    return { id, till };
  };

  const verified = async (saleId: string) =>
    expect(await shop.service.verify(saleId)).toMatchObject({ ok: true, findings: [] });

  test('the head dies after the take: sync commits it, and the next head makes no second one', async () => {
    const { id, till } = await takenForAnna();
    await shop.startSync();
    const { seen } = shop.startHead(till.take);
    await untilStates(shop, id, { anna: 'offered', bert: 'offered' });
    expect(await unitsTaken(id)).toBe(2);
    expect(seen.failures).toEqual([]);
    await verified(id);
  });

  test('the buyer leaves before the commit: the order is refused, and its unit goes to another place', async () => {
    const { id, till } = await takenForAnna();
    expect(await leaveQueue(shop.db, id, 'anna')).toMatchObject({
      place: { state: 'left' },
      returned: undefined,
    });
    await shop.startSync();
    await until(async () => (await unitsTaken(id)) === 0, { what: 'the unit is back' });
    expect(await states(shop, id)).toEqual({ anna: 'left', bert: 'waiting' });
    await queued(shop, id, ['carl']);
    shop.startHead(till.take);
    await untilStates(shop, id, { bert: 'offered', carl: 'offered' });
    await verified(id);
  });

  test('a head that stalled takes again for a place whose offer has ended: the order is refused', async () => {
    const { id } = await shop.sell({ stock: 2, ...QUEUE });
    await queued(shop, id, ['anna']);
    await shop.startSync();
    const till = await shop.startEngine();
    const { stop } = shop.startHead(till.take);
    const stalled = (await readPlaceOf(shop.db, id, 'anna'))!;
    const orderId = await offered(shop, id, 'anna');
    await stop();
    await aged(shop, [orderId]);
    const expiry = shop.startExpiry();
    await until(() => expiry.orders === 1, { what: 'the offer has ended' });
    await applyReturnsOf(shop.db, shop.backend, [orderId]);
    await until(async () => (await unitsTaken(id)) === 0, { what: 'the unit is back' });
    expect(await till.take(offerTo(stalled, 1))).toMatchObject({ code: 'limit_reached' });
    await until(async () => (await unitsTaken(id)) === 0, { what: 'the second unit is back' });
    expect(await states(shop, id)).toEqual({ anna: 'lapsed' });
    await verified(id);
  });

  test('offers and places survive a resize and a recovery', async () => {
    const { id } = await shop.sell({ stock: 2, segments: 4, ...QUEUE });
    await queued(shop, id, ['anna', 'bert', 'carl']);
    await shop.startSync();
    const till = await shop.startEngine();
    shop.startHead(till.take);
    const orderId = await offered(shop, id, 'anna');
    await untilStates(shop, id, { bert: 'offered' });
    await shop.service.change(id, { action: 'resize', segments: 7 }, BY);
    await shop.service.recover(id);
    await until(async () => (await shop.service.recovery(id))?.state === 'done', {
      what: 'the sale is recovered',
    });
    expect(await states(shop, id)).toEqual({ anna: 'offered', bert: 'offered', carl: 'waiting' });
    expect(await acceptOffer(shop.db, { orderId, buyerId: 'anna', quantity: 1 })).toMatchObject({
      verdict: 'done',
    });
    expect(await leaveQueue(shop.db, id, 'bert')).toMatchObject({ place: { state: 'left' } });
    await untilStates(shop, id, { anna: 'bought', carl: 'offered' });
    await verified(id);
  });
});
