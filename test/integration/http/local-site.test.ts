/**
 * Requests of other sites' web pages to a node on the loopback that trusts a header: every route with a buyer refuses
 * them.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import { type Answer, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { expectSold, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';

let node: TestNode;
let sale: string;
let orderId: string;

async function ask(method: string, path: string, headers: Record<string, string>): Promise<Answer> {
  using connection = await RawConnection.open(node.publicUrl);
  await connection.send(
    rawRequest(method, path, { 'X-Buyer-Id': 'ann', ...headers }, method === 'GET' ? undefined : ''),
  );
  return (await connection.answer())!;
}

async function begin(env: Record<string, string> = {}): Promise<void> {
  node = await startTestNode({
    ...(await redisAndPostgres()),
    env: { WORKERS: '1', PUBLIC_PAYMENT: '1', ...env },
  });
  sale = await makeSale(node, { stock: 10, perBuyerLimit: 10 });
  orderId = (await node.buy(sale, 'ann')).body.orderId;
}

const end = () => node?.[Symbol.asyncDispose]();

describe('without a gateway', () => {
  beforeAll(() => begin());
  afterAll(end);

  const routes = () => [
    ['POST', `/v1/sales/${sale}/orders`],
    ['POST', `/v1/sales/${sale}/tokens`],
    ['GET', `/v1/orders/${orderId}`],
    ...['pay', 'cancel', 'redeem'].map((change) => ['POST', `/v1/orders/${orderId}/${change}`]),
  ];

  test.each([
    [
      'a host name that resolves to this machine (DNS rebinding)',
      { Host: 'evil.example:8080', Origin: 'http://evil.example:8080' },
    ],
    ['another site', { Host: 'localhost:8080', Origin: 'https://evil.example' }],
    ['a page without an origin', { Host: 'localhost:8080', Origin: 'null' }],
  ])('%s is refused everywhere', async (_, headers) => {
    for (const [method, path] of routes()) {
      const answer = await ask(method!, path!, headers);
      expect(answer, path).toMatchObject({ status: 403, code: 'forbidden' });
      expect(answer.body.detail).toMatch(/web page of another site.*TRUST_BUYER_HEADER=1/);
    }
    expect(await node.request(`/v1/orders/${orderId}`, { headers: { 'x-buyer-id': 'ann' } })).toMatchObject({
      code: 'unpaid',
    });
    await expectSold(node, sale, 1);
  });

  test('a page gets no permission by preflight to name a buyer', async () => {
    const preflight = { Origin: 'https://evil.example', 'Access-Control-Request-Headers': 'x-buyer-id' };
    const answer = await ask('OPTIONS', `/v1/sales/${sale}/orders`, preflight);
    expect(answer.status).toBe(405);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  test('this machine’s own pages and programs buy, and any page reads the sale', async () => {
    const own = { Host: 'localhost:8080', Origin: 'http://localhost:3000' };
    expect(await ask('POST', `/v1/sales/${sale}/orders`, own)).toMatchObject({ status: 201 });
    expect(await ask('GET', `/v1/sales/${sale}`, { Host: 'evil.example' })).toMatchObject({ status: 200 });
  });
});

describe('behind a gateway on the same machine', () => {
  beforeAll(() => begin({ TRUST_BUYER_HEADER: '1' }));
  afterAll(end);

  test('buyers use the shop’s host name', async () => {
    const shop = { Host: 'shop.example', Origin: 'https://shop.example' };
    expect(await ask('POST', `/v1/sales/${sale}/orders`, shop)).toMatchObject({ status: 201 });
    expect(await ask('GET', `/v1/orders/${orderId}`, shop)).toMatchObject({ status: 200 });
  });
});
