/** Orders that are not paid in time expire, once each, whichever process dies and however many look for them. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { BY } from '../../support/author.ts';
import { deathAt, intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { aged, kindsOf, placed } from '../../support/shop/orders.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';

describe.each(['redis', 'memory'] as const)('on %s', (backend) => {
  let shop: Shop;
  let till: Till;

  beforeEach(async () => {
    shop = await Shop.open({ backend });
    await shop.startSync();
    till = await shop.startEngine();
  });

  afterEach(() => shop[Symbol.asyncDispose]());

  const balanced = async (saleId: string, sold: number) => {
    const { stock } = await shop.service.show(saleId);
    await until(async () => (await shop.service.show(saleId)).remaining === stock - sold, {
      what: 'the units are back',
    });
    expect(await shop.service.verify(saleId)).toMatchObject({
      ok: true,
      findings: [],
      committedOrders: sold,
    });
  };

  /** A sale with orders of which all are overdue. */
  const overdue = async (count: number, spec: Record<string, unknown> = {}) => {
    const sale = await shop.sell({ stock: count, segments: 4, payWithinSeconds: 600, ...spec });
    const ids = await Promise.all(buyers(count).map((buyerId) => placed(till, sale.id, buyerId)));
    await aged(shop, ids);
    return { saleId: sale.id, ids };
  };

  const statuses = async (saleId: string) =>
    Object.fromEntries(
      (
        await rows<{ status: string; n: number }>(
          shop.db,
          'SELECT status, count(*)::integer AS n FROM orders WHERE sale_id = ? GROUP BY status',
          [saleId],
        )
      ).map(({ status, n }) => [status, n]),
    );

  test('an unpaid order expires at its deadline, and its unit is sold again', async () => {
    // Time enough to pay.
    const sale = await shop.sell({ stock: 2, payWithinSeconds: 3 });
    const orders = shop.orders(till.take);
    const paid = await placed(till, sale.id, 'anna');
    await orders.changeOrder(paid, { kind: 'pay', payType: 'card' }, BY);
    const unpaid = await placed(till, sale.id, 'bert');
    expect(await till.buy(sale.id, 'carl')).toEqual({ code: 'sold_out' });
    shop.startExpiry();
    await until(async () => (await till.buy(sale.id, 'carl', { key: 'until-sold' })).code === 'committed', {
      what: 'carl buys',
    });

    const expired = await orders.showOrder(unpaid);
    expect(expired).toMatchObject({ order: { status: 'expired', paidAt: undefined } });
    const { expiresAt, expiredAt } = 'order' in expired ? expired.order : ({} as never);
    expect(Date.parse(expiredAt!)).toBeGreaterThanOrEqual(Date.parse(expiresAt!));
    expect(await kindsOf(shop, unpaid)).toEqual(['committed', 'expired']);
    expect(await orders.showOrder(paid)).toMatchObject({ order: { status: 'paid' } });
    await balanced(sale.id, 2);
  });

  test('a sale without a payment deadline keeps its unpaid orders', async () => {
    const sale = await shop.sell({ stock: 1 });
    const kept = await placed(till, sale.id, 'anna');
    const { saleId } = await overdue(1);
    const expiry = shop.startExpiry();
    await until(() => expiry.orders === 1, { what: 'the other sale’s order expires' });
    await balanced(saleId, 0);
    expect(await shop.orders(till.take).showOrder(kept)).toMatchObject({
      order: { status: 'unpaid', expiresAt: undefined },
    });
  });

  test('several processes at once: each order expires once', async () => {
    const sales = await Promise.all([overdue(300), overdue(200)]);
    const seen = [1, 2, 3].map(() => shop.startExpiry({ pageOrders: 20 }));
    const total = () => seen.reduce((sum, { orders }) => sum + orders, 0);
    await until(() => total() >= 500, { what: 'all orders expire' });
    for (const { saleId, ids } of sales) {
      await balanced(saleId, 0);
      expect(await statuses(saleId)).toEqual({ expired: ids.length });
    }
    const [told] = await rows(
      shop.db,
      `SELECT count(*)::integer AS n, count(DISTINCT order_id)::integer AS orders
       FROM order_events, unnest(order_ids) AS order_id WHERE kind = 'expired'`,
    );
    expect(told).toEqual({ n: 500, orders: 500 });
    expect([total(), ...seen.flatMap(({ failures }) => failures)]).toEqual([500]);
  });

  test('a process that dies between commit and return leaves the units to the next', async () => {
    const { saleId } = await overdue(40);
    let returned = 0;
    const { before, death } = deathAt((call) => call === 'log.compensate' && ++returned === 10);
    shop.startExpiry({ backend: intercept(shop.backend, before), hangs: true });
    await death;
    expect(await statuses(saleId)).toEqual({ expired: 40 });
    await balanced(saleId, 0);
  });

  test('a process that dies within a page has changed nothing', async () => {
    const { saleId } = await overdue(40);
    await using events = await shop.lockTable('order_events');
    const first = shop.startExpiry();
    await until(() => shop.isBlocked(), { what: 'the page waits for its last write' });
    await rows(
      shop.db,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'expire'`,
    );
    await until(() => first.failures.length > 0, { what: 'the page fails' });
    expect(await statuses(saleId)).toEqual({ unpaid: 40 });
    expect(await rows(shop.db, 'SELECT 1 FROM stock_returns')).toEqual([]);
    await events.unlock();
    await until(() => first.orders === 40, { what: 'it is tried again' });
    await balanced(saleId, 0);
  });

  test('a sale that stays locked is left out and reported, while the orders of other sales expire', async () => {
    const [stuck, other] = [await overdue(30), await overdue(10)];
    await using row = await shop.lockRow(stuck.saleId);
    // The orders of the locked sale are due first, and fill two pages.
    const seen = shop.startExpiry({ pageOrders: 15, leftOutMs: 1_000 });
    await until(() => seen.orders === 10, { what: 'the orders of the other sale expire' });
    await balanced(other.saleId, 0);
    expect(await statuses(stuck.saleId)).toEqual({ unpaid: 30 });
    await until(() => seen.failures.length >= 2, { what: 'the locked sale is tried again' });
    expect(String(seen.failures[0])).toMatch(
      new RegExp(
        `row of sale "${stuck.saleId}" .* 15 of its unpaid orders are due, and are tried again in 1 s`,
      ),
    );
    await row.unlock();
    await until(() => seen.orders === 40, { what: 'the orders of the sale expire' });
    await balanced(stuck.saleId, 0);
  });

  test.each([
    ['', 0],
    [', each time for longer than a page waits at first', 600],
  ])('the orders of a sale expire that is locked nearly all the time%s', async (_, commitMs) => {
    const { saleId } = await overdue(40);
    let isOver = false;
    const batches = (async () => {
      // The next lock waits in line before this one ends, as it is with batches of sync.
      let held = await shop.lockRow(saleId);
      while (!isOver) {
        const next = shop.lockRow(saleId);
        await until(() => shop.isBlocked(), { what: 'the next one waits' });
        // A commit to a slow disk.
        await delay(commitMs);
        await held.unlock();
        held = await next;
      }
      await held.unlock();
    })();
    const seen = shop.startExpiry({ pageOrders: 15, leftOutMs: 100 });
    try {
      await until(() => seen.orders === 40, { what: 'all orders expire' });
    } finally {
      isOver = true;
      await batches;
    }
    if (commitMs === 0) expect(seen.failures).toEqual([]);
    await balanced(saleId, 0);
  });
});
