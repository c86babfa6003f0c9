/** A buyer's id leaves both stores, from any point at which that broke off, and the sums stay true. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Backend, TakeBatch } from '../../../src/engine/contract.ts';
import { OutcomeUnknown, StaleGeneration, StockadeError } from '../../../src/engine/errors.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { Outbox } from '../../../src/events/outbox.ts';
import type { ErasureReport } from '../../../src/operations/buyer-operations.ts';
import { UnknownSale } from '../../../src/operations/sale-operations.ts';
import { rows } from '../../../src/postgres/database.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import { leaveQueue } from '../../../src/queue/places.ts';
import { applyErasures, askErasures, lockDueErasures, readDueSales } from '../../../src/rebuild/erasures.ts';
import { nameLostOrders } from '../../../src/rebuild/lost-orders.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { ifFreeToRebuild } from '../../../src/rebuild/rebuild-lock.ts';
import { BuyerService } from '../../../src/shop/buyer-service.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { applySlices } from '../../../src/sync/apply/apply.ts';
import { batchOf } from '../../../src/sync/apply/batch.ts';
import { BY } from '../../support/author.ts';
import { breaker, intercept, stallAt } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { untilBlocked } from '../../support/postgres/blocked.ts';
import { beforeStatement } from '../../support/postgres/watched-statements.ts';
import { keysWith, tablesWith } from '../../support/shop/id-places.ts';
import { offered, QUEUE, queued, states, untilStates } from '../../support/shop/queue.ts';
import { buyers, Shop, type WatchedSync } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';

/** Too odd to be in any store by chance. */
const ANNA = 'anna+4711@example.com';
const PSEUDONYM = /^erased-[0-9a-f]{16}$/;

let shop: Shop;
let keys: RedisKeys;
let till: Till;
let sync: WatchedSync;

beforeEach(async () => {
  shop = await Shop.open();
  keys = new RedisKeys(shop);
  sync = await shop.startSync();
  till = await shop.startEngine();
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

const buyerService = (syncWaitMs?: number) =>
  new BuyerService({ db: shop.db, backend: shop.backend, ...(syncWaitMs !== undefined && { syncWaitMs }) });
const erase = (wish: { saleId?: string; running?: boolean } = {}, syncWaitMs?: number) =>
  buyerService(syncWaitMs).erase({ buyerId: ANNA, running: false, ...wish }, BY);

/** A sale of 20 units in 3 segments, open. Anna and two others have bought one each. */
async function soldSale(spec: Record<string, unknown> = {}) {
  const { id } = await shop.sell({ stock: 20, segments: 3, ...spec });
  const bought = await till.buy(id, ANNA, { key: `${ANNA}-1` });
  await till.buyAll(id, buyers(2));
  return { id, orderId: 'orderId' in bought ? bought.orderId : '' };
}

const close = async (saleId: string) => {
  await shop.service.change(saleId, { action: 'close' }, BY);
  await until(() => shop.isUnlocked(saleId), { what: 'the closed sale is drained' });
};

async function closedSale(spec?: Record<string, unknown>) {
  const sold = await soldSale(spec);
  await close(sold.id);
  return sold;
}

const places = async () => [
  ...(await tablesWith(shop.db, ANNA)),
  ...(await keysWith(keys.redis, shop.keyPrefix, ANNA)),
];

async function expectGone(saleId: string): Promise<void> {
  expect(await places()).toEqual([]);
  expect(await shop.service.verify(saleId)).toMatchObject({ ok: true, differences: [] });
  expect(sync.seen).toMatchObject({ losses: [], rejections: [], failures: [], crashes: [] });
}

const pseudonymsIn = async (saleId: string) => {
  const found = await rows<{ id: string }>(
    shop.db,
    "SELECT DISTINCT buyer_id AS id FROM orders WHERE sale_id = ? AND buyer_id LIKE 'erased-%'",
    [saleId],
  );
  return found.map(({ id }) => id);
};

describe('an erased buyer', () => {
  test('of a closed sale: the id is in no store, and the sums and the record stay', async () => {
    const { id, orderId } = await closedSale();
    const before = await shop.service.show(id);
    expect(await places()).not.toEqual([]);
    const report = await erase();
    expect(report).toEqual({
      erased: [{ saleId: id, pseudonym: expect.stringMatching(PSEUDONYM), orders: 1 }],
      waiting: [],
    });
    await expectGone(id);
    expect(await shop.service.show(id)).toEqual({ ...before, generation: before.generation + 1 });
    const { pseudonym } = report.erased[0]!;
    const home = keys.of(id, homeSegment(pseudonym, 3));
    expect(await keysWith(keys.redis, shop.keyPrefix, pseudonym)).toContain(home.buyers);
    expect((await shop.changesOf(id)).at(-1)).toMatchObject({
      ...{ action: 'erase', units: 0, actor: BY.actor, reason: BY.reason, applied: true },
      detail: { pseudonym, orders: 1 },
    });
    const orders = shop.orders(till.take);
    expect(await orders.changeOrder(orderId, { kind: 'cancel' }, ANNA)).toEqual({ code: 'forbidden' });
    expect(await orders.changeOrder(orderId, { kind: 'cancel' }, BY)).toMatchObject({ code: 'done' });
    await until(async () => (await shop.service.show(id)).remaining === 18, { what: 'the unit is back' });
    await expectGone(id);
  });

  test('of an archived sale: at once, without sync', async () => {
    const { id } = await closedSale();
    await shop.service.change(id, { action: 'archive' }, BY);
    await sync.stop();
    expect(await erase()).toMatchObject({ erased: [{ saleId: id, orders: 1 }], waiting: [] });
    await expectGone(id);
    expect((await shop.changesOf(id)).at(-1)).toMatchObject({ action: 'erase', applied: true });
  });

  test('whose record a repair is about to restore: the id does not come back', async () => {
    const { id } = await soldSale();
    await keys.forgetBuyer(id, 3, ANNA);
    let [hasFoundMissing, isErased] = [false, false];
    const backend = intercept(shop.backend, async (call) => {
      if (call === 'sales.recall') hasFoundMissing = true;
      if (!hasFoundMissing || isErased || call !== 'log.readLog') return;
      isErased = true;
      await erase({ saleId: id, running: true });
    });
    const report = await new SaleService(shop.db, backend, shop.locks).verify(id, { repair: true });
    expect(report).toMatchObject({ ok: true, repairs: [{ cause: 'foreign_redis', done: true }] });
    expect(isErased).toBe(true);
    await expectGone(id);
  });

  test('for whom two requests come at once: the second one claims no orders that have the pseudonym of the first', async () => {
    const { id } = await closedSale();
    await shop.service.change(id, { action: 'archive' }, BY);
    const [first] = await askErasures(shop.db, { buyerId: ANNA, running: false }, BY);
    const { generation } = await shop.service.show(id);
    const trx = await shop.db.transaction();
    await applyErasures(trx, { saleId: id, generation }, await lockDueErasures(trx, id));
    const second = erase();
    // Sync may wait for the same row.
    await untilBlocked(shop.db, 1, 'WITH found AS (');
    await trx.commit();
    expect(await second).toMatchObject({ erased: [{ saleId: id, orders: 0 }], waiting: [] });
    expect(await pseudonymsIn(id)).toEqual([first?.pseudonym]);
    await expectGone(id);
  });

  test('whom no sale knows, and one who is erased again: nothing happens', async () => {
    const { id } = await closedSale();
    const { generation } = await shop.service.show(id);
    const nobody = { buyerId: 'nobody', running: true };
    expect(await buyerService().erase(nobody, BY)).toEqual({ erased: [], waiting: [] });
    expect(await shop.service.show(id)).toMatchObject({ generation });
    await erase();
    expect(await erase({ running: true })).toEqual({ erased: [], waiting: [] });
    expect(await shop.service.show(id)).toMatchObject({ generation: generation + 1 });
    await expect(erase({ saleId: 'no-such-sale' })).rejects.toThrow(UnknownSale);
  });

  test('has another pseudonym in each sale, and stays in a sale that is not named', async () => {
    const [first, second, third] = [await closedSale(), await closedSale(), await closedSale()];
    await erase({ saleId: first.id });
    expect(await pseudonymsIn(second.id)).toEqual([]);
    const { erased } = await erase();
    expect(new Set(erased.map(({ saleId }) => saleId))).toEqual(new Set([second.id, third.id]));
    const names = [first, second, third].map(({ id }) => pseudonymsIn(id));
    expect(new Set((await Promise.all(names)).flat()).size).toBe(3);
    for (const { id } of [first, second, third]) await expectGone(id);
  });

  test('keeps no key that the client gave, and a late payment still finds its retake', async () => {
    const { id, orderId } = await soldSale({ perBuyerLimit: 5 });
    await shop.db.raw('UPDATE orders SET expires_at = now() WHERE order_id = ?', [orderId]);
    const pay = { kind: 'pay', payType: 'card' } as const;
    const orders = shop.orders(till.take);
    const paid = await orders.changeOrder(orderId, pay, BY);
    expect(paid).toMatchObject({ code: 'done', replaces: orderId });
    await close(id);
    expect(await erase()).toMatchObject({ erased: [{ orders: 2 }] });
    await expectGone(id);
    const again = await orders.changeOrder(orderId, pay, BY);
    expect(again).toMatchObject({ code: 'done', replaces: orderId, order: { status: 'paid' } });
    const kept = await rows(shop.db, 'SELECT idempotency_key AS key FROM orders WHERE buyer_id LIKE ?', [
      'erased-%',
    ]);
    expect(kept).toHaveLength(2);
    expect(kept).toEqual(expect.arrayContaining([{ key: null }, { key: `retake:${orderId}` }]));
  });

  test('leaves lost orders and returns too', async () => {
    const { id, orderId } = await soldSale();
    await shop.orders(till.take).changeOrder(orderId, { kind: 'cancel' }, BY);
    await nameLostOrders(shop.db, id, [{ orderId: '77', segment: 0, buyerId: ANNA, quantity: 1 }]);
    await shop.db.raw(
      `INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, applied_at)
       VALUES (78, ?, ?, 0, 'rejected: duplicate', now())`,
      [id, ANNA],
    );
    await close(id);
    expect(await tablesWith(shop.db, ANNA)).toEqual(['lost_orders', 'orders', 'stock_returns']);
    await erase();
    await expectGone(id);
  });

  test('who has only a lost order is found', async () => {
    const { id } = await shop.sell({ stock: 2 });
    await nameLostOrders(shop.db, id, [{ orderId: '77', segment: 0, buyerId: ANNA, quantity: 1 }]);
    await close(id);
    expect(await erase()).toMatchObject({ erased: [{ saleId: id, orders: 0 }] });
    await expectGone(id);
  });
});

describe('a buyer that has only a place in a queue', () => {
  /** Anna and bert wait: no head makes offers. */
  async function queueOfTwo() {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, [ANNA, 'bert']);
    return id;
  }

  test.each([true, false])('of a sale that sells is erased, the sale named: %s', async (isNamed) => {
    const id = await queueOfTwo();
    const wish = isNamed ? { saleId: id } : {};
    expect(await erase(wish)).toMatchObject({ erased: [], waiting: [{ saleId: id, until: 'closed' }] });
    expect(await erase({ ...wish, running: true })).toEqual({
      erased: [{ saleId: id, pseudonym: expect.stringMatching(PSEUDONYM), orders: 0 }],
      waiting: [],
    });
    await expectGone(id);
  });

  test.each([true, false])('of a closed sale is erased, the sale named: %s', async (isNamed) => {
    const id = await queueOfTwo();
    await close(id);
    expect(await erase(isNamed ? { saleId: id } : {})).toMatchObject({
      erased: [{ saleId: id, orders: 0 }],
      waiting: [],
    });
    await expectGone(id);
  });

  test('that has ended is erased, also if the sale is archived', async () => {
    const id = await queueOfTwo();
    await leaveQueue(shop.db, id, ANNA);
    await close(id);
    await shop.service.change(id, { action: 'archive' }, BY);
    expect(await erase()).toMatchObject({ erased: [{ saleId: id, orders: 0 }], waiting: [] });
    await expectGone(id);
  });
});

describe('a place of an erased buyer', () => {
  const pseudonymOf = ({ erased }: ErasureReport) => erased[0]!.pseudonym;

  test('that waits has left: the next unit goes to the buyer behind it', async () => {
    shop.startHead(till.take);
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['bert', ANNA, 'carl']);
    await offered(shop, id, 'bert');
    const anna = pseudonymOf(await erase({ running: true }));
    expect(await states(shop, id)).toEqual({ bert: 'offered', [anna]: 'left', carl: 'waiting' });
    await leaveQueue(shop.db, id, 'bert');
    await untilStates(shop, id, { bert: 'left', [anna]: 'left', carl: 'offered' });
    await expectGone(id);
  });

  test('that has an offer gives it back to the next buyer', async () => {
    shop.startHead(till.take);
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, [ANNA, 'bert']);
    const orderId = await offered(shop, id, ANNA);
    const report = await erase({ running: true });
    expect(report).toMatchObject({ erased: [{ saleId: id, orders: 1 }], waiting: [] });
    await untilStates(shop, id, { [pseudonymOf(report)]: 'left', bert: 'offered' });
    const [order] = await rows(shop.db, 'SELECT status FROM orders WHERE order_id = ?', [orderId]);
    expect(order).toEqual({ status: 'cancelled' });
    await expectGone(id);
  });

  test('that is given while the buyer is erased has the id, and gets its offer', async () => {
    await sync.stop();
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, [ANNA]);
    await leaveQueue(shop.db, id, ANNA);
    const [asked] = await askErasures(shop.db, { buyerId: ANNA, running: true }, BY);
    let joined: Promise<unknown> = Promise.resolve();
    const db = beforeStatement(shop.db, /UPDATE sales SET generation/, async () => {
      joined = queued(shop, id, [ANNA]);
      await Promise.race([joined, untilBlocked(shop.db, 1, 'stockade_give_places')]);
    });
    await rebuildSale(db, shop.backend, id);
    await joined;
    expect(await states(shop, id)).toEqual({ [asked!.pseudonym]: 'left', [ANNA]: 'waiting' });
    sync = await shop.startSync();
    shop.startHead(till.take);
    await offered(shop, id, ANNA);
  });

  test('that has an offer in an archived sale gives it back', async () => {
    shop.startHead(till.take);
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, [ANNA]);
    await offered(shop, id, ANNA);
    await close(id);
    await shop.service.change(id, { action: 'archive' }, BY);
    const anna = pseudonymOf(await erase());
    expect(await states(shop, id)).toEqual({ [anna]: 'left' });
    expect(await shop.service.show(id)).toMatchObject({ remaining: 1, committedOrders: 0 });
    await expectGone(id);
  });

  test('that was bought, and one that was left, stay as they are', async () => {
    shop.startHead(till.take);
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, [ANNA]);
    await leaveQueue(shop.db, id, ANNA);
    await queued(shop, id, [ANNA]);
    const orderId = await offered(shop, id, ANNA);
    await acceptOffer(shop.db, { orderId, buyerId: ANNA, quantity: 1 });
    const placesNow = () =>
      rows(shop.db, 'SELECT state, reason, ended_at FROM places WHERE sale_id = ? ORDER BY number', [id]);
    const before = await placesNow();
    expect(before).toMatchObject([{ state: 'left' }, { state: 'bought' }]);
    await erase({ running: true });
    expect(await placesNow()).toEqual(before);
    await expectGone(id);
  });
});

test('a dry run says which sales know the buyer, and changes nothing', async () => {
  const [one, two] = [await soldSale(), await soldSale()];
  await until(async () => (await shop.service.show(two.id)).committedOrders === 3, {
    what: 'sync has all orders',
  });
  const before = await places();
  const dry = (saleId?: string) =>
    buyerService().erase({ buyerId: ANNA, running: true, dryRun: true, ...(saleId && { saleId }) }, BY);
  const found = [one.id, two.id].sort().map((saleId) => ({ saleId, orders: 1 }));
  expect(await dry()).toEqual({ erased: [], waiting: [], found });
  expect(await dry(two.id)).toEqual({ erased: [], waiting: [], found: [{ saleId: two.id, orders: 1 }] });
  const later = await buyerService().erase({ buyerId: ANNA, running: false, dryRun: true }, BY);
  expect(later.found).toEqual(found.map((each) => ({ ...each, until: 'closed' })));
  await expect(dry('nowhere')).rejects.toThrow(UnknownSale);
  expect(await places()).toEqual(before);
  expect(await shop.service.show(one.id)).not.toHaveProperty('waitingErasures');
});

describe('a sale that is not closed', () => {
  test('keeps the id until it is closed, however often it is rebuilt', async () => {
    const { id } = await soldSale();
    const { waiting } = await erase();
    expect(waiting).toMatchObject([{ saleId: id, orders: 1, until: 'closed' }]);
    expect(await shop.service.show(id)).toMatchObject({ waitingErasures: 1 });
    // As a process would: without the lock, sync may take the frozen segments for a broken rebuild, and be faster.
    await ifFreeToRebuild(shop.locks, id, () => rebuildSale(shop.db, shop.backend, id));
    expect(await till.buy(id, ANNA, { key: `${ANNA}-1` })).toMatchObject({ code: 'committed' });
    expect((await till.buy(id, ANNA)).code).toBe('limit_reached');
    expect(await erase()).toEqual({ erased: [], waiting });
    // Sync may begin the erasure as soon as Postgres has it closed, before this process has told the segments.
    await shop.service.change(id, { action: 'close' }, BY).catch((error: unknown) => {
      if (!(error instanceof StaleGeneration)) throw error;
    });
    await until(async () => (await places()).length === 0, { what: 'sync has erased the buyer' });
    expect(await pseudonymsIn(id)).toEqual([waiting[0]?.pseudonym]);
    await until(async () => (await shop.service.verify(id)).ok, { what: 'the sale is built' });
    await expectGone(id);
  });

  test('has it erased now if that is asked for by name, and then knows nothing of the buyer', async () => {
    const { id } = await soldSale();
    await erase();
    expect(await erase({ running: true })).toMatchObject({
      erased: [{ saleId: id, orders: 1 }],
      waiting: [],
    });
    await expectGone(id);
    expect(sync.seen.rebuilds.at(-1)).toMatchObject({ again: false });
    // As docs/internals/erasure.md says: a repetition of the purchase is a new purchase.
    expect((await till.buy(id, ANNA, { key: `${ANNA}-1` })).code).toBe('committed');
    expect(await shop.service.show(id)).toMatchObject({ committedOrders: 4, remaining: 16 });
    expect(await shop.service.verify(id)).toMatchObject({ ok: true });
    // Two pseudonyms: the limit holds for each.
    await erase({ running: true });
    expect(await pseudonymsIn(id)).toHaveLength(2);
    await expectGone(id);
  });

  test('counts the wait for short logs from the last request', async () => {
    const { id } = await soldSale();
    await sync.stop();
    await askErasures(shop.db, { buyerId: ANNA, running: false }, BY);
    await shop.db.raw("UPDATE erasures SET asked_at = asked_at - interval '1 hour'");
    expect(await readDueSales(shop.db)).toEqual([]);
    await askErasures(shop.db, { buyerId: ANNA, running: true }, BY);
    const [due] = await readDueSales(shop.db);
    expect(due).toMatchObject({ saleId: id, isClosed: false, isArchived: false });
    expect(due?.ageS).toBeLessThan(600);
  });

  test('has it erased together with a resize: the draft that names the buyer is not used', async () => {
    const { id } = await soldSale();
    await sync.stop();
    const { before, goOn, stalled } = stallAt('sales.freeze');
    const slow = await shop.startSync({ backend: intercept(shop.backend, before) });
    await shop.db.raw(
      `INSERT INTO stock_movements (sale_id, units, reason, actor, action, detail, generation)
       VALUES (?, 0, '', 'otto', 'resize', '{"from":3,"to":5}', 1)`,
      [id],
    );
    await stalled;
    expect((await keysWith(keys.redis, shop.keyPrefix, ANNA)).some((key) => key.endsWith(':draft'))).toBe(
      true,
    );
    await askErasures(shop.db, { buyerId: ANNA, running: true }, BY);
    goOn();
    await until(async () => (await places()).length === 0, { what: 'the buyer is erased' });
    await until(async () => (await shop.service.verify(id)).ok, { what: 'the sale is built' });
    expect(await shop.service.show(id)).toMatchObject({ segments: 5, generation: 2, committedOrders: 3 });
    expect(slow.seen).toMatchObject({ losses: [], failures: [], crashes: [] });
    await expectGone(id);
  });
});

describe('an order that is only in a log', () => {
  test('is salvaged first, and erased with the others', async () => {
    const { id } = await soldSale({ perBuyerLimit: 3 });
    await sync.stop();
    await till.buyAll(id, [ANNA, 'otto'], { awaitCommit: false });
    await askErasures(shop.db, { buyerId: ANNA, running: true }, BY);
    await rebuildSale(shop.db, shop.backend, id);
    expect((await shop.changesOf(id)).at(-1)).toMatchObject({ detail: { orders: 2 } });
    expect(await shop.service.show(id)).toMatchObject({ committedOrders: 5 });
    await expectGone(id);
  });

  test('makes a request fail that can’t wait for it, and nothing is changed', async () => {
    const { id } = await soldSale({ perBuyerLimit: 3 });
    await sync.stop();
    await till.buy(id, ANNA, { awaitCommit: false });
    await expect(erase()).rejects.toThrow(StockadeError);
    expect(await rows(shop.db, 'SELECT 1 FROM erasures')).toEqual([]);
  });

  test.each([
    ['is named', true],
    ['is not named', false],
  ])(
    'makes a request fail also if its sale, which %s, is older than a thousand others',
    async (_, isNamed) => {
      const { id } = await soldSale();
      await sync.stop();
      await till.buy(id, 'late+4711@example.com', { awaitCommit: false });
      await shop.db.raw(
        `INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, metadata, generation)
       SELECT 'young-' || n, '', 1, 1, 1, 1, now(), '{}', 1 FROM generate_series(1, 1000) n`,
      );
      const late = { buyerId: 'late+4711@example.com', running: false, ...(isNamed && { saleId: id }) };
      await expect(withoutOrdersIn('young-').erase(late, BY)).rejects.toThrow(/on their way to Postgres/);
      expect(await rows(shop.db, 'SELECT 1 FROM erasures')).toEqual([]);
    },
  );

  test('of another sale does not keep a request for one sale waiting', async () => {
    const { id } = await closedSale();
    const other = await soldSale();
    await sync.stop();
    await till.buy(other.id, 'late', { awaitCommit: false });
    expect(await erase({ saleId: id }, 0)).toMatchObject({ waiting: [{ saleId: id }] });
  });

  test('and that another sync commits while the next generation begins, is erased too', async () => {
    const { id } = await shop.sell({ stock: 5, segments: 1 });
    await sync.stop();
    await askErasuresFor(id);
    const order = { orderId: '7', buyerId: ANNA, quantity: 1, key: `${ANNA}-2` };
    const entry = { seq: 1, previous: '', tail: '7', ordersSoFar: 1, orders: [order] };
    const position = { saleId: id, segment: 0, generation: 1, seq: 0, tail: '' };
    const { slices } = batchOf([{ position, head: undefined, entries: [entry] }], 1);
    const late = await shop.db.transaction();
    await applySlices(late, slices, slices);
    const rebuilt = rebuildSale(shop.db, shop.backend, id);
    await until(() => shop.isBlocked(), { what: 'the next generation waits for the batch' });
    await late.commit();
    await rebuilt;
    expect((await shop.changesOf(id)).at(-1)).toMatchObject({ detail: { orders: 1 } });
    await expectGone(id);
  });
});

/** Erases with a backend in which some sales have segments with empty logs. */
function withoutOrdersIn(prefix: string): BuyerService {
  const through = intercept(shop.backend, () => {});
  const sales: typeof through.sales = Object.create(through.sales, {
    snapshot: {
      value: (saleId: string, segments: number, generation: number) =>
        saleId.startsWith(prefix)
          ? Promise.resolve([{ segment: 0, counters: { seq: 0, committed: 0 } }])
          : through.sales.snapshot(saleId, segments, generation),
    },
  });
  return new BuyerService({ db: shop.db, backend: { ...through, sales }, syncWaitMs: 0 });
}

/** An erasure of a buyer whom Postgres does not have yet. */
const askErasuresFor = (saleId: string) =>
  shop.db.raw(
    `INSERT INTO erasures (sale_id, buyer_id, pseudonym, while_selling, actor, reason)
     VALUES (?, ?, 'erased-0123456789abcdef', true, 'otto', '')`,
    [saleId, ANNA],
  );

describe('a change of an order at the same moment', () => {
  test('that comes first is kept, and its return is erased too', async () => {
    const { id, orderId } = await soldSale();
    await sync.stop();
    await askErasures(shop.db, { buyerId: ANNA, running: true }, BY);
    await using row = await shop.lockRow(id);
    const cancelled = shop.orders(till.take).changeOrder(orderId, { kind: 'cancel' }, ANNA);
    await until(() => shop.isBlocked(), { what: 'the cancellation waits for the row of the sale' });
    const rebuilt = rebuildSale(shop.db, shop.backend, id);
    await untilBlocked(shop.db, 2);
    await row.unlock();
    expect(await cancelled).toMatchObject({ code: 'done' });
    await rebuilt;
    expect(await shop.service.show(id)).toMatchObject({ remaining: 18, committedOrders: 2 });
    await expectGone(id);
  });

  test('that comes later is refused to the buyer', async () => {
    const { id, orderId } = await soldSale();
    await sync.stop();
    await askErasures(shop.db, { buyerId: ANNA, running: true }, BY);
    await using row = await shop.lockRow(id);
    const rebuilt = rebuildSale(shop.db, shop.backend, id);
    await until(() => shop.isBlocked(), { what: 'the rebuild waits for the row of the sale' });
    const cancelled = shop.orders(till.take).changeOrder(orderId, { kind: 'cancel' }, ANNA);
    await untilBlocked(shop.db, 2);
    await row.unlock();
    await rebuilt;
    expect(await cancelled).toEqual({ code: 'forbidden' });
    expect(await shop.service.show(id)).toMatchObject({ remaining: 17, committedOrders: 3 });
    await expectGone(id);
  });
});

describe('a process that dies while it erases', () => {
  test.each([
    'sales.freeze',
    'log.readLog',
    'sales.loadSegment',
    'sales.loadHoldings',
    'sales.removeSegments',
    'sales.publish',
  ])('before %s: another sync goes on', async (step) => {
    const { id } = await closedSale();
    await sync.stop();
    const [asked] = await askErasures(shop.db, { buyerId: ANNA, running: false }, BY);
    const { before, hits } = breaker(step);
    await expect(rebuildSale(shop.db, intercept(shop.backend, before), id)).rejects.toThrow(step);
    expect(hits.length).toBeGreaterThan(0);
    sync = await shop.startSync();
    await until(async () => (await places()).length === 0, { what: 'the buyer is erased' });
    await until(async () => (await shop.service.verify(id)).ok, { what: 'the sale is built' });
    expect(await pseudonymsIn(id)).toEqual([asked?.pseudonym]);
    expect((await shop.changesOf(id)).filter(({ action }) => action === 'erase')).toHaveLength(1);
    await expectGone(id);
  });

  test('after the request: sync does it, also if the sale is archived meanwhile', async () => {
    const { id } = await closedSale();
    await sync.stop();
    await askErasures(shop.db, { buyerId: ANNA, running: false }, BY);
    await shop.service.change(id, { action: 'archive' }, BY);
    expect(await places()).toEqual([]);
    const other = await closedSaleWithoutErasing();
    await shop.service.change(other, { action: 'archive' }, BY);
    await askErasures(shop.db, { buyerId: ANNA, running: false }, BY);
    sync = await shop.startSync();
    await until(async () => (await places()).length === 0, { what: 'the buyer is erased' });
    await expectGone(other);
  });

  const closedSaleWithoutErasing = async () => {
    sync = await shop.startSync();
    const { id } = await closedSale();
    await sync.stop();
    return id;
  };

  test('and the answer names the sales that wait for sync', async () => {
    const { id } = await closedSale();
    await sync.stop();
    expect(await erase({}, 0)).toMatchObject({ erased: [], waiting: [{ saleId: id, until: 'rebuilt' }] });
  });
});

test('a Redis that comes back from an older copy does not bring the id of a known order back', async () => {
  const { id } = await soldSale();
  const copied = await keys.redis.keys(`${shop.keyPrefix}*${id}*`);
  const copy = await keys.dump(copied);
  await close(id);
  await shop.service.change(id, { action: 'archive' }, BY);
  await erase();
  await keys.restore(copied, copy);
  expect(await keysWith(keys.redis, shop.keyPrefix, ANNA)).not.toEqual([]);
  await until(async () => (await places()).length === 0, { what: 'the sale has left again' });
  await until(async () => (await shop.changesOf(id)).every(({ applied }) => applied), {
    what: 'sync is done',
  });
  expect(await pseudonymsIn(id)).toHaveLength(1);
  await expectGone(id);
});

test('an order that ended is taken again under the id: it is removed again, and the buyer can be erased again', async () => {
  const { id } = await shop.sell({ stock: 20, segments: 3 });
  const orders = shop.orders(till.take);
  let lost = 0;
  const lossy: Backend['takes'] = Object.create(shop.backend.takes, {
    take: {
      value: async (batch: TakeBatch) => {
        const reply = await shop.backend.takes.take(batch);
        if (lost++ > 0) return reply;
        // Another node names the order, which is cancelled. Then the buyer is erased while the sale sells.
        const again = await till.buy(id, ANNA, { key: 'k' });
        const { orderId } = again as { orderId: string };
        expect(await orders.changeOrder(orderId, { kind: 'cancel' }, BY)).toMatchObject({ code: 'done' });
        expect(await erase({ running: true })).toMatchObject({ erased: [{ orders: 1 }], waiting: [] });
        throw new OutcomeUnknown('the reply is lost');
      },
    },
    ready: { get: () => shop.backend.takes.ready },
  });
  const doubtful = await shop.startEngine({
    backend: { ...intercept(shop.backend, () => {}), takes: lossy },
  });
  expect((await doubtful.buy(id, ANNA, { key: 'k' })).code).toBe('unknown');
  await until(async () => sync.seen.rejections.length > 0, { what: 'Postgres has refused it' });
  await until(async () => (await shop.service.verify(id)).ok, { what: 'its unit is back' });
  expect(await keysWith(keys.redis, shop.keyPrefix, ANNA)).toEqual([]);
  // The second generation is that of the erasure.
  expect(await shop.service.show(id)).toMatchObject({ generation: 2, remaining: 20 });
  expect(await erase({ running: true })).toMatchObject({ erased: [{ saleId: id, orders: 0 }] });
  expect(await places()).toEqual([]);
});

test('an event that is sent later has the pseudonym', async () => {
  const { id } = await closedSale();
  await erase();
  const events = JSON.stringify(await new Outbox(shop.db).read());
  expect(events).toContain((await pseudonymsIn(id))[0]);
  expect(events).not.toContain(ANNA);
});
