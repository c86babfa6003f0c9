/**
 * A payment that comes after its order has expired: either the units are taken again or a refund is due, however often
 * the payment is repeated, and whichever process dies.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/engine/contract.ts';
import type { Order, OrderChange, OrderOutcome } from '../../../src/operations/order-operations.ts';
import { UnknownSale } from '../../../src/operations/sale-operations.ts';
import { settleLatePayment } from '../../../src/orders/order-changes.ts';
import type { OrderService } from '../../../src/orders/order-service.ts';
import { BY } from '../../support/author.ts';
import { breaker, intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { aged, kindsOf, placed } from '../../support/shop/orders.ts';
import { Shop } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';
import { ordersOf } from '../../support/shop/truth.ts';

const PAY: OrderChange = { kind: 'pay', payType: 'card' };
const AUTHOR = { actor: 'test', reason: '' };

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

  /** An order that is past its payment deadline and has not been expired. */
  const overdue = async (spec: { stock: number } & Record<string, unknown> = { stock: 2 }) => {
    const sale = await shop.sell({ segments: 2, payWithinSeconds: 600, ...spec });
    const orderId = await placed(till, sale.id, 'anna');
    await aged(shop, [orderId]);
    return { saleId: sale.id, orderId };
  };

  /** Its units are sold to another buyer meanwhile. */
  const overtaken = async () => {
    const { saleId, orderId } = await overdue({ stock: 1 });
    const expiry = shop.startExpiry();
    await until(() => expiry.orders === 1, { what: 'the order expires' });
    await until(async () => (await till.buy(saleId, 'bert', { key: 'until-sold' })).code === 'committed', {
      what: 'bert buys',
    });
    return { saleId, orderId };
  };

  const shown = async (orderId: string): Promise<Order> => {
    const outcome = await orders.showOrder(orderId);
    if (outcome.code !== 'done') throw new Error(`${orderId} is ${outcome.code}`);
    return outcome.order;
  };

  const balanced = async (saleId: string, sold: number) => {
    const { stock } = await shop.service.show(saleId);
    await until(async () => (await shop.service.show(saleId)).remaining === stock - sold, {
      what: `${sold} units are sold`,
    });
    await until(async () => (await shop.service.verify(saleId)).ok, { what: 'the books balance' });
    expect(await shop.service.show(saleId)).toMatchObject({ committedUnits: sold });
  };

  const expectRetaken = (outcome: OrderOutcome, late: string): string => {
    expect(outcome).toMatchObject({ code: 'done', replaces: late });
    const { order } = outcome as Extract<OrderOutcome, { code: 'done' }>;
    expect(order).toMatchObject({ status: 'paid', payType: 'card', buyerId: 'anna', quantity: 1 });
    expect(order.orderId).not.toBe(late);
    return order.orderId;
  };

  describe('while units are left', () => {
    test('pays a new order; each repetition gets the same one', async () => {
      const { saleId, orderId } = await overdue();
      const first = await orders.changeOrder(orderId, PAY, 'anna');
      const retaken = expectRetaken(first, orderId);
      expect(await orders.changeOrder(orderId, PAY, BY)).toEqual(first);
      expect(await orders.changeOrder(retaken, PAY, BY)).toMatchObject({ code: 'done' });
      expect(await shown(orderId)).toMatchObject({ status: 'expired', retakenBy: retaken });
      expect(await kindsOf(shop, orderId)).toEqual(['committed', 'expired']);
      expect(await kindsOf(shop, retaken)).toEqual(['committed', 'paid']);
      await balanced(saleId, 1);
      expect((await ordersOf(shop.databaseUrl, saleId)).get(retaken)?.key).toBe(`retake:${orderId}`);
    });

    test('by an operator is recorded with both orders, once; by the buyer with none', async () => {
      const { orderId } = await overdue();
      const retaken = expectRetaken(await orders.changeOrder(orderId, PAY, BY), orderId);
      await orders.changeOrder(orderId, PAY, AUTHOR);
      const pay = { change: 'pay', at: expect.any(String), ...BY };
      expect(await shown(orderId)).toMatchObject({ changes: [pay] });
      expect(await shown(retaken)).toMatchObject({ changes: [pay] });
      const other = await overdue();
      const own = expectRetaken(await orders.changeOrder(other.orderId, PAY, 'anna'), other.orderId);
      await orders.changeOrder(other.orderId, PAY, BY);
      expect([await shown(other.orderId), await shown(own)]).toMatchObject([
        { changes: [] },
        { changes: [] },
      ]);
    });

    test('by another payment type is refused', async () => {
      const { orderId } = await overdue();
      await orders.changeOrder(orderId, PAY, BY);
      const other = await orders.changeOrder(orderId, { kind: 'pay', payType: 'wechat' }, BY);
      expect(other).toEqual({ code: 'wrong_status', orderStatus: 'expired' });
    });

    test('takes its own returned units in a sold-out sale', async () => {
      const { saleId, orderId } = await overdue({ stock: 1 });
      expect(await till.buy(saleId, 'bert')).toEqual({ code: 'sold_out' });
      expectRetaken(await orders.changeOrder(orderId, PAY, BY), orderId);
      await balanced(saleId, 1);
    });

    test('takes units even after the end of the sale', async () => {
      const { saleId, orderId } = await overdue();
      const endsAt = Date.now() - 1_000;
      await shop.service.change(saleId, { action: 'window', startsAt: endsAt - 1_000, endsAt }, AUTHOR);
      const later = await shop.startEngine();
      expect(await later.buy(saleId, 'bert')).toMatchObject({ code: 'ended' });
      expectRetaken(await shop.orders(later.take).changeOrder(orderId, PAY, BY), orderId);
    });

    test('many at once make one new order', async () => {
      const { saleId, orderId } = await overdue();
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, () => orders.changeOrder(orderId, PAY, BY)),
      );
      expect(new Set(outcomes.map((outcome) => expectRetaken(outcome, orderId))).size).toBe(1);
      await balanced(saleId, 1);
    });
  });

  describe('when the units can’t be taken', () => {
    const refundIsDue = async (orderId: string) => {
      expect(await orders.changeOrder(orderId, PAY, BY)).toEqual({ code: 'expired', refundDue: true });
      expect(await orders.changeOrder(orderId, PAY, BY)).toEqual({ code: 'expired', refundDue: true });
      expect(await shown(orderId)).toMatchObject({ status: 'expired', payType: 'card', refundDue: true });
    };

    test('a refund is due, until it is made', async () => {
      const { saleId, orderId } = await overtaken();
      await refundIsDue(orderId);
      expect((await orders.refundsDue()).orders.map((order) => order.orderId)).toEqual([orderId]);
      expect(await orders.refundsDue({ saleId })).toEqual(await orders.refundsDue());
      const { id } = await shop.sell({ stock: 1 });
      expect((await orders.refundsDue({ saleId: id })).orders).toEqual([]);
      await expect(orders.refundsDue({ saleId: 'mistyped' })).rejects.toThrow(new UnknownSale('mistyped'));

      const refunded = await orders.changeOrder(orderId, { kind: 'refund' }, BY);
      expect(refunded).toMatchObject({ order: { status: 'expired', refundedAt: expect.any(String) } });
      expect(await orders.changeOrder(orderId, { kind: 'refund' }, BY)).toEqual(refunded);
      expect((await orders.refundsDue()).orders).toEqual([]);
      expect(await orders.changeOrder(orderId, PAY, BY)).toEqual({ code: 'expired', refundDue: false });
      const changes = ['pay', 'refund'].map((change) => ({ change, at: expect.any(String), ...BY }));
      expect(await shown(orderId)).toMatchObject({ changes });
      expect(await kindsOf(shop, orderId)).toEqual(['committed', 'expired', 'refunded']);
      await balanced(saleId, 1);
    });

    test('by another payment type is refused, while the refund is due and once it is made', async () => {
      const { orderId } = await overtaken();
      await refundIsDue(orderId);
      const others = (['wechat', 'alipay'] as const).map(
        (payType): OrderChange => ({ kind: 'pay', payType }),
      );
      const refused = { code: 'wrong_status', orderStatus: 'expired' };
      for (const other of others) expect(await orders.changeOrder(orderId, other, BY)).toEqual(refused);
      expect((await orders.refundsDue()).orders).toMatchObject([{ orderId, payType: 'card' }]);

      const refunded = await orders.changeOrder(orderId, { kind: 'refund' }, BY);
      for (const other of others) expect(await orders.changeOrder(orderId, other, 'anna')).toEqual(refused);
      expect(await orders.changeOrder(orderId, PAY, BY)).toEqual({ code: 'expired', refundDue: false });
      expect({ code: 'done', order: await shown(orderId) }).toMatchObject(refunded);
    });

    test('by two payment types at once, one is refused and is not on the list', async () => {
      const { orderId } = await overtaken();
      const payTypes = ['card', 'wechat'] as const;
      // Each take is answered only when both calls have seen that nothing is decided.
      let arrived = 0;
      const meeting = shop.orders(async (purchase) => {
        arrived += 1;
        await until(() => arrived === payTypes.length, { what: 'both have come to the take' });
        return till.take(purchase);
      });
      const answers = await Promise.all(
        payTypes.map((payType) => meeting.changeOrder(orderId, { kind: 'pay', payType }, BY)),
      );
      const first = answers.findIndex(({ code }) => code === 'expired');
      expect(answers[first]).toEqual({ code: 'expired', refundDue: true });
      expect(answers[1 - first]).toEqual({ code: 'wrong_status', orderStatus: 'expired' });
      expect((await orders.refundsDue()).orders).toMatchObject([{ orderId, payType: payTypes[first] }]);
    });

    test('an expired order that was never paid needs no refund', async () => {
      const { orderId } = await overtaken();
      const refund = await orders.changeOrder(orderId, { kind: 'refund' }, BY);
      expect(refund).toEqual({ code: 'wrong_status', orderStatus: 'expired' });
    });

    test('because the buyer has reached the limit otherwise, a refund is due', async () => {
      const { saleId, orderId } = await overdue();
      const expiry = shop.startExpiry();
      await until(() => expiry.orders === 1, { what: 'the order expires' });
      await until(async () => (await till.buy(saleId, 'anna', { key: 'until-sold' })).code === 'committed', {
        what: 'anna buys',
      });
      await refundIsDue(orderId);
      await balanced(saleId, 1);
    });

    test('because the sale is closed, a refund is due', async () => {
      const { saleId, orderId } = await overdue();
      await shop.service.change(saleId, { action: 'close' }, AUTHOR);
      await refundIsDue(orderId);
      await balanced(saleId, 0);
    });
  });

  describe('that can’t be decided now', () => {
    const answers: [Outcome, OrderOutcome['code']][] = [
      [{ code: 'busy' }, 'busy'],
      [{ code: 'unavailable' }, 'unavailable'],
      [{ code: 'unknown' }, 'unknown'],
      [{ code: 'accepted', orderId: '1', quantity: 1 }, 'unknown'],
    ];
    test.each(answers)('because the take is answered %o, leaves everything open', async (answer, code) => {
      const { saleId, orderId } = await overdue();
      const deciding = shop.orders(async () => answer);
      expect(await deciding.changeOrder(orderId, PAY, BY)).toEqual({ code });
      expect(await shown(orderId)).toMatchObject({ status: 'expired', refundDue: undefined });
      expectRetaken(await orders.changeOrder(orderId, PAY, BY), orderId);
      await balanced(saleId, 1);
    });

    test('because the sale is paused, is refused without a decision; after the pause, a repetition takes units again', async () => {
      const { saleId, orderId } = await overdue();
      await shop.service.change(saleId, { action: 'pause' }, AUTHOR);
      const paused: OrderOutcome = { code: 'wrong_state', state: 'paused' };
      for (let time = 0; time < 2; time++) expect(await orders.changeOrder(orderId, PAY, BY)).toEqual(paused);
      expect(await shown(orderId)).toMatchObject({
        status: 'expired',
        payType: undefined,
        refundDue: undefined,
      });
      expect((await orders.refundsDue({ saleId })).orders).toEqual([]);
      await shop.service.change(saleId, { action: 'resume' }, AUTHOR);
      const answers: OrderOutcome[] = [];
      // The engine learns of the end of the pause by a message, or by its next poll.
      await until(
        async () =>
          answers.push(await orders.changeOrder(orderId, PAY, BY)) > 0 &&
          answers.at(-1)!.code !== 'wrong_state',
        {
          what: 'the pause is over',
        },
      );
      expectRetaken(answers.at(-1)!, orderId);
      await balanced(saleId, 1);
    });

    test('because the sale is paused, becomes a refund once the sale is closed', async () => {
      const { saleId, orderId } = await overdue();
      await shop.service.change(saleId, { action: 'pause' }, AUTHOR);
      expect(await orders.changeOrder(orderId, PAY, BY)).toMatchObject({ code: 'wrong_state' });
      await shop.service.change(saleId, { action: 'close' }, AUTHOR);
      await until(async () => (await orders.changeOrder(orderId, PAY, BY)).code === 'expired', {
        what: 'it is closed',
      });
      expect((await orders.refundsDue({ saleId })).orders.map((order) => order.orderId)).toEqual([orderId]);
    });

    test('because its units are not back yet, does not count against the buyer’s limit', async () => {
      const { saleId, orderId } = await overdue();
      const failing = breaker('log.compensate');
      const cut = shop.orders(till.take, intercept(shop.backend, failing.before));
      expect(await cut.changeOrder(orderId, PAY, BY)).toEqual({ code: 'unavailable' });
      expect(failing.hits).not.toEqual([]);
      failing.repair();
      expectRetaken(await cut.changeOrder(orderId, PAY, BY), orderId);
      await balanced(saleId, 1);
    });
  });

  describe('whose node dies between the take and the payment', () => {
    /** The new order is in Postgres, and no client knows of it. */
    const dead = async (orderId: string): Promise<string> => {
      let taken: Outcome | undefined;
      const dying = shop.orders(async (purchase) => {
        taken = await till.take(purchase);
        throw new Error('dies, as the test wants it');
      });
      await expect(dying.changeOrder(orderId, PAY, BY)).rejects.toThrow('dies');
      return taken && 'orderId' in taken ? taken.orderId : '';
    };

    test('finds the same new order when repeated', async () => {
      const { saleId, orderId } = await overdue();
      const taken = await dead(orderId);
      expect(await shown(taken)).toMatchObject({ status: 'unpaid' });
      expect(await shown(orderId)).toMatchObject({ retakenBy: undefined, refundDue: undefined });
      expect(expectRetaken(await orders.changeOrder(orderId, PAY, BY), orderId)).toBe(taken);
      await balanced(saleId, 1);
    });

    test('leaves an order that expires like any other; a later repetition takes units again', async () => {
      const { saleId, orderId } = await overdue();
      const taken = await dead(orderId);
      await aged(shop, [taken]);
      const expiry = shop.startExpiry();
      await until(() => expiry.orders === 1, { what: 'the new order expires' });
      await balanced(saleId, 0);
      expect(expectRetaken(await orders.changeOrder(orderId, PAY, BY), orderId)).not.toBe(taken);
      await balanced(saleId, 1);
    });

    test('is refused if the buyer has paid the new order directly', async () => {
      const { saleId, orderId } = await overdue();
      const taken = await dead(orderId);
      await orders.changeOrder(taken, PAY, BY);
      expect(await orders.changeOrder(orderId, PAY, BY)).toEqual({ code: 'expired', refundDue: true });
      expect(await shown(taken)).toMatchObject({ status: 'paid' });
      await balanced(saleId, 1);
    });

    test('keeps no units if another call has made a refund due', async () => {
      const { saleId, orderId } = await overdue();
      const taken = await dead(orderId);
      const payment = { late: orderId, payType: 'card', by: BY } as const;
      expect(await settleLatePayment(shop.db, payment, undefined)).toMatchObject({ verdict: 'refund_due' });
      const settling = shop.orders(async () => ({ code: 'committed', orderId: taken, quantity: 1 }));
      expect(await settling.changeOrder(orderId, PAY, BY)).toEqual({ code: 'expired', refundDue: true });
      expect(await shown(taken)).toMatchObject({ status: 'unpaid' });
      // Like a call that was under way when the other one settled.
      expect(await settleLatePayment(shop.db, payment, taken)).toMatchObject({ verdict: 'refund_due' });
      expect(await shown(taken)).toMatchObject({ status: 'cancelled' });
      await balanced(saleId, 0);
    });
  });
});
