/** The example of payments: a shop's server between a stand-in for the payment provider and a real node. */
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
// @ts-expect-error The example is JavaScript.
import { Provider } from '../../../examples/payment/provider.js';
// @ts-expect-error The example is JavaScript.
import { createShop } from '../../../examples/payment/server.js';
// @ts-expect-error The example is JavaScript.
import { refundOrder, settle, sweep } from '../../../examples/payment/settle.js';
// @ts-expect-error The example is JavaScript.
import { StandIn } from '../../../examples/payment/stand-in.js';
import { OperatorClient } from '../../../src/client/index.ts';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { anyStore, expectSold, makeSale } from '../../support/nodes/stores.ts';

const SECRET = 'whsec_of_the_tests';
const KEY = 'sk_of_the_tests';
const RETRIES_MS = Array.from({ length: 4_000 }, () => 25);
const PRICE = { priceMinor: 4_900, currency: 'EUR', segments: 1 };

let node: TestNode;
let server: Server;
let origin: string;
let standIn: StandIn;
/** What the shop's server works with. It reads this at each request. */
let shop: { ops: OperatorClient; provider: Provider } & Record<string, unknown>;
let logged: unknown[];

/** @param instead answers instead of the node, if it returns an answer */
const operator = (deadlineMs: number, instead: (path: string) => Response | undefined = () => undefined) =>
  new OperatorClient({
    ...{ url: node.opsUrl, token: node.opsToken, operator: 'payments', deadlineMs },
    fetch: async (url, init) => instead(new URL(String(url)).pathname) ?? fetch(url, init),
  });

beforeAll(async () => {
  node = await startTestNode(await anyStore());
});
afterAll(async () => {
  await node?.[Symbol.asyncDispose]();
});

beforeEach(async () => {
  logged = [];
  standIn = new StandIn({ secretKey: KEY, webhookUrl: '', webhookSecrets: [SECRET], retriesMs: RETRIES_MS });
  shop = {
    ops: operator(5_000),
    provider: new Provider({ url: await standIn.listen(), secretKey: KEY }),
    webhookSecrets: ['whsec_of_last_year', SECRET],
    buyerOf: ({ headers }: { headers: Record<string, string> }) => headers['x-signed-in'],
    log: (text: unknown) => logged.push(text),
  };
  server = createShop(shop);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  standIn.account.webhookUrl = `${origin}/provider/events`;
});
afterEach(() => {
  standIn.close();
  server.closeAllConnections();
  server.close();
});

interface Taken {
  readonly saleId: string;
  readonly orderId: string;
}

/** Anna takes an order. */
async function take(spec: Record<string, unknown> = {}, quantity = 1): Promise<Taken> {
  const saleId = await makeSale(node, { ...PRICE, payWithinSeconds: 3_600, perBuyerLimit: 2, ...spec });
  const { body } = await node.buy(saleId, 'anna', { quantity });
  return { saleId, orderId: body.orderId };
}

async function ask(method: 'GET' | 'POST', orderId: string, buyer = 'anna') {
  const headers = { 'x-signed-in': buyer };
  const response = await fetch(`${origin}/orders/${orderId}/payment`, { method, headers });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

/** Anna begins to pay at the shop. @returns the payment's id */
async function begin(orderId: string): Promise<string> {
  const { status, body } = await ask('POST', orderId);
  expect(status).toBe(200);
  return body.clientSecret!.split('_secret_')[0]!;
}

async function atProvider(path: string, fields: Record<string, string>): Promise<number> {
  const url = `http://127.0.0.1:${standIn.server.address().port}${path}`;
  const headers = { authorization: `Bearer ${KEY}` };
  return (await fetch(url, { method: 'POST', headers, body: new URLSearchParams(fields) })).status;
}

/** What the provider's script does in Anna's browser. */
const confirm = (intentId: string, card = 'pm_card_visa') =>
  atProvider(`/v1/payment_intents/${intentId}/confirm`, { payment_method: card });

const order = async (orderId: string) => (await node.opsRequest(`/v1/orders/${orderId}`)).body;
const becomes = (orderId: string, state: Record<string, unknown>) =>
  until(
    async () => {
      expect(await order(orderId)).toMatchObject(state);
      return true;
    },
    { what: `order ${orderId} is ${JSON.stringify(state)}` },
  );
const states = (intentId: string) => standIn.refundsOf(intentId).map((one: { status: string }) => one.status);
const eventsOf = (type: string) => standIn.events.filter((event: { type: string }) => event.type === type);

/** Anna's time to pay is over, while her payment is on its way. Orders that are taken from now on do not expire. */
async function late(spec: Record<string, unknown> = {}) {
  const { saleId, orderId } = await take({ payWithinSeconds: 1, ...spec });
  await becomes(orderId, { status: 'expired' });
  await node.ops.change(saleId, { action: 'edit', payWithinSeconds: null }, BY);
  const intent = await shop.provider.createIntent({ orderId, amount: 4_900, currency: 'eur' });
  return { saleId, orderId, intentId: intent.id as string };
}

describe('a payment in time', () => {
  test('is counted for the order, and the buyer is told', async () => {
    const { saleId, orderId } = await take({}, 2);
    const begun = await ask('POST', orderId);
    expect(begun).toMatchObject({ status: 200, body: { amount: 9_800, currency: 'EUR' } });
    const intentId = await begin(orderId);
    expect(begun.body.clientSecret).toContain(`${intentId}_secret_`);
    expect((await ask('GET', orderId)).body).toMatchObject({ code: 'to_pay', payUntil: begun.body.payUntil });
    await confirm(intentId);
    await becomes(orderId, { status: 'paid', payType: 'card' });
    expect((await ask('GET', orderId)).body).toEqual({ code: 'paid', orderId });
    expect(await ask('POST', orderId)).toMatchObject({ status: 409, body: { code: 'paid' } });
    expect(await order(orderId)).toMatchObject({
      changes: [{ change: 'pay', actor: 'payments', reason: intentId }],
    });
    await expectSold(node, saleId, 2);
  });

  test('that fails first may be tried again', async () => {
    const { orderId } = await take();
    const intentId = await begin(orderId);
    expect(await confirm(intentId, 'pm_card_declined')).toBe(402);
    expect(await settle(shop, intentId)).toBe('not paid');
    await confirm(intentId);
    await becomes(orderId, { status: 'paid' });
  });

  test('is begun for the own order only, and only with a session', async () => {
    const { orderId } = await take();
    for (const [id, buyer] of [
      [orderId, 'bob'],
      ['1', 'anna'],
      ['x', 'anna'],
    ] as const)
      for (const method of ['GET', 'POST'] as const)
        expect(await ask(method, id, buyer)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    expect((await fetch(`${origin}/orders/${orderId}/payment`, { method: 'POST' })).status).toBe(404);
  });

  test('is not reported by the buyer: the public port refuses it', async () => {
    const { orderId } = await take();
    const headers = { 'x-buyer-id': 'anna' };
    const answer = await node.request(`/v1/orders/${orderId}/pay`, {
      ...{ method: 'POST', headers, body: '{"payType":"card"}' },
    });
    expect(answer).toMatchObject({ status: 403, code: 'operators_only' });
  });
});

describe('webhooks', () => {
  test('that come twice, and twice at the same time, count once', async () => {
    const { saleId, orderId } = await take();
    standIn.isHolding = true;
    const intentId = await begin(orderId);
    await confirm(intentId);
    const [event] = standIn.events;
    expect(await Promise.all([standIn.deliver(event), standIn.deliver(event)])).toEqual([200, 200]);
    expect(await standIn.deliver(event)).toBe(200);
    expect(await order(orderId)).toMatchObject({ status: 'paid', changes: [{ reason: intentId }] });
    expect(states(intentId)).toEqual([]);
    await expectSold(node, saleId, 1);
  });

  test('in the wrong order lead to the same end: a failure after the success, a refund before the payment', async () => {
    const { orderId } = await take();
    standIn.isHolding = true;
    const intentId = await begin(orderId);
    await confirm(intentId, 'pm_card_declined');
    await confirm(intentId);
    const [failed, succeeded] = standIn.events;
    expect([await standIn.deliver(succeeded), await standIn.deliver(failed)]).toEqual([200, 200]);
    expect(await order(orderId)).toMatchObject({ status: 'paid' });

    const other = await take();
    const refunded = await begin(other.orderId);
    await confirm(refunded);
    await shop.provider.refund({ id: refunded });
    expect(await standIn.deliver(eventsOf('refund.created')[0])).toBe(200);
    expect(await order(other.orderId)).toMatchObject({ status: 'refunded' });
    expect(await standIn.deliver(eventsOf('payment_intent.succeeded')[1])).toBe(200);
    expect(await order(other.orderId)).toMatchObject({ status: 'refunded' });
    await expectSold(node, other.saleId, 0);
  });

  test('about payments that are not ours are answered, and change nothing', async () => {
    const foreign = await shop.provider.createIntent({ orderId: '', amount: 100, currency: 'eur' });
    await confirm(foreign.id);
    expect(await settle(shop, foreign.id)).toBe('not ours');
    expect(await standIn.deliver({ type: 'customer.created', data: { object: { id: 'cus_1' } } })).toBe(200);
    expect(states(foreign.id)).toEqual([]);
  });

  test('with a bad signature are answered 400, and change nothing', async () => {
    const { orderId } = await take();
    standIn.isHolding = true;
    await confirm(await begin(orderId));
    const [event] = standIn.events;
    expect(await standIn.deliver(event, ['another secret'])).toBe(400);
    expect(await standIn.deliver(event, [])).toBe(400);
    expect(await order(orderId)).toMatchObject({ status: 'unpaid', changes: [] });
    // While the provider replaces its secret, it signs with both.
    expect(await standIn.deliver(event, ['another secret', SECRET])).toBe(200);
    expect(await order(orderId)).toMatchObject({ status: 'paid' });
  });

  test('that are too large are refused', async () => {
    const body = 'x'.repeat(1024 * 1024 + 1);
    expect((await fetch(standIn.account.webhookUrl, { method: 'POST', body })).status).toBe(413);
  });

  test('a shop without a secret does not start', () => {
    for (const webhookSecrets of [[], [''], [SECRET, '']])
      expect(() => createShop({ ...shop, webhookSecrets, buyerOf: () => undefined })).toThrow(/secret/);
  });
});

describe('a second payment for one order', () => {
  test('is paid back, whichever webhook comes first; the first one stays', async () => {
    const { saleId, orderId } = await take();
    standIn.isHolding = true;
    const first = await begin(orderId);
    const fields = { orderId, amount: 4_900, currency: 'eur' };
    // Another key, as after the day for which the provider remembers keys.
    standIn.forgetKeys();
    const second = (await shop.provider.createIntent(fields)).id;
    expect(second).not.toBe(first);
    await confirm(first);
    await confirm(second);
    const [ofFirst, ofSecond] = standIn.events;
    for (const event of [ofSecond, ofFirst, ofSecond, ofFirst])
      expect(await standIn.deliver(event)).toBe(200);
    expect(states(second)).toEqual([]);
    expect(states(first)).toEqual(['succeeded']);
    for (const event of eventsOf('refund.created')) expect(await standIn.deliver(event)).toBe(200);
    expect(await order(orderId)).toMatchObject({ status: 'paid', changes: [{ reason: second }] });
    await expectSold(node, saleId, 1);
  });

  test('by other means is paid back too, and so is a payment for a cancelled order', async () => {
    const byBalance = await take();
    const one = await begin(byBalance.orderId);
    await shop.ops.pay(byBalance.orderId, 'balance', 'voucher');
    await confirm(one);
    const cancelled = await take();
    const two = await begin(cancelled.orderId);
    await shop.ops.cancel(cancelled.orderId);
    await confirm(two);
    for (const intentId of [one, two])
      await until(() => states(intentId).length === 1, { what: `${intentId} is paid back` });
    expect((await ask('GET', cancelled.orderId)).body).toMatchObject({ code: 'cancelled' });
  });
});

describe('a late payment', () => {
  test('takes the units again if there are any, and the buyer is told of the new order', async () => {
    const { saleId, orderId, intentId } = await late();
    expect((await ask('POST', orderId)).body).toMatchObject({ code: 'expired' });
    await confirm(intentId);
    const paidLate = async () => {
      const { body } = await ask('GET', orderId);
      return body.code === 'paid_late' && body.orderId;
    };
    const retakenBy = (await until(paidLate, { what: 'the buyer is told of the new order' })) as string;
    expect(await order(retakenBy)).toMatchObject({ status: 'paid', changes: [{ reason: intentId }] });
    expect(await settle(shop, intentId)).toBe('counted late');
    expect(states(intentId)).toEqual([]);
    await expectSold(node, saleId, 1);

    expect(await refundOrder(shop, retakenBy)).toBe('refunded');
    expect(await order(retakenBy)).toMatchObject({ status: 'refunded' });
    await expectSold(node, saleId, 0);
  });

  test('is paid back if the units are gone; the order is marked once the provider has paid', async () => {
    const { saleId, orderId, intentId } = await late({ stock: 1 });
    expect(await node.buy(saleId, 'bob')).toMatchObject({ status: 201 });
    standIn.refundStatus = 'pending';
    await confirm(intentId);
    const [refund] = await until(() => eventsOf('refund.created').length > 0 && standIn.refundsOf(intentId), {
      what: 'the refund is under way',
    });
    expect((await ask('GET', orderId)).body).toEqual({ code: 'refund_due', orderId });
    // Repetitions do not pay back twice.
    expect(await sweep(shop)).toEqual([]);
    expect(await settle(shop, intentId)).toBe('refunding');
    expect(await order(orderId)).toMatchObject({ status: 'expired', refundDue: true });
    standIn.endRefund(refund.id);
    await becomes(orderId, { status: 'expired', refundedAt: expect.any(String) });
    expect(states(intentId)).toEqual(['succeeded']);
    expect((await ask('GET', orderId)).body).toEqual({ code: 'refunded', orderId });
    expect(await settle(shop, intentId)).toBe('refunded');
    await expectSold(node, saleId, 1);
  });

  test('for a paused sale is repeated by the provider until the sale goes on', async () => {
    const { saleId, orderId, intentId } = await late();
    await node.ops.change(saleId, { action: 'pause' }, BY);
    await confirm(intentId);
    await until(() => logged.length > 0, { what: 'the webhook is answered 503' });
    expect(String(logged[0])).toContain('wrong_state');
    await node.ops.change(saleId, { action: 'resume' }, BY);
    await until(async () => (await ask('GET', orderId)).body.code === 'paid_late', { what: 'it is counted' });
  });

  test.each(['failed', 'canceled'])(
    'whose refund is %s is left to a human, and is not tried for ever',
    async (end) => {
      const { saleId, orderId, intentId } = await late({ stock: 1 });
      expect(await node.buy(saleId, 'bob')).toMatchObject({ status: 201 });
      [standIn.isHolding, standIn.refundStatus] = [true, 'pending'];
      await confirm(intentId);
      expect(await settle(shop, intentId)).toBe('refunding');
      standIn.endRefund(standIn.refundsOf(intentId)[0].id, end);
      const failures = await sweep(shop);
      const ours = failures.find(({ message }: Error) => message.includes(orderId));
      expect(String(ours.cause)).toMatch(/refund of pi_\w+ has failed/);
      expect(states(intentId)).toEqual([end]);
      expect(await shop.ops.refund(orderId, 'paid back by bank transfer')).toMatchObject({ code: 'done' });
      expect(await sweep(shop)).toEqual([]);
      // The money went back in another way: a repeated webhook pays nothing back.
      for (const event of standIn.events) expect(await standIn.deliver(event)).toBe(200);
      expect(states(intentId)).toEqual([end]);
    },
  );
});

describe('when something does not answer', () => {
  test.each(['busy', 'unavailable', 'unknown', 'internal', 'unknown_order'] as const)(
    'Stockade answers %s: the webhook is answered 503, nothing is paid back, and a repetition succeeds',
    async (code) => {
      const { orderId } = await take();
      standIn.isHolding = true;
      const intentId = await begin(orderId);
      await confirm(intentId);
      const { status, body } = problem(code, {} as never);
      const patient = shop.ops;
      shop.ops = operator(50, (path) => (path.endsWith('/pay') ? new Response(body, { status }) : undefined));
      const [event] = standIn.events;
      expect(await standIn.deliver(event)).toBe(503);
      expect(String(logged[0])).toContain(`pay ${orderId}: Stockade answered`);
      expect(await order(orderId)).toMatchObject({ status: 'unpaid' });
      shop.ops = patient;
      expect(await standIn.deliver(event)).toBe(200);
      expect(await order(orderId)).toMatchObject({ status: 'paid' });
      expect(states(intentId)).toEqual([]);
    },
  );

  test('the answer to the report is lost after it was counted: the repetition does not pay back', async () => {
    const { orderId } = await take();
    const intentId = await begin(orderId);
    let reports = 0;
    const ops = operator(5_000);
    const losing = {
      order: (id: string) => ops.order(id),
      pay: async (...args: Parameters<OperatorClient['pay']>) => {
        const answer = await ops.pay(...args);
        return ++reports === 1 ? { code: 'unknown', title: 'No answer came' } : answer;
      },
    };
    shop.ops = losing as unknown as OperatorClient;
    await confirm(intentId);
    await until(() => reports === 2, { what: 'the provider has repeated the webhook' });
    expect(await settle(shop, intentId)).toBe('counted');
    expect(await order(orderId)).toMatchObject({ status: 'paid' });
    expect(states(intentId)).toEqual([]);
  });

  test('the provider: nothing is changed, and the buyer may try again', async () => {
    const { orderId } = await take();
    const { provider } = shop;
    shop.provider = new Provider({ url: 'http://127.0.0.1:1', secretKey: KEY });
    expect(await ask('POST', orderId)).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    shop.provider = provider;
    expect((await ask('POST', orderId)).status).toBe(200);
  });

  test('the shop dies between the refund at the provider and the note in Stockade: the sweep of the next one finishes', async () => {
    const { saleId, orderId, intentId } = await late({ stock: 1 });
    expect(await node.buy(saleId, 'bob')).toMatchObject({ status: 201 });
    standIn.isHolding = true;
    await confirm(intentId);
    const ops = operator(5_000);
    const dying = {
      order: (id: string) => ops.order(id),
      pay: (...args: Parameters<OperatorClient['pay']>) => ops.pay(...args),
      refund: () => Promise.reject(new Error('the process died')),
    };
    await expect(settle({ ...shop, ops: dying }, intentId)).rejects.toThrow('the process died');
    expect(states(intentId)).toEqual(['succeeded']);
    expect(await order(orderId)).toMatchObject({ status: 'expired', refundDue: true });
    expect(await sweep({ ops: operator(5_000), provider: shop.provider })).toEqual([]);
    expect(await order(orderId)).toMatchObject({ status: 'expired', refundedAt: expect.any(String) });
    expect(states(intentId)).toEqual(['succeeded']);
    // The webhooks that the dead process did not take change nothing any more.
    for (const event of standIn.events) expect(await standIn.deliver(event)).toBe(200);
    expect(states(intentId)).toEqual(['succeeded']);
    await expectSold(node, saleId, 1);
  });
});

describe('a refund by the operator', () => {
  test('pays back once, and puts the units on sale when the money is back', async () => {
    const { saleId, orderId } = await take();
    const intentId = await begin(orderId);
    await confirm(intentId);
    await becomes(orderId, { status: 'paid' });
    standIn.refundStatus = 'pending';
    expect(await refundOrder(shop, orderId)).toBe('counted');
    expect(await refundOrder(shop, orderId)).toBe('counted');
    expect(await order(orderId)).toMatchObject({ status: 'paid' });
    const [refund, ...others] = standIn.refundsOf(intentId);
    expect(others).toEqual([]);
    standIn.endRefund(refund.id);
    await becomes(orderId, { status: 'refunded' });
    await expectSold(node, saleId, 0);
    expect(await refundOrder(shop, orderId)).toBe('refunded');
    expect(states(intentId)).toEqual(['succeeded']);
  });

  test('at the provider is noted by its webhook; a refund of a part is not', async () => {
    const { orderId } = await take();
    const intentId = await begin(orderId);
    await confirm(intentId);
    await becomes(orderId, { status: 'paid' });
    standIn.isHolding = true;
    await atProvider('/v1/refunds', { payment_intent: intentId, amount: '900' });
    expect(await standIn.deliver(standIn.events.at(-1))).toBe(200);
    expect(await order(orderId)).toMatchObject({ status: 'paid' });
    await atProvider('/v1/refunds', { payment_intent: intentId });
    expect(await standIn.deliver(standIn.events.at(-1))).toBe(200);
    expect(await order(orderId)).toMatchObject({ status: 'refunded' });
  });

  test('that was noted in Stockade first is completed at the provider', async () => {
    const { orderId } = await take();
    const intentId = await begin(orderId);
    await confirm(intentId);
    await becomes(orderId, { status: 'paid' });
    await shop.ops.refund(orderId);
    expect(await refundOrder(shop, orderId)).toBe('refunded');
    expect(states(intentId)).toEqual(['succeeded']);
  });

  test('of an order that is not paid is refused; what was handed out stays handed out', async () => {
    const { orderId } = await take();
    await expect(refundOrder(shop, orderId)).rejects.toThrow(`Order ${orderId} is unpaid`);
    const intentId = await begin(orderId);
    await confirm(intentId);
    await becomes(orderId, { status: 'paid' });
    await shop.ops.redeem(orderId);
    await expect(refundOrder(shop, orderId)).rejects.toThrow(`Order ${orderId} is redeemed`);
    expect(states(intentId)).toEqual([]);
    await atProvider('/v1/refunds', { payment_intent: intentId });
    expect(await settle(shop, intentId)).toBe('refunded');
    expect(await order(orderId)).toMatchObject({ status: 'redeemed' });
  });
});
