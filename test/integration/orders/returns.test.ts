/**
 * Units that are returned: they arrive in the segment once, whichever process dies, and every node sells them, with or without
 * the message.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Backend, Compensation, TakeBatch } from '../../../src/engine/contract.ts';
import { OutcomeUnknown } from '../../../src/engine/errors.ts';
import { Scripts } from '../../../src/engine/redis/protocol/scripts.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import {
  applyRejections,
  applyReturns,
  applyReturnsOf,
  applySomeReturns,
  readRejections,
  salesWithReturns,
} from '../../../src/orders/returns.ts';
import { rows } from '../../../src/postgres/database.ts';
import { BY } from '../../support/author.ts';
import { deathAt, intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { insertOrders } from '../../support/events/event-log.ts';
import { until } from '../../support/fixtures.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';

const SEGMENTS = 4;
const STOCK = 8;
/**
 * Many repair intervals, but less than the poll of all sales, which covers processes that die before the change
 * counter is raised.
 */
const REOPENED_LIMIT_MS = 5_000;

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

/** A sale of which all is sold and committed; no sync is running. */
async function soldOut() {
  const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  const names = buyers(STOCK);
  const outcomes = await till.buyAll(id, names);
  expect(outcomes.map(({ code }) => code)).toEqual(Array(STOCK).fill('committed'));
  await sync.stop();
  return {
    id,
    till,
    names,
    orderIds: outcomes.map((outcome) => ('orderId' in outcome ? outcome.orderId : '')),
  };
}

/** Orders are cancelled by a process that dies after its commit. */
async function cancel(orderIds: readonly string[]): Promise<void> {
  await shop.db.raw(
    `WITH cancelled AS (
       UPDATE orders SET status = 'cancelled', cancelled_at = now() WHERE order_id = ANY (?)
       RETURNING order_id, sale_id, buyer_id, quantity),
     credited AS (
       UPDATE sales s SET stock = stock + c.units, live_orders = live_orders - c.orders
       FROM (SELECT sale_id, sum(quantity) AS units, count(*) AS orders FROM cancelled GROUP BY sale_id) AS c
       WHERE s.id = c.sale_id RETURNING s.id, s.generation)
     INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, generation)
     SELECT c.order_id, c.sale_id, c.buyer_id, c.quantity, 'cancelled', s.generation
     FROM cancelled c JOIN credited s ON s.id = c.sale_id`,
    [[...orderIds]],
  );
}

describe('the process that applies a return dies', () => {
  const steps = {
    'before the compensation': async () => {},
    'before the epoch is raised': async (saleId: string, buyerId: string, orderId: string) => {
      const scripts = new Scripts(keys.redis);
      const segment = keys.of(saleId, homeSegment(buyerId, SEGMENTS));
      expect(await scripts.compensate(segment, 1, buyerId, orderId, 1)).toBe(1);
    },
    'before nodes are told': async (saleId: string, buyerId: string, orderId: string) => {
      await steps['before the epoch is raised'](saleId, buyerId, orderId);
      await keys.redis.hincrby(keys.sale(saleId), 'epoch', 1);
    },
    'before the row is marked': async (saleId: string, buyerId: string, orderId: string) => {
      const segment = homeSegment(buyerId, SEGMENTS);
      await shop.backend.log.compensate({ saleId, segment, generation: 1, buyerId, orderId, units: 1 });
    },
  };

  test.each(Object.keys(steps) as (keyof typeof steps)[])(
    '%s: the reconciler continues, and the unit is sold once',
    async (step) => {
      const { id, till, names, orderIds } = await soldOut();
      expect((await till.buy(id, 'late')).code).toBe('sold_out');
      await cancel(orderIds.slice(0, 1));
      await steps[step](id, names[0]!, orderIds[0]!);
      expect(await salesWithReturns(shop.db)).toEqual([id]);

      await shop.startSync();
      await until(async () => (await salesWithReturns(shop.db)).length === 0, {
        what: 'the sweep has applied it',
      });
      await until(async () => (await till.buy(id, names[0]!, { key: 'until-sold' })).code === 'committed', {
        what: 'it is on sale',
      });
      expect((await till.buy(id, 'late')).code).toBe('sold_out');
      expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: STOCK });
    },
  );

  test('in the middle of many: applied returns are not applied twice', async () => {
    const { id, orderIds } = await soldOut();
    await cancel(orderIds);
    let calls = 0;
    const { death, before } = deathAt((call) => call === 'log.compensate' && ++calls > STOCK / 2);
    void applyReturnsOf(shop.db, intercept(shop.backend, before), orderIds);
    await death;
    await until(async () => (await keys.left(id, SEGMENTS)) === STOCK / 2, { what: 'half of them are back' });
    await applyReturns(shop.db, shop.backend, id);
    expect(await keys.left(id, SEGMENTS)).toBe(STOCK);
    expect(await salesWithReturns(shop.db)).toEqual([]);
  });
});

test('two processes that apply the same returns at once return each unit once', async () => {
  const { id, orderIds } = await soldOut();
  await cancel(orderIds);
  const another = await shop.anotherBackend();
  await Promise.all([
    applyReturnsOf(shop.db, shop.backend, orderIds),
    applyReturns(shop.db, another, id),
    applyReturnsOf(shop.db, another, [...orderIds].reverse()),
  ]);
  expect(await keys.left(id, SEGMENTS)).toBe(STOCK);
});

test('a return whose row is written again while it is marked as applied is applied again', async () => {
  const { id, orderIds } = await soldOut();
  const [orderId] = orderIds;
  await cancel([orderId!]);
  const again =
    'UPDATE stock_returns SET units_before = units_before + units, applied_at = NULL WHERE order_id = ?';
  const applied: string[] = [];
  const log = Object.create(shop.backend.log, {
    compensate: {
      value: async (compensation: Compensation) => {
        await shop.backend.log.compensate(compensation);
        applied.push(compensation.orderId);
        // It was taken again, and Postgres refused it (apply-each.ts).
        if (applied.length === 1) await shop.db.raw(again, [orderId!]);
      },
    },
  });
  const backend = { ...intercept(shop.backend, () => {}), log };
  await applyReturnsOf(shop.db, backend, [orderId!]);
  expect(await salesWithReturns(shop.db)).toEqual([id]);
  await applyReturns(shop.db, backend, id);
  expect(applied).toEqual([orderId, orderId]);
  expect(await salesWithReturns(shop.db)).toEqual([]);
});

test('the reconciler applies a return of a closed sale, and nothing is sold', async () => {
  const { id, till, orderIds } = await soldOut();
  await shop.service.change(id, { action: 'close' }, BY);
  const sync = await shop.startSync();
  await until(() => shop.isUnlocked(id), { what: 'the closed sale is released' });
  await cancel(orderIds.slice(0, 3));
  await until(async () => (await keys.left(id, SEGMENTS)) === 3, { what: 'its units are back' });
  expect((await till.buy(id, 'late')).code).toBe('ended');
  expect(sync.seen.crashes).toEqual([]);
  await until(async () => (await salesWithReturns(shop.db)).length === 0, { what: 'the rows are marked' });
  expect(await shop.service.verify(id)).toMatchObject({ ok: true });
});

describe('a backlog of several pages', () => {
  const PAGE = 500;
  const BACKLOG = 2 * PAGE + 200;
  const pendingOf = async (saleId: string) =>
    (
      await rows<{ pending: number }>(
        shop.db,
        'SELECT count(*)::integer AS pending FROM stock_returns WHERE sale_id = ? AND applied_at IS NULL',
        [saleId],
      )
    )[0]!.pending;

  /** Orders end of which the segments know nothing. */
  async function saleWithBacklog(): Promise<string> {
    const { id } = await shop.sell({ stock: BACKLOG, segments: SEGMENTS });
    const sync = await shop.startSync();
    await until(async () => (await shop.service.show(id)).remaining === BACKLOG, {
      what: 'the sale is built',
    });
    await sync.stop();
    await shop.db.raw('UPDATE sales SET stock = stock - ?, live_orders = live_orders + ? WHERE id = ?', [
      BACKLOG,
      BACKLOG,
      id,
    ]);
    await cancel(await insertOrders(shop.db, id, BACKLOG));
    return id;
  }

  test('is applied page by page', async () => {
    const id = await saleWithBacklog();
    for (const [left, mayBeLeft] of [
      [BACKLOG - PAGE, true],
      [BACKLOG - 2 * PAGE, true],
      [0, false],
    ]) {
      expect(await applySomeReturns(shop.db, shop.backend, id)).toBe(mayBeLeft);
      expect(await pendingOf(id)).toBe(left);
    }
  });

  test('is applied by the sweeps of a sync', async () => {
    const id = await saleWithBacklog();
    await shop.startSync();
    await until(async () => (await pendingOf(id)) === 0, { what: 'all are applied' });
  });

  test('does not delay the announcement of rejected orders', async () => {
    const id = await saleWithBacklog();
    const [rejected] = await insertOrders(shop.db, id, 1);
    await shop.db.raw(
      `INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, generation)
       VALUES (?, ?, 'anna', 0, 'rejected: stock', 1)`,
      [rejected!, id],
    );
    await applyRejections(shop.db, shop.backend, id);
    expect(await pendingOf(id)).toBe(BACKLOG);
    await applyReturns(shop.db, shop.backend, id);
    expect(await pendingOf(id)).toBe(0);
  });

  test.each([
    ['most returns wait', 'ANALYZE stock_returns', ''],
    ['Postgres knows of few', '', 'ANALYZE stock_returns'],
  ])('is read without those of other pages: %s', async (_, after, before) => {
    const { id: other } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
    await shop.db.raw(
      `INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, applied_at)
       SELECT -i, ?, 'buyer', 1, 'cancelled', now() FROM generate_series(1, 5000) AS i`,
      [other],
    );
    if (before) await shop.db.raw(before);
    const id = await saleWithBacklog();
    if (after) await shop.db.raw(after);
    const sent: { sql: string; bindings: readonly string[] }[] = [];
    shop.db.on('query', (query) => sent.push(query));
    await applySomeReturns(shop.db, shop.backend, id);
    const { sql, bindings } = sent.find((statement) => statement.sql.includes('stock_returns r JOIN'))!;
    const [plan] = await rows<{ 'QUERY PLAN': unknown }>(
      shop.db,
      `EXPLAIN (ANALYZE, FORMAT JSON) ${sql.replaceAll(/\$\d+/g, '?')}`,
      bindings,
    );
    expect(JSON.stringify(plan)).toContain('stock_returns_pending');
    for (const [, handled] of JSON.stringify(plan).matchAll(
      /"(?:Actual Rows|Rows Removed by Filter)":(\d+)/g,
    ))
      expect(Number(handled)).toBeLessThanOrEqual(PAGE);
  });
});

test('a return during a rebuild comes back once, with the load or after it', async () => {
  const { id, orderIds } = await soldOut();
  await shop.backend.sales.freeze(id, SEGMENTS, 1);
  await cancel(orderIds.slice(0, 2));
  await applyReturnsOf(shop.db, shop.backend, orderIds.slice(0, 2));
  expect(await salesWithReturns(shop.db), 'nothing is given to a frozen segment').toEqual([id]);
  await shop.startSync();
  await until(async () => (await shop.service.show(id)).remaining === 2, { what: 'the sale is built' });
  await until(async () => (await salesWithReturns(shop.db)).length === 0, { what: 'the rows are marked' });
  expect(await shop.service.verify(id)).toMatchObject({ ok: true });
});

describe('the board', () => {
  /** Every message that a sale has changed is lost to it. */
  const hidingChanges = (backend: Backend): Backend => ({
    ...intercept(backend, () => {}),
    subscribe: (events) => backend.subscribe({ ...events, ...(events.saleChanged && { saleChanged() {} }) }),
  });

  test('of every node reopens by polling, even if every message is lost', async () => {
    const { id, orderIds } = await soldOut();
    await shop.startSync();
    const tills = [];
    for (let node = 0; node < 3; node++) {
      tills.push(await shop.startEngine({ backend: hidingChanges(await shop.anotherBackend()) }));
    }
    for (const [i, till] of tills.entries()) expect((await till.buy(id, `node-${i}`)).code).toBe('sold_out');
    await cancel(orderIds.slice(0, 3));
    await applyReturnsOf(shop.db, shop.backend, orderIds.slice(0, 3));
    const back = performance.now();
    const opened = tills.map(async (till, i) => {
      for (;;) {
        const { code } = await till.buy(id, `late-${i}`, { awaitCommit: false });
        if (code === 'accepted') return performance.now() - back;
        expect(code).toBe('sold_out');
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    for (const ms of await Promise.all(opened)) expect(ms).toBeLessThan(REOPENED_LIMIT_MS);
  });
});

test('an order returned while its outcome was unknown to a node is taken again by that node, and returned again', async () => {
  const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  const orders = shop.orders(till.take);
  const lossy: Backend['takes'] = Object.create(shop.backend.takes, {
    take: {
      value: async (batch: TakeBatch) => {
        const reply = await shop.backend.takes.take(batch);
        if (lost++ > 0) return reply;
        // The buyer asks another node, gets the id of the order, and cancels it.
        const again = await till.buy(id, 'anna', { key: 'k' });
        const { orderId } = again as { orderId: string };
        expect(await orders.changeOrder(orderId, { kind: 'cancel' }, BY)).toMatchObject({ code: 'done' });
        throw new OutcomeUnknown('the reply is lost');
      },
    },
    ready: { get: () => shop.backend.takes.ready },
  });
  let lost = 0;
  const doubtful = await shop.startEngine({
    backend: { ...intercept(shop.backend, () => {}), takes: lossy },
  });
  expect((await doubtful.buy(id, 'anna', { key: 'k' })).code).toBe('unknown');
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 0 });
  expect(sync.seen.rejections).toMatchObject([{ reason: 'duplicate' }]);
  // A sync that takes over names it again, as any that was refused: its own status does not say so.
  expect(await readRejections(shop.db, id)).toMatchObject([{ reason: 'duplicate' }]);
  expect(await till.buy(id, 'anna', { key: 'k' })).toMatchObject({ code: 'committed' });
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 1 });
});
