/**
 * No buyer can act as another. buyer-tokens.test.ts tests what every token must have. Here are tokens that bring their own keys,
 * claims that are almost right, and attempts on another buyer's order.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load-config.ts';
import { callCli } from '../../support/cli/cli.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import type { TestNode } from '../../support/nodes/node.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { expectSold, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { ordersOf } from '../../support/shop/truth.ts';
import { isRelease } from '../../support/tier.ts';

const SECRET = 'a secret of more than thirty-two characters';
const KEY = new TextEncoder().encode(SECRET);
const CLAIMS = { aud: 'shop', iss: 'login' };
const HOUR_S = 3_600;

let databaseUrl: string;
let node: TestNode;
let sale: string;
/** The address of keys that foreign tokens name. A node must never fetch it. */
let stranger: Server;
let visits = 0;

beforeAll(async () => {
  stranger = createServer((_, response) => {
    visits++;
    response.end('{"keys":[]}');
  });
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  const stores = await redisAndPostgres();
  ({ databaseUrl } = stores);
  const env = { BUYER_AUTH: 'jwt', JWT_SECRET: SECRET, JWT_AUDIENCE: 'shop', JWT_ISSUER: 'login' };
  node = await startTestNode({ ...stores, env });
  sale = await makeSale(node);
});

afterAll(async () => {
  await node?.stop();
  await node?.[Symbol.asyncDispose]();
  await new Promise((resolve) => stranger?.close(resolve));
});

const strangersUrl = () => `http://127.0.0.1:${(stranger.address() as AddressInfo).port}/keys`;
const now = () => Math.floor(Date.now() / 1_000);
const encoded = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

function signer(claims: JWTPayload, header: Record<string, unknown> = {}): SignJWT {
  return new SignJWT({ exp: now() + HOUR_S, ...CLAIMS, ...claims }).setProtectedHeader({
    alg: 'HS256',
    ...header,
  });
}

const sign = (claims: JWTPayload, header: Record<string, unknown> = {}) => signer(claims, header).sign(KEY);

/** A signed payload of any shape, which a library would not make. */
async function signText(payload: string): Promise<string> {
  const { createHmac } = await import('node:crypto');
  const head = `${encoded({ alg: 'HS256' })}.${encoded(payload)}`;
  return `${head}.${createHmac('sha256', KEY).update(head).digest('base64url')}`;
}

const unsigned = (alg: string) =>
  `${encoded({ alg })}.${encoded({ sub: 'mallory', exp: now() + HOUR_S, ...CLAIMS })}.`;

function buy(token: string) {
  const headers = { authorization: `Bearer ${token}` };
  return node.request(`/v1/sales/${sale}/orders`, { method: 'POST', headers });
}

describe('a token', () => {
  const foreign: [string, () => Promise<string> | string][] = [
    ['without a signature, whose algorithm is None', () => unsigned('None')],
    ['without a signature, whose algorithm is nOnE', () => unsigned('nOnE')],
    ['without a signature, whose algorithm is missing', () => unsigned(undefined as unknown as string)],
    ['without a signature, whose algorithm is that of the key', () => unsigned('HS256')],
    ['that brings its key along', bringsItsKey],
    ['that names an address for its key', () => strangers({ jku: strangersUrl() })],
    ['that names an address for its certificate', () => strangers({ x5u: strangersUrl() })],
    ['whose key’s name is a path', () => strangers({ kid: '../../../../dev/null' })],
    ['signed with an empty key', () => signer({ sub: 'mallory' }).sign(new Uint8Array(1))],
    ['that is for several, none of them the shop', () => sign({ sub: 'mallory', aud: ['a', 'b'] })],
    ['whose audience only begins like the shop', () => sign({ sub: 'mallory', aud: 'shop.example' })],
    ['whose audience is the shop in other letters', () => sign({ sub: 'mallory', aud: 'SHOP' })],
    ['whose issuer only begins like the right one', () => sign({ sub: 'mallory', iss: 'login.example' })],
    ['that expires as a word', () => signText(claimsWith('"exp":"never"'))],
    ['that expires as a list', () => signText(claimsWith(`"exp":[${now() + HOUR_S}]`))],
    ['that is valid from a word on', () => signText(claimsWith(`"exp":${now() + HOUR_S},"nbf":"now"`))],
    ['that has expired before it began', () => sign({ sub: 'mallory', exp: -1 })],
    [
      'that names a list',
      () => signText(`{"sub":["ann"],"exp":${now() + HOUR_S},"aud":"shop","iss":"login"}`),
    ],
    ['that names 129 characters', () => sign({ sub: 'm'.repeat(129) })],
    ['that names somebody with a NUL', () => sign({ sub: 'ann\0' })],
    ['that is a list', () => signText('[]')],
    ['that is not JSON', () => signText('sub=ann')],
    ['of almost 4,000 characters', () => sign({ sub: 'x'.repeat(2_700) })],
  ];

  test.each(foreign)('%s is refused', async (_, make) => {
    const token = await make();
    expect(await buy(token)).toMatchObject({ status: 401, code: 'unauthenticated' });
    expect(await buy(token)).toMatchObject({ status: 401, code: 'unauthenticated' });
  });

  test('that names an address for its key does not make a node fetch that', async () => {
    expect(visits).toBe(0);
    await expectSold(node, sale, 0);
  });

  test('that is too large for a header ends the request, not the node', async () => {
    for (const characters of [4_100, 20_000]) expect((await buy('x'.repeat(characters))).status).toBe(431);
    expect(node.isUp).toBe(true);
  });

  test('for several audiences, one of them the shop, lets its buyer in', async () => {
    const id = await makeSale(node);
    const headers = { authorization: `Bearer ${await sign({ sub: 'ann', aud: ['forum', 'shop'] })}` };
    const bought = await node.request(`/v1/sales/${id}/orders`, { method: 'POST', headers });
    expect(bought).toMatchObject({ status: 201 });
  });

  test('names its buyer, even if the name has a meaning in programs', async () => {
    const id = await makeSale(node, { stock: 20 });
    for (const sub of ['__proto__', 'constructor', 'a:b', '{a}', `{${id}:0}:buyers`, 'toString', '..']) {
      const headers = { authorization: `Bearer ${await sign({ sub })}` };
      const bought = await node.request(`/v1/sales/${id}/orders`, { method: 'POST', headers });
      expect(bought, sub).toMatchObject({ status: 201 });
      const again = await node.request(`/v1/sales/${id}/orders`, { method: 'POST', headers });
      expect(again, sub).toMatchObject({ status: 409, body: { orderIds: [bought.body.orderId] } });
    }
    await expectSold(node, id, 7);
  });

  function claimsWith(members: string): string {
    return `{"sub":"mallory","aud":"shop","iss":"login",${members}}`;
  }

  async function bringsItsKey(): Promise<string> {
    const { publicKey, privateKey } = await generateKeyPair('RS256', { extractable: true });
    return signer({ sub: 'mallory' }, { alg: 'RS256', jwk: await exportJWK(publicKey) }).sign(privateKey);
  }

  function strangers(header: Record<string, unknown>): Promise<string> {
    return signer({ sub: 'mallory' }, header).sign(new TextEncoder().encode(`${SECRET} of another`));
  }
});

describe('the order of another', () => {
  const deeds: [string, string, string | undefined][] = [
    ['read', '', undefined],
    ['cancelled', '/cancel', undefined],
  ];

  test.each(deeds)('can’t be %s, and stays unchanged', async (_, path, body) => {
    const id = await makeSale(node);
    const asBuyer = async (sub: string) => ({ authorization: `Bearer ${await sign({ sub })}` });
    const method = 'POST' as const;
    const bought = await node.request(`/v1/sales/${id}/orders`, { method, headers: await asBuyer('ann') });
    const { orderId } = bought.body;
    const before = await ordersOf(databaseUrl, id);
    for (const sub of ['bob', 'Ann', 'ann ', 'an', 'anna', '*', '%']) {
      const headers = { ...(await asBuyer(sub)), 'x-buyer-id': 'ann' };
      const spec = path === '' ? { headers } : { method, headers, ...(body !== undefined && { body }) };
      const answer = await node.request(`/v1/orders/${orderId}${path}`, spec);
      // `ann ` is not a valid id.
      const status = sub === 'ann ' ? 401 : 403;
      expect(answer, sub).toMatchObject({ status });
      expect(JSON.stringify(answer.body), sub).not.toMatch(/ann|unpaid|paid/);
    }
    expect(await ordersOf(databaseUrl, id)).toEqual(before);
    await expectSold(node, id, 1);
  });
});

describe('a buyer who marks an order paid or redeemed at the public port', () => {
  const deeds: [string, string | undefined][] = [
    ['pay', '{"payType":"card"}'],
    ['redeem', undefined],
  ];
  const attempt = (
    at: TestNode,
    orderId: string,
    deed: string,
    headers: Record<string, string>,
    body?: string,
  ) =>
    at.request(`/v1/orders/${orderId}/${deed}`, {
      method: 'POST',
      headers,
      ...(body !== undefined && { body }),
    });

  test.each(deeds)('can’t %s, even with a valid token, before or after the payment', async (deed, body) => {
    const id = await makeSale(node);
    const headers = { authorization: `Bearer ${await sign({ sub: 'ann' })}` };
    const bought = await node.request(`/v1/sales/${id}/orders`, { method: 'POST', headers });
    const { orderId } = bought.body;
    const refused = {
      status: 403,
      code: 'operators_only',
      body: { detail: expect.stringContaining('ops port') },
    };
    const unpaid = await ordersOf(databaseUrl, id);
    expect(await attempt(node, orderId, deed, headers, body)).toMatchObject(refused);
    expect(await ordersOf(databaseUrl, id)).toEqual(unpaid);
    const paid = await node.opsRequest(`/v1/orders/${orderId}/pay`, {
      method: 'POST',
      body: '{"payType":"card"}',
    });
    expect(paid).toMatchObject({ status: 200, code: 'paid' });
    expect(await attempt(node, orderId, deed, headers, body)).toMatchObject(refused);
    const seen = await node.request(`/v1/orders/${orderId}`, { headers });
    expect(seen).toMatchObject({ status: 200, code: 'paid' });
  });

  test('gets the same answer for every order and every buyer', async () => {
    for (const orderId of ['1', 'nonsense', '9223372036854775807']) {
      for (const headers of [{}, { 'x-buyer-id': 'ann' }, { authorization: 'Bearer wrong' }]) {
        const answer = await attempt(node, orderId, 'redeem', headers as Record<string, string>);
        expect(answer).toMatchObject({ status: 403, code: 'operators_only' });
      }
    }
  });

  test('can’t with header identity either, unless PUBLIC_PAYMENT=1; then the start warns on a public address', async () => {
    const headers = { 'x-buyer-id': 'ann' };
    const stores = await redisAndPostgres();
    await using plain = await startTestNode({ ...stores, env: { WORKERS: '1' } });
    const { orderId } = (await plain.buy(await makeSale(plain), 'ann')).body;
    for (const [deed, body] of deeds)
      expect(await attempt(plain, orderId, deed, headers, body)).toMatchObject({ code: 'operators_only' });
    expect(await plain.log()).not.toContain('PUBLIC_PAYMENT');
    const open = { WORKERS: '1', PUBLIC_PAYMENT: '1', HOST: '0.0.0.0', TRUST_BUYER_HEADER: '1' };
    await using trial = await startTestNode({ ...stores, env: open });
    expect(await trial.log()).toContain('PUBLIC_PAYMENT=1: every buyer who reaches HOST');
    for (const [deed, body] of deeds)
      expect(await attempt(trial, orderId, deed, headers, body)).toMatchObject({ status: 200 });
  });
});

describe('a buyer who sends a reference or metadata with a purchase', () => {
  const notes = [{ reference: 'cart-1' }, { metadata: { gift: true } }, { reference: null, metadata: [] }];

  test('buys nothing', async () => {
    const id = await makeSale(node);
    const headers = { authorization: `Bearer ${await sign({ sub: 'ann' })}` };
    for (const note of notes)
      expect(await node.buy(id, 'ann', { headers }, note), JSON.stringify(note)).toMatchObject({
        status: 403,
        code: 'operators_only',
        body: { detail: expect.stringMatching(/^Nothing was bought.*PUBLIC_ORDER_NOTES=1/) },
      });
    expect(await ordersOf(databaseUrl, id)).toEqual(new Map());
    expect(await node.buy(id, 'ann', { headers })).toMatchObject({ status: 201 });
  });

  if (isRelease) {
    test('buys with PUBLIC_ORDER_NOTES=1; then the start warns on a public address', async () => {
      const stores = await redisAndPostgres();
      const open = { WORKERS: '1', PUBLIC_ORDER_NOTES: '1', HOST: '0.0.0.0', TRUST_BUYER_HEADER: '1' };
      await using noting = await startTestNode({ ...stores, env: open });
      expect(await noting.log()).toContain('PUBLIC_ORDER_NOTES=1: every buyer who reaches HOST');
      const id = await makeSale(noting);
      expect(await noting.buy(id, 'ann', {}, notes[0])).toMatchObject({ status: 201 });
      expect((await noting.opsRequest(`/v1/sales/${id}/orders`)).body.orders).toMatchObject([notes[0]]);
    });
  }
});

test('a request with two tokens is refused with that reason, without naming the buyers', async () => {
  const [anns, bobs] = [await sign({ sub: 'ann' }), await sign({ sub: 'bob' })];
  using connection = await RawConnection.open(node.publicUrl);
  const headers = { Authorization: `Bearer ${anns}`, authorization: `Bearer ${bobs}` };
  await connection.send(rawRequest('GET', '/v1/orders/1', headers));
  expect(await connection.answer()).toMatchObject({
    status: 400,
    code: 'invalid_request',
    body: { detail: 'authorization came more than once' },
  });
});

if (isRelease) {
  test('a node warns at its start of keys that are fetched from another machine without TLS', async () => {
    const env = { BUYER_AUTH: 'jwt', JWT_JWKS_URL: 'http://192.0.2.1/keys?key=hunter2' };
    await using plain = await startTestNode({ ...(await redisAndPostgres()), env });
    expect(await plain.log()).toContain('fetched without TLS');
    expect(await plain.log()).not.toContain('hunter2');
  });
}

describe('buyers named by a header', () => {
  test('are not served where any client could send one', async () => {
    for (const HOST of ['::', '192.0.2.1', 'shop.example']) {
      expect(() => loadConfig({ HOST }, {}), HOST).toThrow(/anyone could send an X-Buyer-Id/);
    }
    const env = { HOST: '0.0.0.0', TRUST_BUYER_HEADER: '0' };
    const { exitCode, stdout, stderr } = await callCli(['serve'], { env });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toMatch(/error: HOST is .*anyone could send an X-Buyer-Id/);
  });
});
