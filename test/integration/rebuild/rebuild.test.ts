/** A sale's state in the backend, built from Postgres: complete, once, and from any point at which it broke off. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  type BackendEvents,
  type LogPosition,
  NO_ENTRY,
  type Outcome,
} from '../../../src/engine/contract.ts';
import { StaleGeneration } from '../../../src/engine/errors.ts';
import { MemoryBackend } from '../../../src/engine/memory/memory-backend.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { changeOrder } from '../../../src/orders/order-changes.ts';
import { applyReturns } from '../../../src/orders/returns.ts';
import { rows } from '../../../src/postgres/database.ts';
import { holdingPages } from '../../../src/rebuild/load.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { readSale } from '../../../src/sales/sale-rows.ts';
import { applyBatch, GuardRefused } from '../../../src/sync/apply/apply.ts';
import { applyEach } from '../../../src/sync/apply/apply-each.ts';
import { batchOf } from '../../../src/sync/apply/batch.ts';
import { BY } from '../../support/author.ts';
import { breaker, intercept, stallAt } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { redisAdminUrl, until } from '../../support/fixtures.ts';
import { gate } from '../../support/gate.ts';
import { afterStatement } from '../../support/postgres/watched-statements.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';
import { expectKept, expectWithinLimit, ordersOf, promisesOf, unitsSold } from '../../support/shop/truth.ts';

let shop: Shop;

beforeEach(async () => {
  shop = await Shop.open();
});

afterEach(() => shop[Symbol.asyncDispose]());

/** The state in which a node without Redis restarts: nothing in memory, everything in Postgres. */
async function restart() {
  const backend = new MemoryBackend({ maxLogOrders: 1_000_000 });
  const sync = await shop.startSync({ backend });
  await sync.ready;
  const till = await shop.startEngine({ backend });
  return { backend, sync, till };
}

async function left(saleId: string): Promise<number[]> {
  const { segments, generation } = await shop.service.show(saleId);
  const snapshot = await shop.backend.sales.snapshot(saleId, segments, generation);
  return snapshot.map(({ counters }) => counters?.left ?? -1);
}

describe('a fresh backend gets from Postgres', () => {
  test('the stock and buyers of a sale with a limit of one: the same key gives the same order', async () => {
    const sale = await shop.sell({ stock: 10, segments: 4 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const sold = await Promise.all(
      buyers(6).map((buyer) => till.buy(sale.id, buyer, { key: `key of ${buyer}`.replaceAll(' ', '-') })),
    );
    expect(sold.map(({ code }) => code)).toEqual(Array(6).fill('committed'));
    await sync.stop();

    const again = await restart();
    const orderIds = sold.map((outcome) => ('orderId' in outcome ? outcome.orderId : ''));
    const repeated = buyers(6).map((buyer) => again.till.buy(sale.id, buyer, { key: `key-of-${buyer}` }));
    expect(await Promise.all(repeated)).toEqual(sold);
    expect(await again.till.buyAll(sale.id, buyers(6))).toEqual(
      orderIds.map((id) => ({ code: 'limit_reached', limit: 1, orderIds: [id] })),
    );
    const others = await again.till.buyAll(sale.id, buyers(10, 'other'));
    expect(others.filter(({ code }) => code === 'committed')).toHaveLength(4);
    expect(others.filter(({ code }) => code === 'sold_out')).toHaveLength(6);
    expect(unitsSold(await ordersOf(shop.databaseUrl, sale.id))).toBe(10);
  });

  test('every order of a buyer in a sale with a limit of five, and sells the rest', async () => {
    const sale = await shop.sell({ stock: 20, segments: 4, perBuyerLimit: 5 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    for (const quantity of [1, 2]) await till.buy(sale.id, 'anna', { quantity, key: `k${quantity}` });
    await till.buy(sale.id, 'ben', { quantity: 5 });
    await sync.stop();

    const again = await restart();
    expect(await again.till.buy(sale.id, 'anna', { quantity: 3, key: 'k2' })).toMatchObject({
      code: 'idempotency_mismatch',
    });
    expect(await again.till.buy(sale.id, 'anna', { quantity: 3 })).toMatchObject({ code: 'limit_reached' });
    expect(await again.till.buy(sale.id, 'ben')).toMatchObject({ code: 'limit_reached' });
    expect(await again.till.buy(sale.id, 'anna', { quantity: 2 })).toMatchObject({ code: 'committed' });
    expectWithinLimit(await ordersOf(shop.databaseUrl, sale.id), 5);
  });

  test('paused sales as paused, closed ones as closed', async () => {
    const [paused, closed] = [await shop.sell({ stock: 5 }), await shop.sell({ stock: 5 })];
    await shop.service.change(paused.id, { action: 'pause' }, BY);
    await shop.service.change(closed.id, { action: 'close' }, BY);
    const { till } = await restart();
    expect((await till.buy(paused.id, 'anna')).code).toBe('paused');
    // A closed sale is built last, and the start does not wait for it.
    await until(async () => (await till.buy(closed.id, 'anna')).code === 'ended', {
      what: 'the closed sale is there',
    });
  });

  test.each([1, 5])('holdings that fill more than a page, with a limit of %i', async (perBuyerLimit) => {
    const ordersEach = perBuyerLimit === 1 ? 1 : 3;
    const holders = 12_000 / ordersEach;
    const stock = holders * ordersEach + 100;
    const sale = await shop.sell({ stock, segments: 8, perBuyerLimit });
    await shop.db.raw(
      `WITH sold AS (
         INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer)
         SELECT b * 10 + n, ?, 'holder-' || b, 1, ? FROM generate_series(1, ?) AS b, generate_series(1, ?) AS n
         RETURNING quantity)
       UPDATE sales SET stock = stock - (SELECT sum(quantity) FROM sold),
         live_orders = (SELECT count(*) FROM sold) WHERE id = ?`,
      [sale.id, perBuyerLimit === 1, holders, ordersEach, sale.id],
    );
    const report = await rebuildSale(shop.db, shop.backend, sale.id);
    expect(report).toMatchObject({ generation: 2, loadedBuyers: holders });
    expect((await left(sale.id)).reduce((sum, units) => sum + units, 0)).toBe(100);

    const till = await shop.startEngine();
    await shop.startSync();
    const everySeventh = Array.from({ length: Math.floor(holders / 7) }, (_, i) => `holder-${i * 7 + 1}`);
    const quantity = perBuyerLimit - ordersEach + 1;
    const answers = await till.buyAll(sale.id, everySeventh, { quantity });
    expect([...new Set(answers.map(({ code }) => code))]).toEqual(['limit_reached']);
    expect(answers[0]).toMatchObject({ orderIds: Array.from({ length: ordersEach }, (_, n) => `${11 + n}`) });
    expect((await shop.service.verify(sale.id)).ok).toBe(true);
  });
});

describe('an order that is returned during a rebuild', () => {
  /** Cancels orders as the product does, in one transaction. */
  async function giveBack(saleId: string, buyerId: string): Promise<void> {
    await shop.db.transaction(async (trx) => {
      const [order] = await rows<{ order_id: string }>(
        trx,
        `UPDATE orders SET status = 'cancelled' WHERE sale_id = ? AND buyer_id = ? RETURNING order_id::text`,
        [saleId, buyerId],
      );
      await trx.raw(
        `WITH returned AS (UPDATE sales SET stock = stock + 1, live_orders = live_orders - 1 WHERE id = ?
           RETURNING id, generation)
         INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, generation)
         SELECT ?, id, ?, 1, 'cancelled', generation FROM returned`,
        [saleId, order!.order_id, buyerId],
      );
    });
  }

  test.each(['sales.loadSegment', 'sales.loadHoldings', 'sales.removeSegments', 'sales.publish'])(
    'before %s comes back once, and its buyer may buy again',
    async (step) => {
      const sale = await shop.sell({ stock: 6, segments: 2 });
      const sync = await shop.startSync();
      const till = await shop.startEngine();
      const names = buyers(5);
      await till.buyAll(sale.id, names);
      await sync.stop();
      let given = false;
      const backend = intercept(shop.backend, async (call) => {
        if (call !== step || given) return;
        given = true;
        await giveBack(sale.id, names[0]!);
      });
      await rebuildSale(shop.db, backend, sale.id);
      await applyReturns(shop.db, shop.backend, sale.id);
      expect((await left(sale.id)).reduce((sum, units) => sum + units, 0)).toBe(2);
      await shop.startSync();
      const again = await shop.startEngine();
      expect(await again.buyAll(sale.id, names)).toMatchObject([
        { code: 'committed' },
        ...Array(4).fill({ code: 'limit_reached' }),
      ]);
      expect((await shop.service.verify(sale.id)).ok).toBe(true);
    },
  );

  test('one after the other, before, after and behind the read of returns: all units come back', async () => {
    const sale = await shop.sell({ stock: 6, segments: 2, perBuyerLimit: 3 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const sold = [];
    for (let i = 0; i < 3; i++) sold.push(await till.buy(sale.id, 'anna'));
    await sync.stop();
    const orders = shop.orders(till.take);
    const toCancel = sold.map((outcome) => ('orderId' in outcome ? outcome.orderId : ''));
    const cancelNext = async () => {
      expect(await orders.changeOrder(toCancel.shift()!, { kind: 'cancel' }, BY)).toMatchObject({
        code: 'done',
      });
    };
    const backend = intercept(shop.backend, async (call) => {
      if (call === 'sales.loadSegment' && toCancel.length === 3) await cancelNext();
      if (call === 'sales.publish') await cancelNext();
    });
    const db = afterStatement(shop.db, /FROM stock_returns r JOIN orders/, cancelNext);
    await rebuildSale(db, backend, sale.id);
    await applyReturns(shop.db, shop.backend, sale.id);
    expect(toCancel).toEqual([]);
    expect((await left(sale.id)).reduce((sum, units) => sum + units, 0)).toBe(6);
    expect((await shop.service.verify(sale.id)).ok).toBe(true);
  });

  test('comes back even if another process loads the same generation, and writes the buyer’s page last', async () => {
    const sale = await shop.sell({ stock: 6, segments: 2, perBuyerLimit: 3 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const sold = await till.buy(sale.id, 'anna');
    await till.buy(sale.id, 'anna');
    await sync.stop();
    const orders = shop.orders(till.take);
    const backend = intercept(shop.backend, async (call) => {
      if (call !== 'sales.publish') return;
      const orderId = 'orderId' in sold ? sold.orderId : '';
      expect(await orders.changeOrder(orderId, { kind: 'cancel' }, BY)).toMatchObject({ code: 'done' });
      const row = (await readSale(shop.db, sale.id))!;
      for await (const page of holdingPages(shop.db, row.sale, '', row.generation)) {
        const segment = homeSegment('anna', row.sale.segments);
        const ref = { saleId: sale.id, segment, generation: row.generation };
        await shop.backend.sales.loadHoldings(ref, page);
      }
    });
    await rebuildSale(shop.db, backend, sale.id);
    await applyReturns(shop.db, shop.backend, sale.id);
    expect((await left(sale.id)).reduce((sum, units) => sum + units, 0)).toBe(5);
    expect((await shop.service.verify(sale.id)).ok).toBe(true);
  });
});

test('a buyer’s orders are loaded in the order of their ids, wherever their rows are', async () => {
  const sale = await shop.sell({ stock: 10, segments: 1, perBuyerLimit: 3 });
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  for (let nth = 1; nth <= 3; nth++) await till.buy(sale.id, 'anna');
  const ids = [...(await ordersOf(shop.databaseUrl, sale.id)).keys()];
  await sync.stop();
  // Its row goes behind the others, in the table and in the indexes.
  const paid = await shop.orders(till.take).changeOrder(ids[0]!, { kind: 'pay', payType: 'card' }, BY);
  expect(paid).toMatchObject({ code: 'done' });
  await rebuildSale(shop.db, shop.backend, sale.id);
  await until(async () => (await till.buy(sale.id, 'anna')).code === 'limit_reached', {
    what: 'the engine knows the new generation',
  });
  expect(await till.buy(sale.id, 'anna')).toMatchObject({ code: 'limit_reached', orderIds: ids });
});

describe('orders that the logs still hold', () => {
  test('are written to Postgres before the sale is rebuilt', async () => {
    const sale = await shop.sell({ stock: 10, segments: 4 });
    const till = await shop.startEngine();
    const answers = await till.buyAll(sale.id, buyers(8), { awaitCommit: false });
    expect(answers.map(({ code }) => code)).toEqual(Array(8).fill('accepted'));
    const report = await rebuildSale(shop.db, shop.backend, sale.id);
    expect(report).toMatchObject({ generation: 2, salvagedOrders: 8, loadedBuyers: 8 });
    const orders = await ordersOf(shop.databaseUrl, sale.id);
    expect(unitsSold(orders)).toBe(8);
    expect(await left(sale.id)).toEqual([1, 1, 0, 0]);
  });

  test('are written with their notes, those that Postgres refuses too', async () => {
    const sale = await shop.sell({ stock: 3, segments: 1 });
    await shop.db.raw('UPDATE sales SET stock = 2');
    const till = await shop.startEngine();
    const note = (reference: string) => JSON.stringify({ reference, metadata: { of: reference } });
    for (const buyer of ['anna', 'ben', 'cleo'])
      await till.buy(sale.id, buyer, { awaitCommit: false, ...(buyer !== 'ben' && { note: note(buyer) }) });
    await rebuildSale(shop.db, shop.backend, sale.id);
    const stored = await rows(
      shop.db,
      'SELECT buyer_id, status, reference, metadata FROM orders ORDER BY buyer_id',
    );
    expect(stored).toEqual([
      { buyer_id: 'anna', status: 'unpaid', reference: 'anna', metadata: { of: 'anna' } },
      { buyer_id: 'ben', status: 'unpaid', reference: null, metadata: null },
      { buyer_id: 'cleo', status: 'rejected', reference: 'cleo', metadata: { of: 'cleo' } },
    ]);
  });

  test('are written even if the segment itself is missing', async () => {
    const sale = await shop.sell({ stock: 10, segments: 2 });
    const till = await shop.startEngine();
    await till.buyAll(sale.id, buyers(8), { awaitCommit: false });
    await deleteKey(`{${sale.id}:0}:segment`);
    expect(await rebuildSale(shop.db, shop.backend, sale.id)).toMatchObject({ salvagedOrders: 8 });
    expect(unitsSold(await ordersOf(shop.databaseUrl, sale.id))).toBe(8);
  });

  test('are not counted as lost while a sync applies what it has read before', async () => {
    const sale = await shop.sell({ stock: 20, segments: 1 });
    const till = await shop.startEngine();
    for (const buyer of buyers(6)) await till.buy(sale.id, buyer, { awaitCommit: false });
    const position = { saleId: sale.id, segment: 0, generation: 1, seq: 0, tail: '' };
    const [read] = await shop.backend.log.readLog([position], 3);
    const batch = batchOf([read!], 1_000);
    let reads = 0;
    const backend = intercept(shop.backend, async (call) => {
      if (call !== 'log.readLog' || ++reads !== 2) return;
      // All is salvaged: the slower one finds its orders there, and moves the cursor behind them.
      await expect(applyBatch(shop.db, batch)).rejects.toThrow(GuardRefused);
      expect((await applyEach(shop.db, batch)).size).toBe(0);
    });
    expect(await rebuildSale(shop.db, backend, sale.id)).toMatchObject({ salvagedOrders: 6 });
    expect(await rows(shop.db, 'SELECT * FROM sale_losses')).toEqual([]);
    expect(await shop.service.verify(sale.id)).toMatchObject({ ok: true, committedOrders: 6 });
  });

  test('are not counted as lost if one of them has ended before, and its node has sent it again', async () => {
    const sale = await shop.sell({ stock: 10, segments: 1 });
    const till = await shop.startEngine();
    const sync = await shop.startSync();
    const bought = await till.buy(sale.id, 'anna');
    await sync.stop();
    const [orderId] = promisesOf([bought], ['anna']).map((promise) => promise.orderId);
    await changeOrder(shop.db, { orderId: orderId!, kind: 'cancel', payType: undefined, by: 'anna' });
    await applyReturns(shop.db, shop.backend, sale.id);
    // Another lane, to which the reply was lost: the buyer's record does not show the first take any more.
    const again = { orderId: orderId!, buyerId: 'anna', quantity: 1, key: '' };
    const attempt = { lane: 9, ticket: 1, answeredTicket: 0, newest: NO_ENTRY, orders: [again] };
    const taken = await shop.backend.takes.take({
      ...{ saleId: sale.id, segment: 0, generation: 1 },
      ...attempt,
    });
    expect(taken).toMatchObject({ status: 'served', results: [{ kind: 'taken' }] });
    await till.buy(sale.id, 'ben', { awaitCommit: false });
    expect(await rebuildSale(shop.db, shop.backend, sale.id)).toMatchObject({ salvagedOrders: 1 });
    expect(await rows(shop.db, 'SELECT segment, orders FROM sale_losses')).toEqual([]);
    expect(await left(sale.id)).toEqual([9]);
  });
});

async function deleteKey(name: string): Promise<void> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(redisAdminUrl());
  expect(await redis.del(shop.keyPrefix + name)).toBe(1);
  await redis.quit();
}

describe('two rebuilds at once', () => {
  test('one wins, the other ends with StaleGeneration', async () => {
    const sale = await shop.sell({ stock: 10, segments: 4 });
    let arrived = 0;
    const { open: bothAreHere, opened: barrier } = gate();
    const meeting = intercept(shop.backend, async (call) => {
      if (call !== 'sales.freeze') return;
      if (++arrived === 2) bothAreHere();
      await barrier;
    });
    const ends = await Promise.allSettled([
      rebuildSale(shop.db, meeting, sale.id),
      rebuildSale(shop.db, meeting, sale.id),
    ]);
    expect(ends.filter((end) => end.status === 'fulfilled')).toMatchObject([{ value: { generation: 2 } }]);
    expect(ends.filter((end) => end.status === 'rejected')).toMatchObject([
      { reason: expect.any(StaleGeneration) },
    ]);
    expect((await shop.service.verify(sale.id)).ok).toBe(true);
  });

  test.each([
    ['sales.loadSegment', 'the other begins anew', 3],
    ['sales.loadHoldings', 'the other goes on in its place', 2],
    ['sales.publish', 'the other goes on in its place', 2],
  ])('one that stalled before %s changes nothing when it continues: %s', async (step, _, generation) => {
    const sale = await shop.sell({ stock: 10, segments: 4 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    await till.buyAll(sale.id, buyers(3));
    await sync.stop();

    const { stalled, goOn, before } = stallAt(step);
    const first = rebuildSale(shop.db, intercept(shop.backend, before), sale.id).catch((error) => error);
    await stalled;
    expect(await rebuildSale(shop.db, shop.backend, sale.id)).toMatchObject({ generation });
    await shop.startSync();
    await buysAgain(till, sale.id, 'anna');
    goOn();
    expect(await first).toBeInstanceOf(StaleGeneration);
    expect((await till.buyAll(sale.id, buyers(7, 'late'))).map(({ code }) => code).sort()).toEqual([
      ...Array(6).fill('committed'),
      'sold_out',
    ]);
    expect((await shop.service.verify(sale.id)).ok).toBe(true);
  });
});

/** A buyer who was refused before this node learned of the new generation asks again. */
async function buysAgain(till: Till, saleId: string, buyerId: string): Promise<Outcome> {
  let outcome: Outcome;
  await until(
    async () => {
      outcome = await till.buy(saleId, buyerId);
      return outcome.code === 'committed';
    },
    { what: 'the sale sells again' },
  );
  return outcome!;
}

describe('a rebuild that broke off', () => {
  test.each(['sales.freeze', 'log.readLog', 'sales.loadSegment', 'sales.loadHoldings', 'sales.publish'])(
    'before %s is begun again by the next sweep',
    async (step) => {
      const sale = await shop.sell({ stock: 10, segments: 4 });
      const till = await shop.startEngine();
      const sync = await shop.startSync();
      const sold = await till.buyAll(sale.id, buyers(3));
      await sync.stop();
      const accepted = await till.buyAll(sale.id, buyers(2, 'accepted'), { awaitCommit: false });

      const { before, hits } = breaker(step);
      await expect(rebuildSale(shop.db, intercept(shop.backend, before), sale.id)).rejects.toThrow(step);
      expect(hits).toContain(step);

      const healer = await shop.startSync();
      await healer.ready;
      const late = await buysAgain(till, sale.id, 'late');
      const orders = await ordersOf(shop.databaseUrl, sale.id);
      const promised = promisesOf(
        [...sold, ...accepted, late],
        [...buyers(3), ...buyers(2, 'accepted'), 'late'],
      );
      expect(promised).toHaveLength(6);
      expectKept(promised, orders);
      expect(await shop.service.verify(sale.id)).toMatchObject({ ok: true, committedOrders: 6 });
      expect(healer.seen.breaks).toEqual([]);
      expect(await rows(shop.db, 'SELECT stock FROM sales')).toEqual([{ stock: '4' }]);
    },
  );

  test('in the middle of its salvage: the next one does not count saved orders as lost', async () => {
    const sale = await shop.sell({ stock: 10, segments: 2 });
    const till = await shop.startEngine();
    const accepted = await till.buyAll(sale.id, buyers(8), { awaitCommit: false });
    const backend = intercept(shop.backend, (call, [positions]) => {
      const isSecondLog = call === 'log.readLog' && (positions as LogPosition[])[0]!.segment === 1;
      if (isSecondLog) throw new Error('the connection is gone');
    });
    await expect(rebuildSale(shop.db, backend, sale.id)).rejects.toThrow('the connection is gone');
    const saved = (await ordersOf(shop.databaseUrl, sale.id)).size;
    expect(saved).toBeGreaterThan(0);
    expect(saved).toBeLessThan(8);

    const healer = await shop.startSync();
    await healer.ready;
    expectKept(promisesOf(accepted, buyers(8)), await ordersOf(shop.databaseUrl, sale.id));
    expect(healer.seen.rebuilds).toMatchObject([{ salvagedOrders: 8 - saved }]);
    expect(healer.seen.losses).toEqual([]);
    expect(await shop.service.verify(sale.id)).toMatchObject({ ok: true, committedOrders: 8 });
  });

  test('after its salvage: orders refused there are still reported, once', async () => {
    const sale = await shop.sell({ stock: 10, segments: 2 });
    const till = await shop.startEngine();
    await till.buyAll(sale.id, buyers(8), { awaitCommit: false });
    await shop.db.raw('UPDATE sales SET stock = 5');
    const { before, repair } = breaker('sales.loadSegment');
    await using redis = new RedisKeys(shop);
    await redis.redis.del(redis.sale(sale.id));
    const sync = await shop.startSync({ backend: intercept(shop.backend, before) });
    await until(() => sync.seen.failures.length > 0, { what: 'the rebuild has failed' });
    repair();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(sync.seen.rejections.map(({ reason }) => reason)).toEqual(Array(3).fill('stock'));
    expect(await shop.service.verify(sale.id)).toMatchObject({ rejectedOrders: 3, committedOrders: 5 });
  });
});

describe('a rebuild that takes long', () => {
  /** A gate before a call of the backend: shows the calls that have reached it, and can be opened. */
  function gateAt(gated: string) {
    const arrived: string[] = [];
    const { open, opened } = gate();
    const before = (call: string, [saleId]: readonly unknown[]) => {
      if (call !== gated) return undefined;
      arrived.push(saleId as string);
      return opened;
    };
    return { arrived, before, open: () => open() };
  }

  const loseRecord = (saleId: string) => deleteKey(`{${saleId}}:sale`);

  test('because its row is locked: other sales sell and commit, and no other process rebuilds it', async () => {
    const [lost, other] = [await shop.sell({ stock: 10 }), await shop.sell({ stock: 10 })];
    const { arrived, before, open } = gateAt('sales.freeze');
    open();
    const sync = await shop.startSync({ backend: intercept(shop.backend, before) });
    const till = await shop.startEngine();
    const sold = await till.buyAll(lost.id, buyers(3));
    await using row = await shop.lockRow(lost.id);
    await loseRecord(lost.id);
    await until(() => arrived.includes(lost.id), { what: 'the rebuild has begun' });
    const { sweeps } = sync.seen;
    for (const buyer of buyers(3)) expect((await till.buy(other.id, buyer)).code).toBe('committed');
    await until(() => sync.seen.sweeps > sweeps + 1, { what: 'the sweep goes on' });
    expect((await till.buy(other.id, 'late')).code).toBe('committed');
    expect(await shop.isUnlocked(lost.id)).toBe(false);
    expect(arrived).toEqual([lost.id]);
    expect(sync.seen.rebuilds).toEqual([]);

    await row.unlock();
    await buysAgain(till, lost.id, 'late');
    expect(sync.seen.rebuilds).toMatchObject([{ saleId: lost.id, loadedBuyers: 3 }]);
    expectKept(promisesOf(sold, buyers(3)), await ordersOf(shop.databaseUrl, lost.id));
    for (const { id } of [lost, other]) expect(await shop.service.verify(id)).toMatchObject({ ok: true });
    expect(sync.seen.crashes).toEqual([]);
  });

  test('leaves room for one more; others wait, and if sync stops first, the next sync rebuilds them', async () => {
    const lost = [];
    for (let i = 0; i < 3; i++) lost.push((await shop.sell({ stock: 10 })).id);
    const other = await shop.sell({ stock: 10 });
    const { arrived, before, open } = gateAt('sales.freeze');
    let stopping = false;
    const subscribe = async (events: BackendEvents) => {
      const unsubscribe = await shop.backend.subscribe(events);
      return async () => {
        await unsubscribe();
        stopping = true;
      };
    };
    const sync = await shop.startSync({ backend: { ...intercept(shop.backend, before), subscribe } });
    await sync.ready;
    for (const id of lost) await loseRecord(id);
    await until(() => arrived.length === 2, { what: 'two rebuilds have begun' });
    const { sweeps } = sync.seen;
    await until(() => sync.seen.sweeps > sweeps + 1, { what: 'all three are found' });
    const till = await shop.startEngine();
    expect((await till.buy(other.id, 'anna')).code).toBe('committed');
    expect(arrived).toHaveLength(2);

    const stopped = sync.stop();
    // Sync gives up its subscription first. A rebuild that ended before that would make room for the third.
    await until(() => stopping, { what: 'sync stops' });
    open();
    await stopped;
    expect(sync.seen.rebuilds.map(({ saleId }) => saleId).sort()).toEqual([...arrived].sort());
    expect(arrived).toHaveLength(2);
    const next = await shop.startSync();
    await next.ready;
    expect(next.seen.rebuilds.map(({ saleId }) => saleId)).toEqual(
      lost.filter((id) => !arrived.includes(id)),
    );
    for (const id of lost) expect(await shop.service.verify(id)).toMatchObject({ ok: true });
  });

  test('and was changed by an operator in the middle of its publication keeps the change, although the process dies then', async () => {
    const { id } = await shop.sell({ stock: 10, title: 'Old' });
    await loseRecord(id);
    const { sales } = shop.backend;
    const publish = sales.publish.bind(sales);
    let isEdited = false;
    // Once the segments are published, changes are carried out: their record is written before that of the publication.
    const steps = sales as unknown as { applyToSegments(...args: unknown[]): Promise<void> };
    const apply = steps.applyToSegments.bind(sales);
    vi.spyOn(steps, 'applyToSegments').mockImplementationOnce(async (...args) => {
      await apply(...args);
      await shop.service.change(id, { action: 'edit', title: 'New' }, BY);
      isEdited = true;
    });
    vi.spyOn(sales, 'publish').mockImplementationOnce(async (record) => {
      await publish(record);
      throw new Error('the process dies');
    });
    await expect(rebuildSale(shop.db, shop.backend, id)).rejects.toThrow('the process dies');
    expect(isEdited).toBe(true);
    expect(await shop.backend.sales.read(id)).toMatchObject({ sale: { title: 'New' } });
    expect((await shop.changesOf(id))[0]).toMatchObject({ action: 'edit', applied: true });
  });

  test('delays the start of a node, which is ready when its sales are', async () => {
    const sale = await shop.sell({ stock: 10 });
    await loseRecord(sale.id);
    const { arrived, before, open } = gateAt('sales.publish');
    const sync = await shop.startSync({ backend: intercept(shop.backend, before) });
    let ready = false;
    void sync.ready.then(() => {
      ready = true;
    });
    await until(() => arrived.length === 1 && sync.seen.sweeps > 1, { what: 'two sweeps are over' });
    expect(ready).toBe(false);
    open();
    await sync.ready;
    expect(await shop.service.verify(sale.id)).toMatchObject({ ok: true });
  });

  test('and fails is tried again; other sales sell meanwhile', async () => {
    const [lost, other] = [await shop.sell({ stock: 10 }), await shop.sell({ stock: 10 })];
    await loseRecord(lost.id);
    const { before, repair } = breaker('sales.publish');
    const sync = await shop.startSync({ backend: intercept(shop.backend, before) });
    const till = await shop.startEngine();
    await until(() => sync.seen.failures.length > 0, { what: 'a failure' });
    expect(sync.seen.failures[0]).toMatchObject({ saleId: lost.id });
    expect((await till.buy(other.id, 'anna')).code).toBe('committed');
    await until(() => sync.seen.failures.length > 1, { what: 'another failure' });
    repair();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt' });
    expect(await shop.service.verify(lost.id)).toMatchObject({ ok: true });
    expect(sync.seen.crashes).toEqual([]);
  });
});
