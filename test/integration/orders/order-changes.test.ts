/** Orders after their purchase: paid, cancelled, redeemed, refunded. Each unit that comes back is sold again. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Order, OrderChange, OrderStatus } from '../../../src/operations/order-operations.ts';
import type { OrderService } from '../../../src/orders/order-service.ts';
import { rows } from '../../../src/postgres/database.ts';
import { BY } from '../../support/author.ts';
import { breaker, intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { aged, kindsOf, placed } from '../../support/shop/orders.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';
import { query } from '../../support/shop/truth.ts';

const PAY: OrderChange = { kind: 'pay', payType: 'card' };
const CANCEL: OrderChange = { kind: 'cancel' };
const REDEEM: OrderChange = { kind: 'redeem' };
const REFUND: OrderChange = { kind: 'refund' };

describe.each(['redis', 'memory'] as const)('on %s', (backend) => {
  let shop: Shop;
  let till: Till;
  let orders: OrderService;

  beforeEach(async () => {
    shop = await Shop.open({ backend });
    await shop.startSync();
    till = await shop.startEngine();
    orders = shop.orders(till.take);
  });

  afterEach(() => shop[Symbol.asyncDispose]());

  const expectSold = async (saleId: string, sold: number) => {
    expect(await shop.service.verify(saleId)).toMatchObject({ ok: true, findings: [] });
    const { stock, remaining, committedUnits } = await shop.service.show(saleId);
    expect({ remaining, committedUnits }).toEqual({ remaining: stock - sold, committedUnits: sold });
  };

  test('an order is paid, then redeemed, and shows when and how', async () => {
    const sale = await shop.sell({ stock: 2, payWithinSeconds: 60 });
    const orderId = await placed(till, sale.id, 'anna');
    const unpaid = await orders.showOrder(orderId);
    expect(unpaid).toMatchObject({ code: 'done', order: { status: 'unpaid', payType: undefined } });
    const { committedAt, expiresAt } = 'order' in unpaid ? unpaid.order : ({} as never);
    expect(Date.parse(expiresAt!) - Date.parse(committedAt)).toBe(60_000);

    const paid = await orders.changeOrder(orderId, PAY, 'anna');
    expect(paid).toMatchObject({ code: 'done', order: { status: 'paid', payType: 'card' } });
    const redeemed = await orders.changeOrder(orderId, REDEEM, 'anna');
    expect(redeemed).toMatchObject({ code: 'done', order: { status: 'redeemed', payType: 'card' } });
    const { paidAt, redeemedAt } = 'order' in redeemed ? redeemed.order : ({} as never);
    expect(Date.parse(paidAt!)).toBeGreaterThanOrEqual(Date.parse(committedAt));
    expect(Date.parse(redeemedAt!)).toBeGreaterThanOrEqual(Date.parse(paidAt!));
    expect(await kindsOf(shop, orderId)).toEqual(['committed', 'paid', 'redeemed']);
    await expectSold(sale.id, 1);
  });

  test.each<[string, OrderChange[], OrderStatus]>([
    ['cancelled', [CANCEL], 'cancelled'],
    ['refunded', [PAY, REFUND], 'refunded'],
  ])(
    'the units of an order that was %s are sold again, to the same buyer too',
    async (_, changes, status) => {
      const sale = await shop.sell({ stock: 3, segments: 2, perBuyerLimit: 3 });
      const orderId = await placed(till, sale.id, 'anna', { quantity: 3 });
      expect(await till.buy(sale.id, 'bert')).toEqual({ code: 'sold_out' });
      for (const change of changes) await orders.changeOrder(orderId, change, BY);
      expect(await orders.showOrder(orderId)).toMatchObject({ order: { status, quantity: 3 } });
      await expectSold(sale.id, 0);

      await until(async () => (await till.buy(sale.id, 'bert', { key: 'until-sold' })).code === 'committed', {
        what: 'bert buys',
      });
      await placed(till, sale.id, 'anna', { quantity: 2 });
      expect(await till.buy(sale.id, 'carl')).toEqual({ code: 'sold_out' });
      await expectSold(sale.id, 3);
      expect(await kindsOf(shop, orderId)).toEqual(['committed', ...changes.map(({ kind }) => PAST[kind])]);
    },
  );

  test('a repeated change gets the first answer, and is made once', async () => {
    // A unit each: the node may hear late that one came back.
    const sale = await shop.sell({ stock: 3 });
    for (const changes of [[PAY, REDEEM], [PAY, REFUND], [CANCEL]]) {
      const orderId = await placed(till, sale.id, `buyer-${changes.map(({ kind }) => kind)}`);
      for (const change of changes) {
        const first = await orders.changeOrder(orderId, change, BY);
        expect(await orders.changeOrder(orderId, change, BY)).toEqual(first);
      }
      const { order } = (await orders.showOrder(orderId)) as { order: Order };
      const last = { code: 'done', order: { ...order, changes: undefined } };
      for (const change of changes) expect(await orders.changeOrder(orderId, change, BY)).toEqual(last);
      expect(await kindsOf(shop, orderId)).toEqual(['committed', ...changes.map(({ kind }) => PAST[kind])]);
    }
    await expectSold(sale.id, 1);
  });

  test('many calls at once for one change all get the same answer, and one makes it', async () => {
    const sale = await shop.sell({ stock: 1 });
    const orderId = await placed(till, sale.id, 'anna');
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, () => orders.changeOrder(orderId, CANCEL, BY)),
    );
    expect(outcomes).toEqual(outcomes.map(() => outcomes[0]));
    expect(await kindsOf(shop, orderId)).toEqual(['committed', 'cancelled']);
    await expectSold(sale.id, 0);
  });

  test('each status allows only its own changes', async () => {
    const sale = await shop.sell({ stock: 20 });
    const ways: Record<string, OrderChange[]> = {
      unpaid: [],
      paid: [PAY],
      redeemed: [PAY, REDEEM],
      refunded: [PAY, REFUND],
      cancelled: [CANCEL],
    };
    const refused: Record<string, string[]> = {};
    for (const [status, way] of Object.entries(ways)) {
      const wrong: string[] = [];
      for (const change of [PAY, CANCEL, REDEEM, REFUND]) {
        const orderId = await placed(till, sale.id, `${status}-${change.kind}`);
        for (const step of way) await orders.changeOrder(orderId, step, BY);
        const before = await orders.showOrder(orderId);
        const outcome = await orders.changeOrder(orderId, change, BY);
        if (outcome.code === 'done') continue;
        expect(outcome).toEqual({ code: 'wrong_status', orderStatus: status });
        expect(await orders.showOrder(orderId)).toEqual(before);
        wrong.push(change.kind);
      }
      refused[status] = wrong;
    }
    expect(refused).toEqual({
      unpaid: ['redeem', 'refund'],
      paid: ['cancel'],
      redeemed: ['cancel', 'refund'],
      refunded: ['cancel', 'redeem'],
      cancelled: ['pay', 'redeem', 'refund'],
    });
  });

  describe('an operator’s change', () => {
    const ANN = { actor: 'ann', reason: 'fell ill' };
    const noted = async (orderId: string) => {
      const shown = await orders.showOrder(orderId);
      return 'order' in shown ? shown.order.changes!.map(({ at: _, ...change }) => change) : shown.code;
    };

    test('is recorded with operator and reason; repetitions and refusals are not', async () => {
      const sale = await shop.sell({ stock: 2 });
      const orderId = await placed(till, sale.id, 'anna');
      expect(await noted(orderId)).toEqual([]);
      await orders.changeOrder(orderId, REDEEM, ANN);
      await orders.changeOrder(orderId, PAY, { actor: 'ops token', reason: '' });
      await orders.changeOrder(orderId, PAY, ANN);
      await orders.changeOrder(orderId, { kind: 'pay', payType: 'wechat' }, ANN);
      await orders.changeOrder(orderId, CANCEL, ANN);
      await orders.changeOrder(orderId, REFUND, ANN);
      await orders.changeOrder(orderId, REFUND, BY);
      expect(await noted(orderId)).toEqual([
        { change: 'pay', actor: 'ops token', reason: '' },
        { change: 'refund', ...ANN },
      ]);
      const { order } = (await orders.showOrder(orderId)) as { order: Order };
      expect(order.changes!.map(({ at }) => at)).toEqual([order.paidAt, order.refundedAt]);
      expect(await noted(await placed(till, sale.id, 'anna'))).toEqual([]);
      expect(await noted('1')).toBe('unknown_order');
    });

    test('is not recorded if the buyer has made it before', async () => {
      const sale = await shop.sell({ stock: 2 });
      const orderId = await placed(till, sale.id, 'anna');
      await orders.changeOrder(orderId, CANCEL, 'anna');
      expect(await orders.changeOrder(orderId, CANCEL, ANN)).toMatchObject({ code: 'done' });
      expect(await noted(orderId)).toEqual([]);
    });

    test('is recorded once if many operators make it at once', async () => {
      const sale = await shop.sell({ stock: 1 });
      const orderId = await placed(till, sale.id, 'anna');
      const actors = Array.from({ length: 12 }, (_, i) => `operator-${i}`);
      await Promise.all(actors.map((actor) => orders.changeOrder(orderId, CANCEL, { actor, reason: actor })));
      const [change, ...others] = (await noted(orderId)) as { actor: string; reason: string }[];
      expect(others).toEqual([]);
      expect(actors).toContain(change!.actor);
      expect(change!.reason).toBe(change!.actor);
      await expectSold(sale.id, 0);
    });

    test('is both made and recorded, or neither', async () => {
      const sale = await shop.sell({ stock: 1 });
      const orderId = await placed(till, sale.id, 'anna');
      await orders.changeOrder(orderId, PAY, BY);
      await query(asAdmin(shop.databaseUrl), "ALTER TABLE order_changes ADD CHECK (actor <> 'nobody')");
      const refund = orders.changeOrder(orderId, REFUND, { actor: 'nobody', reason: '' });
      await expect(refund).rejects.toThrow(/check/);
      expect(await orders.showOrder(orderId)).toMatchObject({ order: { status: 'paid' } });
      expect(await kindsOf(shop, orderId)).toEqual(['committed', 'paid']);
      await expectSold(sale.id, 1);
    });

    test('by a node of the version before is made, and not recorded', async () => {
      const sale = await shop.sell({ stock: 1 });
      const orderId = await placed(till, sale.id, 'anna');
      await rows(shop.db, 'SELECT verdict FROM stockade_change_order(?, ?, NULL, NULL)', [orderId, 'cancel']);
      expect(await orders.showOrder(orderId)).toMatchObject({ order: { status: 'cancelled', changes: [] } });
    });
  });

  test('a second payment by another type is refused', async () => {
    const sale = await shop.sell({ stock: 1 });
    const orderId = await placed(till, sale.id, 'anna');
    await orders.changeOrder(orderId, PAY, BY);
    const other = await orders.changeOrder(orderId, { kind: 'pay', payType: 'wechat' }, BY);
    expect(other).toEqual({ code: 'wrong_status', orderStatus: 'paid' });
    expect(await orders.showOrder(orderId)).toMatchObject({ order: { payType: 'card' } });
  });

  test('a buyer can’t change another buyer’s order, or a missing one', async () => {
    const sale = await shop.sell({ stock: 1 });
    const orderId = await placed(till, sale.id, 'anna');
    for (const change of [PAY, CANCEL, REDEEM, REFUND]) {
      expect(await orders.changeOrder(orderId, change, 'bert')).toEqual({ code: 'forbidden' });
      for (const id of ['1', '9223372036854775807', '9223372036854775808', 'nonsense']) {
        expect(await orders.changeOrder(id, change, 'anna')).toEqual({ code: 'unknown_order' });
      }
    }
    expect(await kindsOf(shop, orderId)).toEqual(['committed']);
  });

  test('a cancellation holds even if its units can’t be returned at once: sync returns them later', async () => {
    const sale = await shop.sell({ stock: 1 });
    const orderId = await placed(till, sale.id, 'anna');
    const failing = breaker('log.compensate');
    const cut = shop.orders(till.take, intercept(shop.backend, failing.before));
    expect(await cut.changeOrder(orderId, CANCEL, BY)).toMatchObject({ order: { status: 'cancelled' } });
    expect(failing.hits).not.toEqual([]);
    expect(await shop.service.verify(sale.id)).toMatchObject({ ok: true });
    await until(async () => (await till.buy(sale.id, 'bert', { key: 'until-sold' })).code === 'committed', {
      what: 'bert buys',
    });
    await expectSold(sale.id, 1);
  });

  test('payment, cancellation and expiry at once: exactly one wins', async () => {
    const many = 60;
    const sale = await shop.sell({ stock: many, segments: 2, payWithinSeconds: 3_600 });
    const ids = await Promise.all(buyers(many).map((buyerId) => placed(till, sale.id, buyerId)));
    // A paused sale gives no unit to a late payment: so each order ends in one way.
    await shop.service.change(sale.id, { action: 'pause' }, { actor: 'test', reason: '' });
    await aged(shop, ids, (i) => i % 3 === 0);
    shop.startExpiry({ pageOrders: 7 });
    const race = async (id: string, first: OrderChange, second: OrderChange) =>
      Promise.all([orders.changeOrder(id, first, BY), orders.changeOrder(id, second, BY)]);
    const outcomes = await Promise.all(
      ids.map(async (id, i) => {
        if (i % 2 === 0) return race(id, PAY, CANCEL);
        const [cancel, pay] = await race(id, CANCEL, PAY);
        return [pay, cancel] as const;
      }),
    );
    const ends = await rows<{ order_id: string; status: string; stamps: number }>(
      shop.db,
      `SELECT order_id::text, status, num_nonnulls(paid_at, cancelled_at, expired_at) AS stamps
       FROM orders WHERE sale_id = ?`,
      [sale.id],
    );
    expect(new Set(ends.map(({ status }) => status))).toEqual(new Set(['paid', 'cancelled', 'expired']));
    const ended = new Map(ends.map((row) => [row.order_id, row]));
    for (const [i, [pay, cancel]] of outcomes.entries()) {
      const { status, stamps } = ended.get(ids[i]!)!;
      expect(stamps, `${ids[i]} is ${status}`).toBe(1);
      expect(pay.code === 'done', `payment of what is ${status}`).toBe(status === 'paid');
      expect(cancel.code === 'done', `cancellation of what is ${status}`).toBe(status === 'cancelled');
      if (status === 'expired') expect(pay).toEqual({ code: 'wrong_state', state: 'paused' });
    }
    const paid = ends.filter(({ status }) => status === 'paid').length;
    await until(async () => (await shop.service.show(sale.id)).remaining === many - paid, {
      what: 'all units are back',
    });
    await expectSold(sale.id, paid);
  });
});

const PAST = { pay: 'paid', cancel: 'cancelled', redeem: 'redeemed', refund: 'refunded' } as const;
