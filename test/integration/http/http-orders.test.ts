/** Orders after their purchase, as buyers, operators and the command line see them. */
import { userInfo } from 'node:os';
import { describe, expect, test } from 'vitest';
import { callCli } from '../../support/cli/cli.ts';
import { until } from '../../support/fixtures.ts';
import { type Answer, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import {
  expectBalanced,
  expectSold,
  makeSale,
  onEachStore,
  redisAndPostgres,
} from '../../support/nodes/stores.ts';
import { query } from '../../support/shop/truth.ts';
import { inTier, isRelease } from '../../support/tier.ts';

const CARD = '{"payType":"card"}';
/** Nodes whose buyers pay and redeem at the public port. */
const PUBLIC_PAYMENT = { PUBLIC_PAYMENT: '1' };

/** The changes that a buyer can make to an order. */
const act = (node: TestNode, orderId: string, buyer: string, action: string, body = '') =>
  node.request(`/v1/orders/${orderId}/${action}`, {
    method: 'POST',
    headers: { 'x-buyer-id': buyer },
    body,
  });
const pay = (node: TestNode, orderId: string, buyer: string) => act(node, orderId, buyer, 'pay', CARD);
const read = (node: TestNode, orderId: string, buyer: string) =>
  node.request(`/v1/orders/${orderId}`, { headers: { 'x-buyer-id': buyer } });
const operate = (node: TestNode, orderId: string, action: string, body = '') =>
  node.opsRequest(`/v1/orders/${orderId}/${action}`, { method: 'POST', body });

async function bought(node: TestNode, saleId: string, buyer: string): Promise<string> {
  const answer = await node.buy(saleId, buyer);
  expect(answer).toMatchObject({ status: 201 });
  return answer.body.orderId;
}

/** A sale whose only order was not paid in time. */
async function expired(node: TestNode, stock: number): Promise<{ saleId: string; orderId: string }> {
  const saleId = await makeSale(node, { stock, payWithinSeconds: 1 });
  const orderId = await bought(node, saleId, 'ann');
  await until(async () => (await read(node, orderId, 'ann')).body.status === 'expired', {
    what: 'the order expires',
  });
  return { saleId, orderId };
}

function expectRetaken(answer: Answer, late: string): string {
  expect(answer).toMatchObject({ status: 200, body: { status: 'paid', retaken: true, replaces: late } });
  expect(answer.body.orderId).not.toBe(late);
  return answer.body.orderId;
}

onEachStore((stage) => {
  test('a buyer pays and redeems an order; repetitions get the same answer', async () => {
    const { node } = stage;
    const saleId = await stage.sale({ payWithinSeconds: 60 });
    const orderId = await bought(node, saleId, 'ann');
    const unpaid = (await read(node, orderId, 'ann')).body;
    expect(Object.keys(unpaid).sort()).toEqual(
      ['committedAt', 'expiresAt', 'orderId', 'quantity', 'saleId', 'status'].sort(),
    );
    const paid = await pay(node, orderId, 'ann');
    expect(paid).toMatchObject({ status: 200, body: { ...unpaid, status: 'paid', payType: 'card' } });
    expect((await pay(node, orderId, 'ann')).body).toEqual(paid.body);
    const redeemed = await act(node, orderId, 'ann', 'redeem', '{}');
    expect(redeemed).toMatchObject({ status: 200, body: { ...paid.body, status: 'redeemed' } });
    expect((await pay(node, orderId, 'ann')).body).toEqual(redeemed.body);
    expect((await read(node, orderId, 'ann')).body).toEqual(redeemed.body);
    expect((await node.opsRequest(`/v1/orders/${orderId}`)).body).toEqual({
      ...redeemed.body,
      ...{ buyerId: 'ann', changes: [] },
    });
    await expectSold(node, saleId, 1);
  });

  test('the unit of a cancelled order is sold again in a sale that was sold out', async () => {
    const { node } = stage;
    const saleId = await stage.sale({ stock: 1 });
    const orderId = await bought(node, saleId, 'ann');
    expect((await node.buy(saleId, 'bob')).code).toBe('sold_out');
    expect(await act(node, orderId, 'ann', 'cancel')).toMatchObject({
      status: 200,
      body: { status: 'cancelled', cancelledAt: expect.any(String) },
    });
    await until(async () => (await node.buy(saleId, 'bob', { key: 'until-sold' })).status === 201, {
      what: 'bob buys',
    });
    await expectSold(node, saleId, 1);
  });

  test('operators pay, redeem, cancel and refund any order', async () => {
    const { node } = stage;
    const saleId = await stage.sale();
    const [first, second, third] = [
      await bought(node, saleId, 'ann'),
      await bought(node, saleId, 'bob'),
      await bought(node, saleId, 'cid'),
    ];
    expect(await operate(node, first, 'pay', CARD)).toMatchObject({ status: 200, body: { buyerId: 'ann' } });
    expect(await operate(node, first, 'redeem')).toMatchObject({ status: 200, code: 'redeemed' });
    expect(await operate(node, second, 'pay', CARD)).toMatchObject({ status: 200, code: 'paid' });
    expect(await operate(node, second, 'refund')).toMatchObject({ status: 200, code: 'refunded' });
    expect(await operate(node, third, 'cancel')).toMatchObject({ status: 200, code: 'cancelled' });
    await until(async () => (await node.ops.show(saleId)).remaining === 9, { what: 'the units are back' });
    await expectSold(node, saleId, 1);
  });

  test('operators see which operator changed an order, and why; its buyer does not', async () => {
    const { node } = stage;
    const orderId = await bought(node, await stage.sale(), 'ann');
    await operate(node, orderId, 'pay', CARD);
    const refunded = await node.opsRequest(`/v1/orders/${orderId}/refund`, {
      ...{ method: 'POST', body: '{"reason":"fell ill"}', headers: { 'x-operator': 'otto' } },
    });
    expect(refunded).toMatchObject({ status: 200, code: 'refunded' });
    const { body } = await node.opsRequest(`/v1/orders/${orderId}`);
    expect(body.changes).toEqual([
      { change: 'pay', at: body.paidAt, actor: 'ops token', reason: '' },
      { change: 'refund', at: body.refundedAt, actor: 'otto', reason: 'fell ill' },
    ]);
    const { body: shown } = await read(node, orderId, 'ann');
    expect(shown).toMatchObject({ status: 'refunded' });
    expect(JSON.stringify(shown)).not.toMatch(/changes|otto|fell ill|ops token/);
  });

  test('a payment after the time to pay takes the unit again, once', async () => {
    const { node } = stage;
    const { saleId, orderId } = await expired(node, 2);
    const first = await pay(node, orderId, 'ann');
    const retaken = expectRetaken(first, orderId);
    expect((await pay(node, orderId, 'ann')).body).toEqual(first.body);
    expectRetaken(await operate(node, orderId, 'pay', CARD), orderId);
    expect((await read(node, orderId, 'ann')).body).toMatchObject({ status: 'expired', retakenBy: retaken });
    await expectSold(node, saleId, 1);
  });

  test('an operator’s late payment takes the unit again too', async () => {
    const { saleId, orderId } = await expired(stage.node, 2);
    expectRetaken(await operate(stage.node, orderId, 'pay', CARD), orderId);
    await expectSold(stage.node, saleId, 1);
  });

  test('a payment after the unit was sold to another is listed until it is refunded', async () => {
    const { node } = stage;
    const due = async (query = '') => (await node.opsRequest(`/v1/refunds-due${query}`)).body.orders;
    const { saleId, orderId } = await expired(node, 1);
    await until(async () => (await node.buy(saleId, 'bob', { key: 'until-sold' })).status === 201, {
      what: 'bob buys',
    });
    const late = await pay(node, orderId, 'ann');
    expect(late).toMatchObject({ status: 409, code: 'expired', body: { refundDue: true } });
    expect((await read(node, orderId, 'ann')).body).toMatchObject({ status: 'expired', refundDue: true });
    expect(await due(`?saleId=${saleId}`)).toMatchObject([{ orderId, buyerId: 'ann', payType: 'card' }]);
    expect(await due(`?saleId=${await stage.sale()}`)).toEqual([]);
    const mistyped = await node.opsRequest('/v1/refunds-due?saleId=mistyped');
    expect(mistyped).toMatchObject({ status: 404, code: 'unknown_sale' });
    // Otherwise the refunds of all sales would be taken for those of one.
    const misspelt = await node.opsRequest(`/v1/refunds-due?sale=${saleId}`);
    expect(misspelt).toMatchObject({
      status: 400,
      code: 'invalid_request',
      body: { faults: [{ field: 'sale' }] },
    });
    expect(await operate(node, orderId, 'refund')).toMatchObject({ status: 200, code: 'expired' });
    expect(await due()).toEqual([]);
    expect((await pay(node, orderId, 'ann')).body).toMatchObject({ code: 'expired', refundDue: false });
    await until(async () => (await node.buy(saleId, 'cid')).code === 'sold_out', { what: 'nothing is left' });
    await expectBalanced(node, saleId);
  });

  test('a change that the status does not allow is refused, and the answer names the status', async () => {
    const { node } = stage;
    const orderId = await bought(node, await stage.sale(), 'ann');
    const refused = (orderStatus: string) => ({
      status: 409,
      code: 'wrong_status',
      body: { orderStatus },
    });
    expect(await act(node, orderId, 'ann', 'redeem')).toMatchObject(refused('unpaid'));
    await pay(node, orderId, 'ann');
    expect(await act(node, orderId, 'ann', 'cancel')).toMatchObject(refused('paid'));
    expect(await act(node, orderId, 'ann', 'pay', '{"payType":"alipay"}')).toMatchObject(refused('paid'));
  });

  test('a change with unknown fields is refused at both ports', async () => {
    const { node } = stage;
    const orderId = await bought(node, await stage.sale(), 'ann');
    const refused = (answer: Answer, field: string, problem: string) =>
      expect(answer).toMatchObject({ status: 400, body: { faults: [{ field, problem }] } });
    expect(await act(node, orderId, 'ann', 'cancel', '{"reason":"sick"}')).toMatchObject({ status: 400 });
    const unknown = await operate(node, orderId, 'cancel', '{"why":"sick"}');
    refused(unknown, 'why', 'is not a field of this change');
    const long = JSON.stringify({ reason: 'x'.repeat(501) });
    refused(await operate(node, orderId, 'cancel', long), 'reason', 'must have at most 500 characters');
    const nobody = { method: 'POST', headers: { 'x-operator': 'x'.repeat(201) } } as const;
    expect(await node.opsRequest(`/v1/orders/${orderId}/cancel`, nobody)).toMatchObject({ status: 400 });
    expect((await read(node, orderId, 'ann')).body.status).toBe('unpaid');
    expect(await operate(node, orderId, 'cancel', '{}')).toMatchObject({ status: 200, code: 'cancelled' });
  });

  test('a buyer can’t change the order of another, and only operators refund', async () => {
    const { node } = stage;
    const orderId = await bought(node, await stage.sale(), 'ann');
    for (const action of ['pay', 'cancel', 'redeem']) {
      const body = action === 'pay' ? CARD : '';
      expect(await act(node, orderId, 'bob', action, body)).toMatchObject({ status: 403, code: 'forbidden' });
      const path = `/v1/orders/${orderId}/${action}`;
      expect(await node.request(path, { method: 'POST', body })).toMatchObject({ code: 'unauthenticated' });
      const headers = { authorization: 'Bearer wrong' };
      expect(await node.opsRequest(path, { method: 'POST', body, headers })).toMatchObject({ status: 401 });
      expect(await node.request(path, { headers: { 'x-buyer-id': 'ann' } })).toMatchObject({ status: 405 });
    }
    expect(await act(node, orderId, 'ann', 'refund')).toMatchObject({ status: 404, code: 'not_found' });
    expect((await read(node, orderId, 'ann')).body.status).toBe('unpaid');
  });

  test('a missing order is unknown to buyers and operators, also if its id is of this second', async () => {
    const { node } = stage;
    const young = await bought(node, await stage.sale(), 'ann');
    const near = String(BigInt(young) ^ 1n);
    for (const id of ['1', '9223372036854775808', 'nonsense', near]) {
      expect(await pay(node, id, 'ann')).toMatchObject({ status: 404, code: 'unknown_order' });
      const answer = await operate(node, id, 'cancel');
      expect(answer).toMatchObject({ status: 404, code: 'unknown_order' });
      expect(answer.headers['retry-after']).toBeUndefined();
      expect(await node.opsRequest(`/v1/orders/${id}`)).toMatchObject({ status: 404, code: 'unknown_order' });
    }
  });

  test.each([
    ['pay', ''],
    ['pay', '{}'],
    ['pay', '{"payType":"gold"}'],
    ['pay', '{"payType":"card","amount":1}'],
    ['pay', '{"payType":"card"'],
    ['pay', '[]'],
    ['pay', 'null'],
    ['cancel', '{"why":"so"}'],
    ['redeem', '7'],
  ])('%s with the body %j is refused, and nothing is done', async (action, body) => {
    const { node } = stage;
    const orderId = await bought(node, await stage.sale(), 'ann');
    const refused = { status: 400, code: 'invalid_request', body: { detail: expect.any(String) } };
    expect(await act(node, orderId, 'ann', action, body)).toMatchObject(refused);
    if (action === 'pay') expect(await operate(node, orderId, action, body)).toMatchObject(refused);
    expect((await read(node, orderId, 'ann')).body.status).toBe('unpaid');
  });

  test('a body that is too long is refused', async () => {
    const orderId = await bought(stage.node, await stage.sale(), 'ann');
    const body = JSON.stringify({ payType: 'x'.repeat(5_000) });
    expect(await act(stage.node, orderId, 'ann', 'pay', body)).toMatchObject({ status: 413 });
  });

  test('clients can’t use the keys of late payments', async () => {
    const answer = await stage.node.buy(await stage.sale(), 'ann', { key: 'retake:1' });
    expect(answer).toMatchObject({ status: 400, code: 'invalid_request' });
    expect(answer.body.detail).toContain('retake:');
  });

  test('expired orders are counted', async () => {
    await expired(stage.node, 1);
    const { body } = await stage.node.opsRequest('/metrics');
    expect(Number(/^stockade_expired_orders_total (\d+)$/m.exec(body)?.[1])).toBeGreaterThan(0);
  });
}, PUBLIC_PAYMENT);

describe('on Redis and Postgres', () => {
  test('an accepted order can’t be changed before it is in Postgres', async () => {
    await using node = await startTestNode({
      ...(await redisAndPostgres()),
      env: { SYNC: 'off', ...PUBLIC_PAYMENT },
    });
    const saleId = await makeSale(node);
    const { body } = await node.buy(saleId, 'ann', { prefer: 'respond-async' });
    const answer = await pay(node, body.orderId, 'ann');
    expect(answer).toMatchObject({
      status: 409,
      code: 'wrong_status',
      body: { orderStatus: 'accepted' },
      headers: { 'retry-after': '1' },
    });
    expect(await pay(node, body.orderId, 'bob')).toMatchObject({ status: 404, code: 'unknown_order' });
  });

  if (isRelease) {
    test('an order that may still come is not answered as unknown: operators are asked to try again', async () => {
      const stores = await redisAndPostgres();
      await using node = await startTestNode({ ...stores, env: { SYNC: 'off', WORKERS: '1' } });
      const saleId = await makeSale(node, { stock: 20 });
      const accepted = async (buyer: string) =>
        (await node.buy(saleId, buyer, { prefer: 'respond-async' })).body.orderId as string;
      const orderId = await accepted('ann');
      const mayCome = {
        status: 503,
        code: 'unavailable',
        body: { detail: expect.stringContaining('may still come') },
      };
      expect(await node.opsRequest(`/v1/orders/${orderId}`)).toMatchObject(mayCome);
      for (const [action, body] of [
        ['pay', CARD],
        ['cancel', ''],
        ['redeem', ''],
        ['refund', ''],
      ] as const) {
        const answer = await operate(node, orderId, action, body);
        expect(answer, action).toMatchObject(mayCome);
        expect(answer.headers['retry-after']).toBe('1');
      }
      expect((await read(node, orderId, 'ann')).body).toMatchObject({ status: 'accepted' });
      const onStores = {
        REDIS_URL: stores.redisUrl,
        DATABASE_URL: stores.databaseUrl,
        KEY_PREFIX: stores.keyPrefix,
      };
      for (const env of [onStores, { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken }]) {
        const { exitCode, stderr } = await callCli(['order', 'pay', orderId], { env });
        expect({ exitCode, stderr }).toEqual({
          exitCode: 1,
          stderr: expect.stringMatching(/may still (be in an order log|come, because)/),
        });
      }
      await using other = await startTestNode({ ...stores, env: { WORKERS: '1' } });
      expect(await operate(other, orderId, 'pay', CARD)).toMatchObject({ status: 200, code: 'paid' });
      // From here on sync runs: a payment just after the acceptance waits for its order.
      for (let nth = 0; nth < 5; nth++)
        expect(await operate(other, await accepted(`buyer-${nth}`), 'pay', CARD)).toMatchObject({
          status: 200,
        });
      await expectSold(node, saleId, 6);
    });
  }

  test('several cancellations at once, just after the acceptance, are never answered that the order is unknown', async () => {
    const ORDERS = inTier({ test: 40, release: 200 });
    await using node = await startTestNode({ ...(await redisAndPostgres()), env: { WORKERS: '1' } });
    const saleId = await makeSale(node, { stock: ORDERS, segments: 8 });
    const codes = new Set<string>();
    const deed = async (nth: number) => {
      const buyer = `buyer-${nth}`;
      const { orderId } = (await node.buy(saleId, buyer, { prefer: 'respond-async' })).body;
      const said = async (answer: Promise<Answer>) =>
        void codes.add(`${(await answer).status} ${(await answer).code}`);
      const both = () => [said(act(node, orderId, buyer, 'cancel')), said(read(node, orderId, buyer))];
      await Promise.all([both(), both(), both()].flat());
    };
    for (let nth = 0; nth < ORDERS; nth += 20)
      await Promise.all(Array.from({ length: 20 }, (_, i) => deed(nth + i)));
    // `busy` is allowed: the node has too much to do now.
    const allowed = /^(200 (cancelled|accepted|unpaid)|409 wrong_status|503 busy)$/;
    expect([...codes].filter((code) => !allowed.test(code))).toEqual([]);
  });

  test('the command line changes orders, through a node and on the stores themselves', async () => {
    const stores = await redisAndPostgres();
    await using node = await startTestNode({ ...stores, env: { WORKERS: '1' } });
    const saleId = await makeSale(node, { stock: 1, payWithinSeconds: 3_600 });
    const throughNode = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
    const onStores = {
      REDIS_URL: stores.redisUrl,
      DATABASE_URL: stores.databaseUrl,
      KEY_PREFIX: stores.keyPrefix,
    };
    const order = async (args: string, env: Record<string, string>) => {
      const { exitCode, stdout, stderr } = await callCli(['order', ...args.split(' ')], { env });
      return { exitCode, text: stdout + stderr };
    };
    const age = (orderId: string) =>
      query(stores.databaseUrl, "UPDATE orders SET expires_at = now() - interval '1 s' WHERE order_id = $1", [
        orderId,
      ]);
    const first = await bought(node, saleId, 'ann');
    expect(await order(`show ${first}`, throughNode)).toMatchObject({
      exitCode: 0,
      text: expect.stringMatching(/^status +unpaid$/m),
    });
    expect(await order(`redeem ${first} --yes`, throughNode)).toEqual({
      exitCode: 1,
      text: `error: order ${first} is unpaid; only a paid order can be redeemed\n`,
    });
    expect(await order(`cancel ${first} --yes`, throughNode)).toMatchObject({ exitCode: 0 });
    await until(async () => (await node.ops.show(saleId)).remaining === 1, { what: 'the unit is back' });

    const second = await bought(node, saleId, 'bob');
    await age(second);
    const retaken = JSON.parse((await order(`pay ${second} --pay-type wechat --json`, onStores)).text);
    expect(retaken).toMatchObject({ status: 'paid', payType: 'wechat', retaken: true, replaces: second });
    const again = JSON.parse((await order(`pay ${second} --pay-type wechat --json`, throughNode)).text);
    expect(again).toEqual(retaken);
    expect(await order(`refund ${retaken.orderId} --yes --by otto --reason ill`, onStores)).toMatchObject({
      exitCode: 0,
    });

    const third = await bought(node, saleId, 'cid');
    await age(third);
    await until(async () => (await node.buy(saleId, 'dan', { key: 'until-sold' })).status === 201, {
      what: 'dan buys',
    });
    for (const env of [throughNode, onStores]) {
      expect(await order(`pay ${third}`, env)).toEqual({
        exitCode: 1,
        text: `error: order ${third} had expired, and its units are no longer available: give the money back, then refund the order\n`,
      });
      const due = await order('refunds-due', env);
      expect(due).toMatchObject({ exitCode: 0, text: expect.stringContaining(third) });
    }
    expect(await order(`refund ${third} --yes --by otto --reason ill`, throughNode)).toMatchObject({
      exitCode: 0,
    });
    expect(JSON.parse((await order(`show ${third} --json`, onStores)).text).changes).toMatchObject([
      { change: 'pay', actor: userInfo().username, reason: '' },
      { change: 'refund', actor: 'otto', reason: 'ill' },
    ]);
    expect(await order(`refunds-due ${saleId}`, onStores)).toEqual({
      exitCode: 0,
      text: 'No refund is due.\n',
    });
    for (const env of [throughNode, onStores]) {
      expect(await order('refunds-due mistyped', env)).toEqual({
        exitCode: 1,
        text: expect.stringMatching(/^error: there is no sale mistyped$/m),
      });
    }
    expect(await order('show 1', onStores)).toMatchObject({ exitCode: 1 });
    await expectBalanced(node, saleId);
  });
});
