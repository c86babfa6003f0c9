/** The tokens of buyers (`BUYER_AUTH=jwt`): a genuine one names its buyer, and every other one is refused. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../support/fixtures.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { expectProblem, onStores, untouchedSale } from '../../support/nodes/refusals.ts';
import { expectSold, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';

describe('tokens signed with a secret', () => {
  const secret = 'a secret of more than thirty-two characters';
  const key = new TextEncoder().encode(secret);
  const env = { BUYER_AUTH: 'jwt', JWT_SECRET: secret, JWT_AUDIENCE: 'shop', JWT_ISSUER: 'login' };
  const claims: JWTPayload = { sub: 'ann', aud: 'shop', iss: 'login' };
  const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds;

  onStores((stage) => {
    const sale = untouchedSale(stage);
    const ask = (authorization: string, headers: Record<string, string> = {}) =>
      stage.node.request(`/v1/sales/${sale.id}/orders`, {
        method: 'POST',
        headers: { authorization, ...headers },
      });

    test('name the buyer', async () => {
      const id = await stage.sale();
      const buy = async (sub: string) =>
        stage.node.request(`/v1/sales/${id}/orders`, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${await sign({ ...claims, sub }, key)}`,
            'x-buyer-id': 'mallory',
          },
        });
      const bought = await buy('ann');
      expect(bought.status).toBe(201);
      expectProblem(await buy('ann'), 409, 'limit_reached');
      expect((await buy('auth0|5f7c8ec7c33c6c004bbafe82')).status).toBe(201);

      const read = (headers: Record<string, string>) =>
        stage.node.request(`/v1/orders/${bought.body.orderId}`, { headers });
      expect(await read({ authorization: `bearer ${await sign(claims, key)}` })).toMatchObject({
        status: 200,
      });
      const other = `Bearer ${await sign({ ...claims, sub: 'bob' }, key)}`;
      expectProblem(await read({ authorization: other, 'x-buyer-id': 'ann' }), 403, 'forbidden');
      expectProblem(await read({ 'x-buyer-id': 'ann' }), 401, 'unauthenticated');
      await expectSold(stage.node, id, 2);
    });

    const forged: [string, () => Promise<string> | string][] = [
      ['is signed with another key', () => sign(claims, new TextEncoder().encode(`${secret}!`))],
      ['is not signed', () => new UnsecuredJWT(claims).setExpirationTime('1h').encode()],
      ['has lost its signature', async () => (await sign(claims, key)).replace(/[^.]+$/, '')],
      ['was changed after it was signed', async () => withOtherSub(await sign(claims, key))],
      ['is signed with another algorithm', () => sign(claims, key, { alg: 'HS512' })],
      ['has expired', () => sign({ ...claims, exp: inSeconds(-60) }, key)],
      ['never expires', () => sign(claims, key, { alg: 'HS256' }, {})],
      ['is not valid yet', () => sign({ ...claims, nbf: inSeconds(600) }, key)],
      ['is for another audience', () => sign({ ...claims, aud: 'another' }, key)],
      ['is for no audience', () => sign({ sub: 'ann', iss: 'login' }, key)],
      ['is from another issuer', () => sign({ ...claims, iss: 'another' }, key)],
      ['names nobody', () => sign({ aud: 'shop', iss: 'login' }, key)],
      ['names an empty id', () => sign({ ...claims, sub: '' }, key)],
      ['names a number', () => sign({ ...claims, sub: 5 as unknown as string }, key)],
      ['names somebody with spaces', () => sign({ ...claims, sub: 'ann lee' }, key)],
      ['names somebody beyond ASCII', () => sign({ ...claims, sub: 'zoé' }, key)],
      ['names somebody on two lines', () => sign({ ...claims, sub: 'ann\nbob' }, key)],
      ['has a header that must be understood', () => sign(claims, key, { alg: 'HS256', crit: ['x'], x: 1 })],
      ['is not a token', () => 'x.y.z'],
      ['has two parts', async () => (await sign(claims, key)).split('.').slice(0, 2).join('.')],
      ['is empty', () => ''],
    ];

    test.each(forged)('are refused when one %s', async (_, make) => {
      const token = await make();
      // Twice, because a cached result must not let it in.
      for (let time = 0; time < 2; time++)
        expectProblem(await ask(`Bearer ${token}`), 401, 'unauthenticated');
      const read = await stage.node.request('/v1/orders/1', {
        headers: { authorization: `Bearer ${token}` },
      });
      expectProblem(read, 401, 'unauthenticated');
    });

    test('are refused with different reasons if missing, expired or invalid, and without a hint for forgers', async () => {
      const reasonOf = async (authorization: string | undefined) => {
        const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
        const { body, headers: answered } = await stage.node.request('/v1/orders/1', { headers });
        expect(body.code).toBe('unauthenticated');
        return { reason: body.reason, detail: body.detail, challenge: answered['www-authenticate'] };
      };
      const refused = 'Bearer realm="stockade", error="invalid_token", error_description=';
      const bare = { reason: 'missing', challenge: 'Bearer realm="stockade"' };
      expect(await reasonOf(undefined)).toMatchObject(bare);
      expect(await reasonOf('Basic YTpi')).toMatchObject(bare);
      expect(await reasonOf(`Bearer ${await sign({ ...claims, exp: inSeconds(-60) }, key)}`)).toMatchObject({
        reason: 'expired',
        challenge: `${refused}"The token has expired"`,
      });
      const other = new TextEncoder().encode(`${secret}!`);
      const forgeries = [
        await sign(claims, other),
        // The end of a forged token is not to be trusted.
        await sign({ ...claims, exp: inSeconds(-60) }, other),
        await sign(claims, key, { alg: 'HS512' }),
        withOtherSub(await sign(claims, key)),
      ];
      const told = await Promise.all(forgeries.map((token) => reasonOf(`Bearer ${token}`)));
      expect(new Set(told.map((answer) => JSON.stringify(answer))).size, JSON.stringify(told)).toBe(1);
      expect(told[0]).toMatchObject({ reason: 'invalid', challenge: expect.stringContaining(refused) });
      const misled = await reasonOf(`Bearer ${await sign({ ...claims, aud: 'another' }, key)}`);
      expect(misled).toMatchObject({ reason: 'invalid', detail: expect.stringContaining('"aud"') });
    });

    test('must come as a bearer token, and in no other form', async () => {
      const token = await sign(claims, key);
      const others = ['', token, `Basic ${token}`, `Bearer${token}`, `Token ${token}`];
      const longer = [`Bearer ${token}=`, `Bearer ${token} x`, `Bearer ${token}.`, `Bearer ${token}, x`];
      for (const authorization of [...others, ...longer]) {
        expectProblem(await ask(authorization, { 'x-buyer-id': 'ann' }), 401, 'unauthenticated');
      }
    });

    test('are refused once they have expired', async () => {
      // The node tolerates five seconds of difference between clocks.
      const token = await sign({ ...claims, sub: 'late', exp: inSeconds(-4) }, key);
      const body = '{"quantity":0}';
      const code = async () =>
        (
          await stage.node.request(`/v1/sales/${sale.id}/orders`, {
            method: 'POST',
            headers: { authorization: `Bearer ${token}` },
            body,
          })
        ).code;
      const read = async () =>
        (await stage.node.request('/v1/orders/1', { headers: { authorization: `Bearer ${token}` } })).code;
      expect(['invalid_request', 'unauthenticated']).toContain(await code());
      await until(async () => (await read()) === 'unauthenticated', { what: 'the end of the token' });
    });
  }, env);
});

describe('tokens signed with published keys', () => {
  let keys: { rsa: CryptoKey; ec: CryptoKey; stranger: CryptoKey; rsaPem: string };
  let published: KeyServer;
  let node: TestNode;
  let sale: string;

  beforeAll(async () => {
    const [rsa, ec, stranger] = await Promise.all([
      generateKeyPair('RS256', { extractable: true }),
      generateKeyPair('ES256', { extractable: true }),
      generateKeyPair('RS256'),
    ]);
    const jwks = await Promise.all([
      exportJWK(rsa.publicKey).then((jwk) => ({ ...jwk, kid: 'rsa', alg: 'RS256' })),
      exportJWK(ec.publicKey).then((jwk) => ({ ...jwk, kid: 'ec', alg: 'ES256' })),
    ]);
    const rsaPem = JSON.stringify(jwks[0]);
    keys = { rsa: rsa.privateKey, ec: ec.privateKey, stranger: stranger.privateKey, rsaPem };
    published = await KeyServer.start({ keys: jwks });
    const env = { BUYER_AUTH: 'jwt', JWT_JWKS_URL: published.url, WORKERS: '2' };
    node = await startTestNode({ ...(await redisAndPostgres()), env });
    sale = await makeSale(node);
  });

  afterAll(async () => {
    await node?.stop();
    await node?.[Symbol.asyncDispose]();
    await published?.stop();
  });

  const buy = (token: string, body?: string) =>
    node.request(`/v1/sales/${sale}/orders`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      ...(body !== undefined && { body }),
    });

  // First, before the node has read the keys.
  test('are neither valid nor invalid while the keys can’t be read', async () => {
    const token = await sign({ sub: 'early' }, keys.rsa, { alg: 'RS256', kid: 'rsa' });
    for (const fault of ['refuse', 'error', 'garbage', 'no keys'] as const) {
      published.fault = fault;
      for (const body of [undefined, '{"quantity":1}', 'not JSON']) {
        const answer = await buy(token, body);
        if (body === 'not JSON') expectProblem(answer, 400, 'invalid_request');
        else {
          expectProblem(answer, 503, 'unavailable');
          expect(answer.headers['retry-after']).toBe('1');
        }
      }
      const read = await node.request('/v1/orders/1', { headers: { authorization: `Bearer ${token}` } });
      expectProblem(read, 503, 'unavailable');
    }
    published.fault = undefined;
    await expectSold(node, sale, 0);
    expect((await buy(token)).status).toBe(201);
    expect(node.isUp).toBe(true);
  });

  test('let their buyers in, signed with RSA or elliptic curves', async () => {
    const before = (await node.ops.show(sale)).committedOrders;
    expect((await buy(await sign({ sub: 'ann' }, keys.rsa, { alg: 'RS256', kid: 'rsa' }))).status).toBe(201);
    expect((await buy(await sign({ sub: 'bob' }, keys.ec, { alg: 'ES256', kid: 'ec' }))).status).toBe(201);
    await expectSold(node, sale, before + 2);
  });

  test('are refused when forged', async () => {
    const before = (await node.ops.show(sale)).committedOrders;
    const claims = { sub: 'mallory' };
    const publicKey = new TextEncoder().encode(keys.rsaPem);
    const forged = [
      await sign(claims, keys.stranger, { alg: 'RS256', kid: 'rsa' }),
      await sign(claims, keys.stranger, { alg: 'RS256', kid: 'unheard-of' }),
      await sign(claims, keys.rsa, { alg: 'PS256', kid: 'rsa' }).catch(() => 'x.y.z'),
      // The public key, which is no secret, used as a shared secret.
      await sign(claims, publicKey, { alg: 'HS256', kid: 'rsa' }),
      new UnsecuredJWT(claims).setExpirationTime('1h').encode(),
    ];
    for (const token of forged) expectProblem(await buy(token), 401, 'unauthenticated');
    await expectSold(node, sale, before);
  });
});

/** A token that is valid for an hour, unless the claims say otherwise. */
async function sign(
  claims: JWTPayload,
  key: Uint8Array | CryptoKey,
  header: JWTHeaderParameters = { alg: 'HS256' },
  lasting: JWTPayload = { exp: Math.floor(Date.now() / 1000) + 3_600 },
): Promise<string> {
  return new SignJWT({ ...lasting, ...claims }).setProtectedHeader(header).sign(key, { crit: { x: true } });
}

function withOtherSub(token: string): string {
  const [header, payload, signature] = token.split('.');
  const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString()) as JWTPayload;
  const changed = Buffer.from(JSON.stringify({ ...claims, sub: 'bob' })).toString('base64url');
  return [header, changed, signature].join('.');
}

/** Publishes a key set, or fails to. */
class KeyServer {
  fault: 'refuse' | 'error' | 'garbage' | 'no keys' | undefined;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(keySet: unknown): Promise<KeyServer> {
    const server = createServer((request, response) => {
      response.setHeader('connection', 'close');
      switch (keyServer.fault) {
        case undefined:
          return response.setHeader('content-type', 'application/json').end(JSON.stringify(keySet));
        case 'refuse':
          return request.socket.destroy();
        case 'error':
          return response.writeHead(500).end('out of order');
        case 'garbage':
          return response.end('<html>');
        case 'no keys':
          return response.end('{}');
      }
    });
    const keyServer = new KeyServer(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return keyServer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/keys`;
  }

  stop(): Promise<unknown> {
    return new Promise((resolve) => this.#server.close(resolve));
  }
}
