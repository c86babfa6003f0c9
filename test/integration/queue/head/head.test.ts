/** The head of a queue offers free units to the places in their order, whatever happens to it. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { applyReturnsOf } from '../../../../src/orders/returns.ts';
import { type Database, openDatabase, rows } from '../../../../src/postgres/database.ts';
import { LocalLocks, PostgresLocks } from '../../../../src/postgres/sale-locks.ts';
import { acceptOffer } from '../../../../src/queue/offers.ts';
import { givePlaces, leaveQueue } from '../../../../src/queue/places.ts';
import { BY } from '../../../support/author.ts';
import { until } from '../../../support/fixtures.ts';
import { aged, kindsOf } from '../../../support/shop/orders.ts';
import { offered, placesOf, QUEUE, queued, states, untilStates } from '../../../support/shop/queue.ts';
import { Shop } from '../../../support/shop/shop.ts';
import type { Till } from '../../../support/shop/till.ts';

type Sold = Awaited<ReturnType<Shop['sell']>>;

describe.each(['redis', 'memory'] as const)('on %s', (backend) => {
  let shop: Shop;
  let till: Till;

  beforeEach(async () => {
    shop = await Shop.open({ backend });
    await shop.startSync();
    till = await shop.startEngine();
  });

  afterEach(() => shop[Symbol.asyncDispose]());

  const accept = (orderId: string, buyerId: string, quantity = 1) =>
    acceptOffer(shop.db, { orderId, buyerId, quantity });

  const balanced = async (saleId: string, committedOrders: number) =>
    expect(await shop.service.verify(saleId)).toMatchObject({ ok: true, findings: [], committedOrders });

  test('offers go to the first places, and nobody buys without one', async () => {
    const { id } = await shop.sell({ stock: 2, segments: 4, ...QUEUE });
    expect(await queued(shop, id, ['anna', 'bert', 'carl'])).toEqual([1, 2, 3]);
    expect(await till.buy(id, 'dora')).toEqual({ code: 'offer_required' });
    const head = shop.startHead(till.take);
    await untilStates(shop, id, { anna: 'offered', bert: 'offered' });
    expect(await states(shop, id)).toMatchObject({ carl: 'waiting' });
    await until(() => head.seen.offers === 2, { what: 'the head reports two offers' });
    expect(head.seen).toMatchObject({ failures: [], delays: [] });
    await balanced(id, 2);
  });

  test('an offer that is accepted is an order like any other, also if it is accepted twice', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE, payWithinSeconds: 900 });
    await queued(shop, id, ['anna']);
    shop.startHead(till.take);
    const orderId = await offered(shop, id, 'anna');
    expect(await accept(orderId, 'bert')).toMatchObject({ verdict: 'forbidden' });
    expect(await accept(orderId, 'anna', 2)).toMatchObject({ verdict: 'quantity' });
    expect(await states(shop, id)).toEqual({ anna: 'offered' });
    for (let i = 0; i < 2; i++)
      expect(await accept(orderId, 'anna')).toMatchObject({ verdict: 'done', order: { status: 'unpaid' } });
    expect(await states(shop, id)).toEqual({ anna: 'bought' });
    expect(await kindsOf(shop, orderId)).toEqual(['offered', 'committed']);
    const orders = shop.orders(till.take);
    expect(await orders.changeOrder(orderId, { kind: 'pay', payType: 'card' }, BY)).toMatchObject({
      code: 'done',
    });
  });

  test('an offer can’t be paid before it is accepted', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna']);
    shop.startHead(till.take);
    const orderId = await offered(shop, id, 'anna');
    const orders = shop.orders(till.take);
    expect(await orders.changeOrder(orderId, { kind: 'pay', payType: 'card' }, BY)).toEqual({
      code: 'wrong_status',
      orderStatus: 'offered',
    });
  });

  test('an offer that runs out goes to the next place, and can’t be accepted any more', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna', 'bert']);
    shop.startHead(till.take);
    shop.startExpiry();
    const orderId = await offered(shop, id, 'anna');
    await aged(shop, [orderId]);
    expect(await accept(orderId, 'anna')).toMatchObject({ verdict: 'late' });
    await untilStates(shop, id, { anna: 'lapsed', bert: 'offered' });
    expect(await accept(orderId, 'anna')).toMatchObject({ verdict: 'late' });
    expect(await kindsOf(shop, orderId)).toEqual(['offered', 'lapsed']);
    await balanced(id, 1);
  });

  test('a buyer that leaves gives its offer to the next one, and may come again at the end', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna', 'bert', 'carl']);
    shop.startHead(till.take);
    const orderId = await offered(shop, id, 'anna');
    expect(await leaveQueue(shop.db, id, 'bert')).toMatchObject({
      place: { state: 'left', reason: 'asked' },
      returned: undefined,
    });
    expect(await leaveQueue(shop.db, id, 'anna')).toMatchObject({
      place: { state: 'left' },
      returned: orderId,
    });
    await applyReturnsOf(shop.db, shop.backend, [orderId]);
    await untilStates(shop, id, { anna: 'left', bert: 'left', carl: 'offered' });
    expect(await leaveQueue(shop.db, id, 'anna')).toBeUndefined();
    expect(await queued(shop, id, ['anna'])).toEqual([4]);
    expect(await kindsOf(shop, orderId)).toEqual(['offered', 'declined']);
  });

  test('a buyer who has a place gets the same one again', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE, perBuyerLimit: 5 });
    await queued(shop, id, ['anna', 'bert'], 2);
    const again = await givePlaces(shop.db, id, [
      { buyerId: 'bert', quantity: 5 },
      { buyerId: 'carl', quantity: 1 },
    ]);
    expect(again.size).toBe(2);
    expect(again.get('bert')).toMatchObject({ number: 2, quantity: 2 });
    expect(again.get('carl')).toMatchObject({ number: 3, quantity: 1 });
  });

  test('a full queue gives no place, and the same place to those who have one', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE, maxWaiting: 2 });
    const wishes = ['anna', 'bert', 'carl'].map((buyerId) => ({ buyerId, quantity: 1 }));
    const given = await givePlaces(shop.db, id, wishes);
    expect([...given.keys()].sort()).toEqual(['anna', 'bert']);
    expect(await givePlaces(shop.db, id, wishes)).toEqual(given);
  });

  test.each([
    ['wait', { anna: 'offered', bert: 'waiting', carl: 'waiting' }, 3],
    ['less', { anna: 'offered', bert: 'offered', carl: 'waiting' }, 4],
    ['pass', { anna: 'offered', bert: 'waiting', carl: 'offered' }, 4],
  ] as const)('if too few units are free for the next place, fit %s decides', async (fit, wanted, sold) => {
    const { id } = await shop.sell({ stock: 4, segments: 2, ...QUEUE, fit, perBuyerLimit: 3 });
    await queued(shop, id, ['anna', 'bert'], 3);
    await queued(shop, id, ['carl']);
    const { seen } = shop.startHead(till.take);
    await untilStates(shop, id, wanted);
    await until(async () => (await shop.service.show(id)).committedUnits === sold, {
      what: `${sold} units are offered`,
    });
    expect(seen.failures).toEqual([]);
  });

  test('units of a top-up and of a cancelled order go to the next places', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna', 'bert', 'carl']);
    shop.startHead(till.take);
    const orderId = await offered(shop, id, 'anna');
    await accept(orderId, 'anna');
    await shop.service.change(id, { action: 'top-up', units: 1 }, BY);
    await untilStates(shop, id, { bert: 'offered', carl: 'waiting' });
    await shop.orders(till.take).changeOrder(orderId, { kind: 'cancel' }, BY);
    await untilStates(shop, id, { anna: 'bought', carl: 'offered' });
    await balanced(id, 2);
  });

  test('a buyer that already holds as many units as it may is passed over', async () => {
    const { id } = await shop.sell({ stock: 3, ...QUEUE });
    await queued(shop, id, ['anna', 'bert']);
    // Since it has its place, it has bought without one.
    await shop.service.change(id, { action: 'queue', queue: 'off' }, BY);
    expect(await till.buy(id, 'anna')).toMatchObject({ code: 'committed' });
    await shop.service.change(id, { action: 'queue', ...QUEUE }, BY);
    const { seen } = shop.startHead(till.take);
    await untilStates(shop, id, { anna: 'left', bert: 'offered' });
    await until(() => seen.limited === 1, { what: 'the head reports who is at the limit' });
    expect(seen.failures).toEqual([]);
  });

  test('two heads at the same time make each offer once, and in order', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 4, ...QUEUE });
    const names = Array.from({ length: 30 }, (_, i) => `b${i}`);
    await queued(shop, id, names);
    const heads = [shop.startHead(till.take), shop.startHead(till.take, { locks: new LocalLocks() })];
    await until(
      async () => Object.values(await states(shop, id)).filter((state) => state === 'offered').length === 20,
      {
        what: '20 offers',
      },
    );
    const found = await states(shop, id);
    expect(names.map((name) => found[name])).toEqual([
      ...Array(20).fill('offered'),
      ...Array(10).fill('waiting'),
    ]);
    expect(heads.flatMap(({ seen }) => seen.failures)).toEqual([]);
    const orderIds = (await placesOf(shop, id)).flatMap(({ orderId }) => orderId ?? []);
    expect(new Set(orderIds).size).toBe(20);
    await balanced(id, 20);
  });

  test('a queue that somebody else has locked holds up no other queue', async () => {
    const [held, other] = [await shop.sell({ stock: 1, ...QUEUE }), await shop.sell({ stock: 2, ...QUEUE })];
    await queued(shop, held.id, ['anna']);
    await queued(shop, other.id, ['bert']);
    await using row = await shop.lockQueue(held.id);
    const head = shop.startHead(till.take);
    await untilStates(shop, other.id, { bert: 'offered' });
    await queued(shop, other.id, ['carl']);
    await untilStates(shop, other.id, { carl: 'offered' });
    await row.unlock();
    await untilStates(shop, held.id, { anna: 'offered' });
    expect(head.seen).toMatchObject({ failures: [] });
  });

  test('many queues that somebody else has locked hold up no other queue', async () => {
    const sales = Array.from({ length: 5 }, () => shop.sell({ stock: 2, ...QUEUE }));
    const [last, other, ...locked] = (await Promise.all(sales)) as [Sold, Sold, ...Sold[]];
    for (const { id } of locked) await queued(shop, id, ['anna']);
    const [itsDb, holder] = [5, 4].map((maxConnections) =>
      openDatabase({ url: shop.databaseUrl, maxConnections }),
    ) as [Database, Database];
    const lock = async ({ id }: Sold) => {
      const trx = await holder.transaction();
      await trx.raw('SELECT 1 FROM queues WHERE sale_id = ? FOR UPDATE', [id]);
      return trx;
    };
    const held = await Promise.all(locked.map(lock));
    const head = shop.startHead(till.take, { db: itsDb });
    try {
      await queued(shop, other.id, ['bert']);
      await untilStates(shop, other.id, { bert: 'offered' });
      // The first ones may be waited for in this round.
      held.push(await lock(last));
      await queued(shop, other.id, ['carl']);
      await untilStates(shop, other.id, { carl: 'offered' });
      for (const { id } of locked) expect(await states(shop, id)).toEqual({ anna: 'waiting' });
    } finally {
      for (const trx of held) await trx.rollback();
    }
    for (const { id } of locked) await untilStates(shop, id, { anna: 'offered' });
    expect(head.seen).toMatchObject({ failures: [] });
    await head.stop();
    await Promise.all([itsDb.destroy(), holder.destroy()]);
  });

  test('a head whose connection for the lock has ended leaves the work to another one', async () => {
    const { id } = await shop.sell({ stock: 100, segments: 4, ...QUEUE });
    const names = Array.from({ length: 100 }, (_, i) => `b${i}`);
    await queued(shop, id, names);
    await rows(shop.db, 'UPDATE queues SET per_minute = 240 WHERE sale_id = ?', [id]);
    const locks = [new PostgresLocks(shop.databaseUrl), new PostgresLocks(shop.databaseUrl)];
    const heads = locks.map((own) => shop.startHead(till.take, { locks: own }));
    const offers = () => heads.map(({ seen }) => seen.offers);
    const offersOfAll = () => offers().reduce((sum, made) => sum + made, 0);
    await until(() => offersOfAll() > 0, { what: 'a head works' });
    const ended = await rows(
      shop.db,
      `SELECT pg_terminate_backend(pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
       WHERE l.locktype = 'advisory' AND d.datname = current_database()`,
    );
    expect(ended).toHaveLength(1);
    // The other head tries the lock twice a second.
    await delay(1_500);
    const before = offers();
    await until(() => offersOfAll() >= before[0]! + before[1]! + 6, { what: 'more offers' });
    expect(offers().filter((made, i) => made > before[i]!)).toHaveLength(1);
    expect(heads.flatMap(({ seen }) => seen.failures)).toEqual([]);
    await Promise.all(heads.map(({ stop }) => stop()));
    await Promise.all(locks.map((own) => own.close()));
  });

  test('while a sale is paused no offer is made, accepted or lost, and afterwards there is time again', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna', 'bert']);
    shop.startHead(till.take);
    const expiry = shop.startExpiry();
    const orderId = await offered(shop, id, 'anna');
    await shop.service.change(id, { action: 'pause' }, BY);
    await shop.service.change(id, { action: 'top-up', units: 1 }, BY);
    expect(await accept(orderId, 'anna')).toMatchObject({ verdict: 'paused' });
    await aged(shop, [orderId]);
    const { id: other } = await shop.sell({ stock: 1, payWithinSeconds: 1 });
    await till.buy(other, 'zoe');
    await until(() => expiry.orders === 1, { what: 'an order of another sale has expired' });
    expect(await states(shop, id)).toEqual({ anna: 'offered', bert: 'waiting' });
    expect(await accept(orderId, 'anna')).toMatchObject({ verdict: 'paused' });
    await shop.service.change(id, { action: 'resume' }, BY);
    expect(await accept(orderId, 'anna')).toMatchObject({ verdict: 'done' });
    await untilStates(shop, id, { bert: 'offered' });
  });

  test('offers of a paused sale stay also if its queue is turned off, and afterwards there is time again', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna']);
    shop.startHead(till.take);
    const orderId = await offered(shop, id, 'anna');
    await shop.service.change(id, { action: 'pause' }, BY);
    await shop.service.change(id, { action: 'queue', queue: 'off' }, BY);
    await aged(shop, [orderId]);
    const expiry = shop.startExpiry();
    const { id: other } = await shop.sell({ stock: 1, payWithinSeconds: 1 });
    await till.buy(other, 'zoe');
    await until(() => expiry.orders === 1, { what: 'an order of another sale has expired' });
    expect(await states(shop, id)).toEqual({ anna: 'offered' });
    await shop.service.change(id, { action: 'resume' }, BY);
    expect(await accept(orderId, 'anna')).toMatchObject({ verdict: 'done' });
  });

  test('when a paused sale is closed, its offers have time again, and its other places get none', async () => {
    const { id } = await shop.sell({ stock: 2, ...QUEUE });
    await queued(shop, id, ['anna', 'bert', 'carl']);
    shop.startHead(till.take);
    const expiry = shop.startExpiry();
    const orderIds = [await offered(shop, id, 'anna'), await offered(shop, id, 'bert')];
    await shop.service.change(id, { action: 'pause' }, BY);
    await aged(shop, orderIds);
    await shop.service.change(id, { action: 'close' }, BY);
    const { id: other } = await shop.sell({ stock: 1, payWithinSeconds: 1 });
    await till.buy(other, 'zoe');
    await until(() => expiry.orders > 0, { what: 'an order of another sale has expired' });
    expect(await accept(orderIds[0]!, 'anna')).toMatchObject({ verdict: 'done' });
    await shop.service.change(id, { action: 'close' }, BY);
    await aged(shop, orderIds.slice(1));
    await untilStates(shop, id, { anna: 'bought', bert: 'lapsed', carl: 'waiting' });
  });

  test('offers of a sale that is closed while it is open get no more time', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna']);
    shop.startHead(till.take);
    const orderId = await offered(shop, id, 'anna');
    await aged(shop, [orderId]);
    await shop.service.change(id, { action: 'close' }, BY);
    expect(await accept(orderId, 'anna')).toMatchObject({ verdict: 'late' });
  });

  test('a late payment overtakes nobody: the money is refunded', async () => {
    const { id } = await shop.sell({ stock: 1, payWithinSeconds: 600 });
    const outcome = await till.buy(id, 'anna');
    const orderId = 'orderId' in outcome ? outcome.orderId : '';
    await shop.service.change(id, { action: 'queue', ...QUEUE }, BY);
    await aged(shop, [orderId]);
    expect(await shop.orders(till.take).changeOrder(orderId, { kind: 'pay', payType: 'card' }, BY)).toEqual({
      code: 'expired',
      refundDue: true,
    });
    await queued(shop, id, ['bert']);
    shop.startHead(till.take);
    await untilStates(shop, id, { bert: 'offered' });
  });

  test('a queue that is turned off lets everybody buy, and its offers stay', async () => {
    const { id } = await shop.sell({ stock: 2, ...QUEUE });
    await queued(shop, id, ['anna']);
    shop.startHead(till.take);
    const orderId = await offered(shop, id, 'anna');
    await shop.service.change(id, { action: 'queue', queue: 'off' }, BY);
    expect(await till.buy(id, 'bert')).toMatchObject({ code: 'committed' });
    const late = await shop.startEngine();
    expect(await late.buy(id, 'carl')).toEqual({ code: 'sold_out' });
    expect(late.engine.asksForToken(id), 'a worker that has started since reads the token of an offer').toBe(
      true,
    );
    expect(await accept(orderId, 'anna')).toMatchObject({ verdict: 'done' });
    await balanced(id, 2);
  });

  test('before the window opens everybody gets a place, and nobody an offer', async () => {
    const startsAt = new Date(Date.now() + 3_600_000).toISOString();
    const { id } = await shop.sell({ stock: 1, ...QUEUE, startsAt });
    await queued(shop, id, ['anna', 'bert']);
    const { id: open } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, open, ['zoe']);
    shop.startHead(till.take);
    await untilStates(shop, open, { zoe: 'offered' });
    expect(await states(shop, id)).toEqual({ anna: 'waiting', bert: 'waiting' });
    await shop.service.change(id, { action: 'window', startsAt: Date.now() - 1 }, BY);
    await untilStates(shop, id, { anna: 'offered', bert: 'waiting' });
  });
});
