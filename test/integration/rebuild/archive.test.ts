/** A closed sale leaves the backend, from any point at which that broke off, and comes back with no copy of it. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { StaleGeneration, StockadeError } from '../../../src/engine/errors.ts';
import { SaleArchived, WrongState } from '../../../src/operations/sale-operations.ts';
import { Arrivals } from '../../../src/orders/arrivals.ts';
import { rows } from '../../../src/postgres/database.ts';
import { archiveSale } from '../../../src/rebuild/archive.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { BY } from '../../support/author.ts';
import { breaker, intercept, stallAt } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { expectKept, ordersOf, promisesOf } from '../../support/shop/truth.ts';

let shop: Shop;
let keys: RedisKeys;

beforeEach(async () => {
  shop = await Shop.open();
  keys = new RedisKeys(shop);
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

const archive = (saleId: string) => shop.service.change(saleId, { action: 'archive' }, BY);

/** All keys of the sale, even those that nobody should have left there. */
async function keysOf(saleId: string): Promise<string[]> {
  const found = await keys.redis.keys(`${shop.keyPrefix}*${saleId}*`);
  return found.filter((key) => !key.includes(':lock')).sort();
}

const onlyTombstone = (saleId: string) => [keys.sale(saleId)];

/** A sale of 20 units in 3 segments; four buyers have bought, two of them paid. Closed and drained. */
async function closedSale(spec: Record<string, unknown> = {}) {
  const { id } = await shop.sell({ stock: 20, segments: 3, ...spec });
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  const sold = await till.buyAll(id, buyers(4));
  const orderIds = sold.map((outcome) => ('orderId' in outcome ? outcome.orderId : ''));
  const orders = shop.orders(till.take);
  for (const orderId of orderIds.slice(0, 2)) {
    await orders.changeOrder(orderId, { kind: 'pay', payType: 'card' }, BY);
  }
  await shop.service.change(id, { action: 'close' }, BY);
  await until(() => shop.isUnlocked(id), { what: 'the closed sale is drained' });
  await sync.stop();
  return { id, till, orders, orderIds };
}

/** The process that made the change has had its time. */
const forsake = () => shop.db.raw("UPDATE stock_movements SET moved_at = moved_at - interval '1 minute'");

async function expectArchived(saleId: string): Promise<void> {
  expect(await keysOf(saleId)).toEqual(onlyTombstone(saleId));
  expect(await shop.backend.sales.read(saleId)).toBeUndefined();
  expect(await rows(shop.db, 'SELECT 1 FROM segment_cursors WHERE sale_id = ?', [saleId])).toEqual([]);
  expect((await shop.changesOf(saleId)).filter(({ applied }) => !applied)).toEqual([]);
  expect(await shop.service.verify(saleId)).toMatchObject({ ok: true, differences: [] });
}

describe('an archived sale', () => {
  test('is in Postgres alone: it can be shown and verified, and lists leave it out', async () => {
    const { id } = await closedSale();
    const before = await shop.service.show(id);
    const other = await shop.sell({ stock: 1 });
    const status = await archive(id);
    expect(status).toEqual({
      ...before,
      archivedAt: expect.any(String),
      generation: before.generation + 1,
      remaining: 16,
      state: 'closed',
    });
    await expectArchived(id);
    expect(await shop.changesOf(id)).toMatchObject([
      { action: 'close' },
      { action: 'archive', actor: BY.actor, reason: BY.reason, applied: true },
    ]);
    const idsOf = async (archived?: 'include' | 'only') =>
      (await shop.service.list({ archived })).sales.map((sale) => sale.id);
    expect(await idsOf()).toEqual([other.id]);
    expect(await idsOf('include')).toEqual([other.id, id]);
    expect(await idsOf('only')).toEqual([id]);
  });

  test('may be archived again, which changes nothing', async () => {
    const { id } = await closedSale();
    const first = await archive(id);
    expect(await archive(id)).toEqual(first);
    await expectArchived(id);
  });

  test('refuses all that needs its stock', async () => {
    const { id } = await closedSale();
    await archive(id);
    const changes = [
      { action: 'top-up', units: 1 },
      { action: 'withdraw', units: 1 },
      { action: 'resize', segments: 2 },
      { action: 'resume' },
      { action: 'close' },
      { action: 'edit', title: 'Other' },
      { action: 'window', endsAt: null },
    ] as const;
    for (const change of changes) {
      await expect(shop.service.change(id, change, BY), change.action).rejects.toThrow(SaleArchived);
    }
    await expect(shop.service.rebalance(id, { dryRun: true })).rejects.toThrow(SaleArchived);
    await expect(shop.service.recover(id)).rejects.toThrow(SaleArchived);
    await expectArchived(id);
  });

  test('has orders that still change, and expire: their units are back in Postgres at once', async () => {
    const { id, orders, orderIds } = await closedSale({ payWithinSeconds: 3_600 });
    await archive(id);
    const [paid, redeemed, cancelled, expired] = orderIds as [string, string, string, string];
    const done = { code: 'done' };
    expect(await orders.changeOrder(paid, { kind: 'refund' }, BY)).toMatchObject(done);
    expect(await orders.changeOrder(redeemed, { kind: 'redeem' }, BY)).toMatchObject(done);
    expect(await orders.changeOrder(cancelled, { kind: 'cancel' }, BY)).toMatchObject(done);
    await shop.db.raw('UPDATE orders SET expires_at = now() WHERE order_id = ?', [expired]);
    const expiry = shop.startExpiry();
    await until(() => expiry.orders === 1, { what: 'the unpaid order expires' });
    expect(expiry.failures).toEqual([]);
    expect(await shop.service.show(id)).toMatchObject({ remaining: 19, committedOrders: 1 });
    expect(await rows(shop.db, 'SELECT 1 FROM stock_returns WHERE applied_at IS NULL')).toEqual([]);
    const late = await orders.changeOrder(expired, { kind: 'pay', payType: 'card' }, BY);
    expect(late).toMatchObject({ code: 'expired', refundDue: true });
    await expectArchived(id);
  });

  test('has a late payment whose units were taken before: it is settled with them', async () => {
    const { id } = await shop.sell({ stock: 5, segments: 1, perBuyerLimit: 2 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const first = await till.buy(id, 'anna');
    const late = 'orderId' in first ? first.orderId : '';
    await shop.db.raw('UPDATE orders SET expires_at = now() WHERE order_id = ?', [late]);
    // The process dies after the take.
    const dying = shop.orders(async (purchase) => {
      expect((await till.take(purchase)).code).toBe('committed');
      return { code: 'unavailable' };
    });
    const pay = { kind: 'pay', payType: 'card' } as const;
    expect(await dying.changeOrder(late, pay, BY)).toEqual({ code: 'unavailable' });
    await shop.service.change(id, { action: 'close' }, BY);
    await until(() => archive(id), { what: 'the sale is archived' });
    await sync.stop();
    const orders = shop.orders(till.take);
    const paid = await orders.changeOrder(late, pay, BY);
    expect(paid).toMatchObject({ code: 'done', replaces: late, order: { status: 'paid' } });
    expect(await orders.changeOrder(late, pay, BY)).toEqual(paid);
    expect(await shop.service.show(id)).toMatchObject({ remaining: 4, committedOrders: 1 });
    await expectArchived(id);
  });

  test('is no sale for buyers, and keeps nobody waiting who asks for an order', async () => {
    const { id } = await closedSale();
    await archive(id);
    const till = await shop.startEngine();
    expect((await till.buy(id, 'anna')).code).toBe('unknown_sale');
    expect(await new Arrivals(shop.db, shop.backend).caughtUp()).toBe(true);
  });

  test('stays away when sync starts: a hint of it is forgotten', async () => {
    const { id } = await closedSale();
    await archive(id);
    const sync = await shop.startSync();
    await sync.ready;
    shop.backend.takes.hint({ saleId: id, segments: [0, 7], awaited: true });
    const sweeps = sync.seen.sweeps;
    await until(() => sync.seen.sweeps > sweeps + 2, { what: 'two more sweeps' });
    expect(await shop.isUnlocked(id)).toBe(true);
    expect(sync.seen).toMatchObject({ rebuilds: [], failures: [], crashes: [] });
    await expectArchived(id);
  });

  test('drops a resize that was not carried out', async () => {
    const { id } = await closedSale();
    await shop.db.raw(
      `INSERT INTO stock_movements (sale_id, units, reason, actor, action, detail, generation)
       VALUES (?, 0, '', 'otto', 'resize', '{"from":3,"to":9}', 1)`,
      [id],
    );
    await archive(id);
    await expectArchived(id);
  });
});

describe('archiving is refused', () => {
  test.each(['open', 'paused'] as const)('for a sale that is %s', async (state) => {
    const { id } = await shop.sell({ stock: 5 });
    if (state === 'paused') await shop.service.change(id, { action: 'pause' }, BY);
    await expect(archive(id)).rejects.toThrow(new WrongState(id, state, 'archived: close it first'));
    expect(await shop.service.show(id)).toMatchObject({ state, generation: 1, archivedAt: undefined });
  });

  test('while its logs hold orders', async () => {
    const { id } = await shop.sell({ stock: 5, segments: 1 });
    const till = await shop.startEngine();
    await till.buyAll(id, buyers(3), { awaitCommit: false });
    await shop.service.change(id, { action: 'close' }, BY);
    const refusal = archive(id);
    await expect(refusal).rejects.toThrow(StockadeError);
    await expect(refusal).rejects.toThrow('3 orders');
    expect(await shop.service.show(id)).toMatchObject({ generation: 1, remaining: 2 });
    await shop.startSync();
    await until(() => archive(id), { what: 'the logs are drained' });
    expect(await shop.service.show(id)).toMatchObject({ committedOrders: 3, remaining: 2 });
    await expectArchived(id);
  });

  test('while the sale is rebuilt, and when the backend lacks it', async () => {
    const { id } = await closedSale();
    await shop.locks.tryLock(`rebuild:${id}`);
    await expect(archive(id)).rejects.toThrow(StaleGeneration);
    await shop.locks.unlock(`rebuild:${id}`);
    await keys.redis.del(await keysOf(id));
    await expect(archive(id)).rejects.toThrow(StaleGeneration);
    expect(await shop.service.show(id)).toMatchObject({ generation: 1, archivedAt: undefined });
  });
});

describe('a process that dies while it archives', () => {
  const brokenAt = async (id: string, step: string) => {
    const { before, hits } = breaker(step);
    const stores = { db: shop.db, backend: intercept(shop.backend, before), locks: shop.locks };
    await expect(archiveSale(stores, id, BY)).rejects.toThrow(step);
    expect(hits).toHaveLength(1);
  };

  test.each(['sales.freeze', 'log.readLog'])(
    'before %s leaves a closed sale, which is rebuilt and can be archived',
    async (step) => {
      const { id } = await closedSale();
      await brokenAt(id, step);
      expect(await shop.service.show(id)).toMatchObject({ state: 'closed', archivedAt: undefined });
      const sync = await shop.startSync();
      await until(() => archive(id), { what: 'the sale can be archived' });
      await expectArchived(id);
      expect(sync.seen).toMatchObject({ losses: [], failures: [], crashes: [] });
    },
  );

  test.each(['nothing', 'some', 'all segments', 'everything'])(
    'after its transaction, with %s removed, leaves the rest to the reconciler',
    async (removed) => {
      const { id } = await closedSale();
      await brokenAt(id, 'sales.archive');
      expect(await shop.changesOf(id)).toMatchObject([{}, { action: 'archive', applied: false }]);
      expect(await shop.service.verify(id)).toMatchObject({
        ok: true,
        differences: [{ cause: 'change_pending' }],
      });
      const { generation } = await shop.service.show(id);
      if (removed === 'some') await keys.redis.del(Object.values(keys.of(id, 1)));
      if (removed === 'all segments') {
        await shop.backend.sales.removeSegments({ saleId: id, generation }, 0);
      }
      if (removed === 'everything') await shop.backend.sales.archive({ saleId: id, generation });
      await forsake();
      const sync = await shop.startSync();
      await until(async () => (await shop.changesOf(id)).every(({ applied }) => applied), {
        what: 'the reconciler has finished it',
      });
      await expectArchived(id);
      expect(sync.seen).toMatchObject({ losses: [], failures: [], crashes: [] });
      expect(await shop.changesOf(id)).toMatchObject([{}, { action: 'archive', actor: BY.actor }]);
    },
  );

  test('after its transaction, and the next request finishes it', async () => {
    const { id } = await closedSale();
    await brokenAt(id, 'sales.archive');
    await archive(id);
    await expectArchived(id);
    expect(await shop.changesOf(id)).toHaveLength(2);
  });

  test('after its transaction, and verify --repair finishes it', async () => {
    const { id } = await closedSale();
    await brokenAt(id, 'sales.archive');
    expect(await shop.service.verify(id, { repair: true })).toMatchObject({
      ok: true,
      repairs: [{ done: true }],
    });
    await expectArchived(id);
  });
});

describe('a rebuild that stalls while the sale is archived', () => {
  test.each(['sales.loadSegment', 'sales.loadHoldings', 'sales.publish'])(
    'before %s leaves nothing in the backend',
    async (step) => {
      const { id } = await closedSale();
      const { stalled, goOn, before } = stallAt(step);
      const first = rebuildSale(shop.db, intercept(shop.backend, before), id).catch((error) => error);
      await stalled;
      await rebuildSale(shop.db, shop.backend, id);
      await archive(id);
      goOn();
      expect(await first).toBeInstanceOf(StaleGeneration);
      await expectArchived(id);
    },
  );
});

test('a closed sale whose rebuild died before the publication is archived, and not published', async () => {
  const { id } = await closedSale();
  const { before } = breaker('sales.publish');
  await expect(rebuildSale(shop.db, intercept(shop.backend, before), id)).rejects.toThrow('sales.publish');
  expect(await archive(id)).toMatchObject({ archivedAt: expect.any(String), remaining: 16 });
  await expectArchived(id);
});

describe('a Redis that comes back from an older copy', () => {
  test('has an archived sale that sells again: its orders reach Postgres, and it leaves once more', async () => {
    const { id } = await shop.sell({ stock: 20, segments: 3 });
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const early = await till.buyAll(id, buyers(4));
    await sync.stop();
    const inLog = await till.buyAll(id, buyers(2, 'in-log'), { awaitCommit: false });
    const copied = await keysOf(id);
    const copy = await keys.dump(copied);
    const healer = await shop.startSync();
    await shop.service.change(id, { action: 'close' }, BY);
    await until(() => archive(id), { what: 'the sale is archived' });
    await healer.stop();

    await keys.restore(copied, copy);
    const later = await (await shop.startEngine()).buyAll(id, buyers(3, 'later'), { awaitCommit: false });
    expect(later.map(({ code }) => code)).toEqual(Array(3).fill('accepted'));
    expect(await shop.service.verify(id)).toMatchObject({ ok: false });
    const again = await shop.startSync();
    await until(async () => (await keysOf(id)).length === 1, { what: 'the sale has left again' });
    await until(() => again.seen.rebuilds.length === 1, { what: 'sync has said so' });
    expectKept(
      promisesOf(
        [...early, ...inLog, ...later],
        [...buyers(4), ...buyers(2, 'in-log'), ...buyers(3, 'later')],
      ),
      await ordersOf(shop.databaseUrl, id),
    );
    expect(again.seen.losses).toEqual([]);
    await expectArchived(id);
    expect(await shop.changesOf(id)).toMatchObject([
      { action: 'close' },
      { action: 'archive', actor: BY.actor },
      { action: 'archive', actor: 'stockade' },
    ]);
    expect(await shop.service.show(id)).toMatchObject({ remaining: 11, committedOrders: 9 });
  });

  test('while the process that archives dies: orders that it has sold since are saved', async () => {
    const { id } = await shop.sell({ stock: 9, segments: 2 });
    const copied = await keysOf(id);
    const copy = await keys.dump(copied);
    await shop.service.change(id, { action: 'close' }, BY);
    const { before } = breaker('sales.archive');
    const stores = { db: shop.db, backend: intercept(shop.backend, before), locks: shop.locks };
    await expect(archiveSale(stores, id, BY)).rejects.toThrow('sales.archive');
    await keys.restore(copied, copy);
    const till = await shop.startEngine();
    const sold = await till.buyAll(id, buyers(3), { awaitCommit: false });
    await forsake();
    await shop.startSync();
    await until(async () => (await shop.changesOf(id)).every(({ applied }) => applied), {
      what: 'the sale has left',
    });
    expectKept(promisesOf(sold, buyers(3)), await ordersOf(shop.databaseUrl, id));
    expect(await shop.service.show(id)).toMatchObject({ committedOrders: 3, remaining: 6 });
    await expectArchived(id);
  });

  test('has sold more than Postgres has left: the rest is rejected', async () => {
    const { id } = await shop.sell({ stock: 6, segments: 1 });
    const sync = await shop.startSync();
    const copied = await keysOf(id);
    const copy = await keys.dump(copied);
    const till = await shop.startEngine();
    await till.buyAll(id, buyers(5));
    await shop.service.change(id, { action: 'close' }, BY);
    await until(() => archive(id), { what: 'the sale is archived' });
    await sync.stop();
    await keys.restore(copied, copy);
    const later = await (await shop.startEngine()).buyAll(id, buyers(3, 'later'), { awaitCommit: false });
    expect(later.map(({ code }) => code)).toEqual(Array(3).fill('accepted'));
    const again = await shop.startSync();
    await until(async () => (await keysOf(id)).length === 1, { what: 'the sale has left again' });
    await until(() => again.seen.rebuilds.length === 1, { what: 'sync has said so' });
    expect(again.seen.rejections.map(({ reason }) => reason)).toEqual(['stock', 'stock']);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 6, rejectedOrders: 2 });
    expect(await rows(shop.db, 'SELECT 1 FROM stock_returns WHERE applied_at IS NULL')).toEqual([]);
  });
});

test('in the memory of a process, a sale is archived as well, and is not built at the next start', async () => {
  await using memory = await Shop.open({ backend: 'memory' });
  const { id } = await memory.sell({ stock: 5, segments: 2 });
  await memory.service.change(id, { action: 'close' }, BY);
  await memory.service.change(id, { action: 'archive' }, BY);
  expect(await memory.backend.sales.read(id)).toBeUndefined();
  const sync = await memory.startSync();
  await sync.ready;
  await until(() => sync.seen.sweeps > 1, { what: 'a sweep' });
  expect(await memory.backend.sales.read(id)).toBeUndefined();
  expect(await memory.service.verify(id)).toMatchObject({ ok: true });
});
