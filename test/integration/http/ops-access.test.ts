/** No client operates a node without its token: every route of the ops port, with every kind of wrong token. */
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callCli } from '../../support/cli/cli.ts';
import { until } from '../../support/fixtures.ts';
import { type OpsRoute, opsRoutes } from '../../support/http/ops-routes.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import type { RequestSpec, TestNode } from '../../support/nodes/node.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { query } from '../../support/shop/truth.ts';

const JWT_SECRET = 'a-secret-of-more-than-32-characters';
/** Routes for health checks, which send no token. Their answers reveal nothing. */
const HEALTH = ['GET /healthz', 'GET /readyz'];
/** The console's page. It has no data before it has the token. */
const PAGE = ['GET /console', 'GET /console/:file'];
/** What the port can do, which the repository says too. Both ports have these routes. */
const DESCRIPTION = ['GET /openapi.json', 'GET /docs', 'GET /problems', 'GET /problems/:code'];
const OPEN = [...HEALTH, ...PAGE, ...DESCRIPTION];
/** For routes that take a body: one that would have an effect. */
const BODIES: Readonly<Record<string, string>> = {
  'POST /v1/sales': '{"id":"smuggled","stock":1}',
  'PATCH /v1/sales/:saleId': '{"action":"close"}',
  'POST /v1/sales/:saleId/verify': '{"repair":true}',
  'POST /v1/orders/:orderId/pay': '{"payType":"card"}',
};

const routes = opsRoutes();
const guarded = routes.filter((route) => !OPEN.includes(nameOf(route)));

let databaseUrl: string;
let node: TestNode;
let saleId: string;
let orderId: string;
let buyersToken: string;

beforeAll(async () => {
  const stores = await redisAndPostgres();
  ({ databaseUrl } = stores);
  node = await startTestNode({ ...stores, env: { BUYER_AUTH: 'jwt', JWT_SECRET } });
  saleId = await makeSale(node, { perBuyerLimit: 2 });
  buyersToken = await signed(JWT_SECRET);
  const headers = { authorization: `Bearer ${buyersToken}` };
  const bought = await node.request(`/v1/sales/${saleId}/orders`, { method: 'POST', headers });
  expect(bought).toMatchObject({ status: 201 });
  orderId = bought.body.orderId;
  await until(async () => (await query(databaseUrl, 'SELECT 1 FROM order_events')).length === 0, {
    what: 'the event of the purchase is delivered, and nothing else changes by itself',
  });
});

afterAll(async () => {
  await node?.stop();
  await node?.[Symbol.asyncDispose]();
});

function nameOf({ method, pattern }: OpsRoute): string {
  return `${method} ${pattern}`;
}

function signed(secret: string): Promise<string> {
  return new SignJWT({ sub: 'ann' })
    .setProtectedHeader({ alg: 'HS256' })
    .setExpirationTime('1h')
    .sign(new TextEncoder().encode(secret));
}

function pathOf({ pattern }: OpsRoute): string {
  return pattern
    .replace(':saleId', saleId)
    .replace(':orderId', orderId)
    .replace(':id', '1')
    .replace(':file', 'console.js')
    .replace(':code', 'unknown_sale');
}

function spec(route: OpsRoute, headers: Record<string, string>): RequestSpec {
  const body = BODIES[nameOf(route)];
  return { method: route.method, headers, ...(body !== undefined && { body }) };
}

/** Everything that an operator could have changed. */
async function books(): Promise<unknown[]> {
  const tables = ['sales', 'orders', 'stock_movements', 'stock_returns', 'order_events', 'webhook_pages'];
  const rows = tables.map((table) => query(databaseUrl, `SELECT * FROM ${table} ORDER BY 1`));
  return [await node.ops.list(), ...(await Promise.all(rows))];
}

test('only health, readiness, the console’s files and the description need no token', async () => {
  for (const route of routes.filter((each) => HEALTH.includes(nameOf(each)))) {
    const answer = await node.opsRequest(pathOf(route), spec(route, { authorization: '' }));
    expect(answer.status, nameOf(route)).toBe(200);
    expect(Object.keys(answer.body)).toEqual(['status']);
  }
  for (const route of routes.filter((each) => PAGE.includes(nameOf(each)))) {
    const answer = await node.opsRequest(pathOf(route), spec(route, { authorization: '' }));
    expect(answer.status, nameOf(route)).toBe(200);
    expect(answer.body).not.toContain(saleId);
  }
  for (const route of routes.filter((each) => DESCRIPTION.includes(nameOf(each)))) {
    const answer = await node.opsRequest(pathOf(route), spec(route, { authorization: '' }));
    expect(answer.status, nameOf(route)).toBe(200);
    expect(JSON.stringify(answer.body)).not.toContain(saleId);
  }
  expect(guarded.length).toBeGreaterThan(15);
});

describe('without the token', () => {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const wrong: [string, () => Record<string, string> | Promise<Record<string, string>>][] = [
    ['nothing', () => ({ authorization: '' })],
    ['a scheme alone', () => ({ authorization: 'Bearer' })],
    ['a scheme and a space', () => ({ authorization: 'Bearer ' })],
    ['another token', () => bearer('another-token-of-some-length')],
    ['more than the token', () => bearer(`${node.opsToken}x`)],
    ['the token after another character', () => bearer(`x${node.opsToken}`)],
    ['less than the token', () => bearer(node.opsToken.slice(0, -1))],
    ['the token in other letters', () => bearer(otherCase(node.opsToken))],
    ['the token twice', () => bearer(`${node.opsToken} ${node.opsToken}`)],
    ['the token in quotes', () => bearer(`"${node.opsToken}"`)],
    ['the token behind two spaces', () => bearer(` ${node.opsToken}`)],
    ['the token without a scheme', () => ({ authorization: node.opsToken })],
    ['the token of another scheme', () => ({ authorization: `Token ${node.opsToken}` })],
    ['the token as a password', () => ({ authorization: `Basic ${btoa(`ops:${node.opsToken}`)}` })],
    ['a buyer’s token', () => bearer(buyersToken)],
    ['a buyer’s name', () => ({ authorization: '', 'x-buyer-id': 'ann', 'x-operator': 'root' })],
    ['a token signed with nothing', async () => bearer(await signed(' '))],
    [
      'the token in other headers',
      () => ({
        authorization: '',
        cookie: `token=${node.opsToken}; authorization=Bearer ${node.opsToken}`,
        'proxy-authorization': `Bearer ${node.opsToken}`,
        'x-ops-token': node.opsToken,
      }),
    ],
    [
      'an address that claims to be inside',
      () => ({ authorization: '', 'x-forwarded-for': '127.0.0.1', 'x-real-ip': '127.0.0.1' }),
    ],
  ];

  test.each(wrong)('but with %s, every route is refused, and nothing is changed', async (_, headersOf) => {
    const headers = await headersOf();
    const before = await books();
    for (const route of guarded) {
      const answer = await node.opsRequest(pathOf(route), spec(route, headers));
      const reason = headers.authorization === '' ? 'missing' : 'invalid';
      expect(answer, nameOf(route)).toMatchObject({ status: 401, code: 'unauthenticated', body: { reason } });
      const error = reason === 'missing' ? '$' : ', error="invalid_token"';
      expect(answer.headers['www-authenticate']).toMatch(new RegExp(`^Bearer realm="stockade"${error}`));
    }
    expect(await books()).toEqual(before);
  });

  test('the token in the address, or in the body, is not accepted', async () => {
    const before = await books();
    for (const route of guarded) {
      const path = `${pathOf(route)}?token=${node.opsToken}&access_token=${node.opsToken}`;
      const { method } = route;
      const asBody = method === 'GET' ? {} : { body: JSON.stringify({ token: node.opsToken }) };
      const answer = await node.opsRequest(path, { method, headers: { authorization: '' }, ...asBody });
      expect(answer, nameOf(route)).toMatchObject({ status: 401, code: 'unauthenticated' });
    }
    expect(await books()).toEqual(before);
  });

  test('a right header after a wrong one is not accepted', async () => {
    using connection = await RawConnection.open(node.opsUrl);
    const twice = { Authorization: `Bearer wrong\r\nAuthorization: Bearer ${node.opsToken}` };
    await connection.send(rawRequest('GET', '/v1/sales', twice));
    expect(await connection.answer()).toMatchObject({ status: 401 });
  });

  test('other methods, and other spellings of the path, reach no route', async () => {
    const before = await books();
    const headers = { authorization: '' };
    for (const route of guarded) {
      for (const method of ['PUT', 'DELETE', 'HEAD', 'OPTIONS'] as const) {
        const { status } = await node.opsRequest(pathOf(route), { method, headers });
        expect(status, `${method} ${route.pattern}`).toBeGreaterThanOrEqual(400);
      }
      for (const path of [`/${pathOf(route)}`, `${pathOf(route)}/`, pathOf(route).toUpperCase()]) {
        using connection = await RawConnection.open(node.opsUrl);
        await connection.send(rawRequest(route.method, path));
        expect((await connection.answer())?.status, path).toBeGreaterThanOrEqual(400);
      }
    }
    expect(await books()).toEqual(before);
  });

  test('the public port has none of these routes', async () => {
    const before = await books();
    for (const route of guarded.filter(({ pattern }) => !pattern.startsWith('/v1/orders/'))) {
      // Buyers have routes of their own at these addresses, which the operators' token does not open.
      if (['GET /v1/sales/:saleId', 'GET /v1/sales/:saleId/orders'].includes(nameOf(route))) continue;
      const headers = { authorization: `Bearer ${node.opsToken}` };
      const { status } = await node.request(pathOf(route), spec(route, headers));
      expect([404, 405], nameOf(route)).toContain(status);
    }
    const refund = { method: 'POST', headers: { authorization: `Bearer ${buyersToken}` } } as const;
    expect((await node.request(`/v1/orders/${orderId}/refund`, refund)).status).toBe(404);
    const asOperator = { headers: { authorization: `Bearer ${node.opsToken}` } };
    expect((await node.request(`/v1/sales/${saleId}/orders`, asOperator)).status).toBe(401);
    expect(await books()).toEqual(before);
  });

  test('a command reports that its token is refused, and nothing is changed', async () => {
    const before = await books();
    const env = { OPS_URL: node.opsUrl, OPS_TOKEN: 'another-token-of-some-length' };
    for (const args of [
      ['sale', 'close', saleId, '--yes'],
      ['order', 'refund', orderId, '--yes'],
      ['events', 'resend', '--all'],
    ]) {
      const { exitCode, stderr } = await callCli(args, { env });
      expect({ exitCode, stderr }).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/OPS_TOKEN/) });
    }
    expect(await books()).toEqual(before);
  });
});

function otherCase(text: string): string {
  return text.replace(/[a-z]/gi, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );
}
