/** Bad input of every kind: the answer has the code, nothing is changed, and the node keeps serving. */
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
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { httpServerKind } from '../../support/http/http-server.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import { type Answer, type RequestSpec, startTestNode, type TestNode } from '../../support/nodes/node.ts';
import {
  expectBalanced,
  expectSold,
  makeSale,
  onEachStore,
  onOneStore,
  redisAndPostgres,
  type Stage,
} from '../../support/nodes/stores.ts';
import { residentBytesOf } from '../../support/servers/process/process-table.ts';
import { inTier } from '../../support/tier.ts';

/** Of a purchase. */
const MAX_BODY_BYTES = 8_192;
const HUGE_BODY_BYTES = 128 * 1024 * 1024;
/** `node:http` allocates each piece of a body separately, and V8 collects them when there are 64 MB of them. */
const HUGE_BODY_GROWTH_BYTES = { uws: 16, node: 96 }[httpServerKind] * 1024 * 1024;
const LIMIT = 4;

/** Bad input is refused before a store is asked. So in `npm test`, each HTTP server is tested on one store. */
const onStores = inTier<typeof onEachStore>({
  test: (...tests) =>
    onOneStore(({ uws: 'redis and postgres', node: 'embedded' } as const)[httpServerKind], ...tests),
  release: onEachStore,
});

function expectProblem(answer: Answer | undefined, status: number, code: string): void {
  expect(answer).toMatchObject({ status, code, body: { status, code, title: expect.any(String) } });
  expect(answer?.headers['content-type']).toBe('application/problem+json');
  // RFC 9110, 15.5.2: each 401 has a challenge.
  if (status === 401)
    expect(answer?.headers['www-authenticate']).toMatch(/^(Bearer|X-Buyer-Id) realm="stockade"/);
}

/** `{"quantity":1}` padded with spaces. */
const bodyOf = (bytes: number) => '{"quantity":1}'.padEnd(bytes, ' ');

/** The parser of `node:http` refuses such a request, so no route sees it. */
const isUnreadable = (header: string) => httpServerKind === 'node' && header.includes('\x7f');
const isBeyondAscii = (path: string) => httpServerKind === 'node' && /[\x80-\xff]/.test(path);

/** A sale for a group of tests, none of which may sell any of it. */
function untouchedSale(stage: Stage): { readonly id: string } {
  const sale = { id: '' };
  beforeAll(async () => {
    sale.id = await stage.sale({ perBuyerLimit: LIMIT });
  });
  afterAll(() => expectSold(stage.node, sale.id, 0));
  return sale;
}

onStores((stage) => {
  describe('the body of a purchase', () => {
    const sale = untouchedSale(stage);
    const buyWith = (body: string | Buffer, headers: Record<string, string> = {}) =>
      stage.node.request(`/v1/sales/${sale.id}/orders`, {
        method: 'POST',
        headers: { 'x-buyer-id': 'ann', ...headers },
        body,
      });

    test.each([
      '{"quantity":',
      '{quantity:1}',
      'quantity=1',
      '{"quantity":1}}',
      '{"quantity":1}\0',
      '\u{feff}{"quantity":1}',
      ' ',
      '[]',
      '[{"quantity":1}]',
      '"1"',
      'null',
      'true',
      '1',
      '{"quantity":"1"}',
      '{"quantity":1.5}',
      '{"quantity":true}',
      '{"quantity":null}',
      '{"quantity":{}}',
      '{"quantity":[1]}',
      '{"quantity":0}',
      '{"quantity":-0}',
      '{"quantity":-1}',
      '{"quantity":1e-3}',
      '{"quantity":9007199254740991}',
      '{"quantity":9007199254740992}',
      '{"quantity":4294967297}',
      '{"quantity":1e400}',
      `{"quantity":${LIMIT + 1}}`,
      '{"quantity":1,"price":0}',
      '{"quantity":1,"buyerId":"bob"}',
      '{"Quantity":1}',
      '{"__proto__":{"quantity":1}}',
      '{"constructor":{"prototype":{}}}',
      `{"quantity":${'['.repeat(4_000)}`,
      `${'['.repeat(2_000)}${']'.repeat(2_000)}`,
    ])('is refused when it is %s', async (body) => {
      expectProblem(await buyWith(body), 400, 'invalid_request');
    });

    test.each([
      ['a byte that begins no character', Buffer.from('{"quantity":1,"\xff":1}', 'latin1')],
      ['half a character', Buffer.from('{"quantity":1,"\xe2\x82":1}', 'latin1')],
      ['a surrogate on its own', Buffer.from('{"quantity":1,"\xed\xa0\x80":1}', 'latin1')],
      ['UTF-16', Buffer.from('{"quantity":1}', 'utf16le')],
    ])('is refused when it is not UTF-8: %s', async (_, body) => {
      expectProblem(await buyWith(body), 400, 'invalid_request');
    });

    test('is checked before other reasons to refuse the buyer', async () => {
      const headers = { 'idempotency-key': 'not a key' };
      expectProblem(await buyWith('{}', headers), 400, 'invalid_request');
    });

    test('may not be longer than the limit', async () => {
      const answer = await buyWith(bodyOf(MAX_BODY_BYTES + 1));
      expectProblem(answer, 413, 'payload_too_large');
    });

    test('in chunks is refused, and the connection is closed', async () => {
      using connection = await RawConnection.open(stage.node.publicUrl);
      await connection.send(rawHead(sale.id, { 'Transfer-Encoding': 'chunked' }));
      expectProblem(await connection.answer(), 400, 'invalid_request');
      await connection.closed;
    });

    test('of 128 MB is answered 413 and not kept', async () => {
      const { pid, publicUrl } = stage.node;
      using connection = await RawConnection.open(publicUrl);
      const before = residentBytesOf(pid);
      await connection.send(rawHead(sale.id, { 'Content-Length': String(2 * HUGE_BODY_BYTES) }));
      const megabyte = 'x'.repeat(1024 * 1024);
      for (let sent = 0; sent < HUGE_BODY_BYTES; sent += 1024 * 1024) await connection.send(megabyte);
      expectProblem(await connection.answer(), 413, 'payload_too_large');

      // The request is not over yet, so the node has now whatever it keeps of it.
      expect(residentBytesOf(pid) - before).toBeLessThan(HUGE_BODY_GROWTH_BYTES);
      expect(connection.failure).toBeUndefined();
    });
  });

  describe('bodies at the limit', () => {
    test('a body of exactly the limit is accepted', async () => {
      const id = await stage.sale();
      const headers = { 'x-buyer-id': 'ann' };
      const path = `/v1/sales/${id}/orders`;
      const answer = await stage.node.request(path, {
        method: 'POST',
        headers,
        body: bodyOf(MAX_BODY_BYTES),
      });
      expect(answer).toMatchObject({ status: 201, body: { quantity: 1 } });
      await expectSold(stage.node, id, 1);
    });

    test('a body in pieces is assembled', async () => {
      const id = await stage.sale({ perBuyerLimit: LIMIT });
      using connection = await RawConnection.open(stage.node.publicUrl);
      const body = '{"quantity":3}';
      await connection.send(rawHead(id, { 'Content-Length': String(body.length) }));
      for (const character of body) {
        await connection.send(character);
        // A later request on another connection is answered, so the piece has been read by then.
        await ask(stage.node, rawRequest('GET', '/nowhere'));
      }
      expect(await connection.answer()).toMatchObject({ status: 201, body: { quantity: 3 } });
      await expectSold(stage.node, id, 3);
    });

    test('an empty body counts as no body, also if the head comes in two pieces', async () => {
      const id = await stage.sale();
      const whole = rawHead(id, { 'Content-Length': '0' });
      // Between two headers, and within the end of the head.
      for (const [i, cut] of [whole.indexOf('X-Buyer-Id'), whole.length - 1].entries()) {
        const text = whole.replace('ann', `an${i}`);
        using connection = await RawConnection.open(stage.node.publicUrl);
        await connection.send(text.slice(0, cut));
        // A later request on another connection is answered, so the first piece has been read by then.
        for (let n = 0; n < 10; n++) await ask(stage.node, rawRequest('GET', '/nowhere'));
        await connection.send(text.slice(cut));
        expect(await connection.answer()).toMatchObject({ status: 201, body: { quantity: 1 } });
      }
      await expectSold(stage.node, id, 2);
    });

    test('no body, or an empty object, means one unit', async () => {
      const id = await stage.sale();
      expect(await stage.node.buy(id, 'ann')).toMatchObject({ status: 201, body: { quantity: 1 } });
      const path = `/v1/sales/${id}/orders`;
      const spec: RequestSpec = { method: 'POST', headers: { 'x-buyer-id': 'bob' }, body: '{}' };
      expect(await stage.node.request(path, spec)).toMatchObject({ status: 201, body: { quantity: 1 } });
      await expectSold(stage.node, id, 2);
    });
  });

  describe('buyer ids and idempotency keys', () => {
    const sale = untouchedSale(stage);
    const rejected = [
      ['has a space', 'a b'],
      ['has a character beyond ASCII', 'caf\xc3\xa9s'],
      ['has a byte that is not a character', 'a\xffb'],
      ['has a DEL', 'a\x7fb'],
      ['has 129 characters', 'x'.repeat(129)],
      ['has 3,000 characters', 'x'.repeat(3_000)],
    ] as const;

    test.each(rejected)('a buyer id that %s is refused', async (_, id) => {
      const answer = await ask(stage.node, rawHead(sale.id, { 'X-Buyer-Id': id }));
      if (isUnreadable(id)) expectProblem(answer, 400, 'invalid_request');
      else expectProblem(answer, 401, 'unauthenticated');
    });

    const malformed = [
      ['is quoted and does not end', '"k'],
      ['is quoted and empty', '""'],
      ['is quoted and has a parameter', '"k";a=1'],
      ['is quoted and reserved', '"retake:1"'],
    ] as const;

    test.each([...rejected, ...malformed])('a key that %s is refused', async (_, key) => {
      const answer = await ask(stage.node, rawHead(sale.id, { 'Idempotency-Key': key }));
      expectProblem(answer, 400, 'invalid_request');
    });

    test.each(['X-Buyer-Id', 'Idempotency-Key'])('a %s of 10 KB is too large for a header', async (name) => {
      const answer = await ask(stage.node, rawHead(sale.id, { [name]: 'x'.repeat(10_240) }));
      expect(answer?.status).toBe(431);
    });

    test('a buyer that is named twice is refused, except in a purchase, where the first name counts', async () => {
      const id = await stage.sale();
      const twice = (method: string, path: string, body?: string) =>
        ask(stage.node, rawRequest(method, path, { 'X-Buyer-Id': 'ann', 'x-buyer-id': 'bob' }, body));
      const bought = (await twice('POST', `/v1/sales/${id}/orders`))!;
      expect(bought).toMatchObject({ status: 201 });
      const path = `/v1/orders/${bought.body.orderId}`;
      for (const answer of [
        await twice('GET', path),
        await twice('POST', `${path}/cancel`),
        await twice('POST', `/v1/sales/${id}/tokens`),
      ]) {
        expectProblem(answer, 400, 'invalid_request');
        expect(answer!.body.detail).toBe('x-buyer-id came more than once');
      }
      expect(await stage.node.request(path, { headers: { 'x-buyer-id': 'ann' } })).toMatchObject({
        body: { status: 'unpaid' },
      });
    });

    test('a control character never reaches a sale', async () => {
      const connections = await Promise.all(
        ['\0', '\x01', '\t', '\x1b', '\r', '\n'].flatMap((control) =>
          ['X-Buyer-Id', 'Idempotency-Key'].map(async (name) => {
            const connection = await RawConnection.open(stage.node.publicUrl);
            await connection.send(rawHead(sale.id, { [name]: `a${control}b` }));
            return connection;
          }),
        ),
      );
      // The parser waits for the rest of most of them. Requests on other connections are served meanwhile.
      for (let i = 0; i < 10; i++) {
        expect(await ask(stage.node, rawRequest('GET', '/nowhere'))).toMatchObject({ status: 404 });
      }
      for (const connection of connections) {
        expect(connection.rest).not.toMatch(/^HTTP\/1\.1 [^4]/);
        connection.close();
      }
    });

    test('no buyer id, and an empty one, are refused', async () => {
      for (const headers of [{}, { 'x-buyer-id': '' }]) {
        const spec: RequestSpec = { method: 'POST', headers };
        const answer = await stage.node.request(`/v1/sales/${sale.id}/orders`, spec);
        expectProblem(answer, 401, 'unauthenticated');
      }
    });
  });

  describe('unusual but valid ids', () => {
    const odd = [
      '"quoted"',
      'back\\slash\\',
      '{brace}',
      '{"a":1}',
      'a:1:2:key',
      'a,b,,c',
      "';DROP/**/TABLE/**/orders;--",
      '$1',
      '?',
      '::bigint',
      '%41%00%zz',
      'NULL',
      '\\N',
      '__proto__',
      'constructor',
      '0',
      '*',
      "~!@#$%^&*()_+`-=[]|;'<>./",
      'x'.repeat(128),
    ];

    test('are the same in headers, Redis, Postgres and answers', async () => {
      const id = await stage.sale({ stock: odd.length, segments: 4 });
      for (const text of odd) {
        const bought = await stage.node.buy(id, text, { key: text });
        expect(bought, text).toMatchObject({ status: 201 });
        const { orderId } = bought.body;
        expect((await stage.node.buy(id, text, { key: text })).body, text).toEqual(bought.body);
        // Postgres holds exactly this buyer: no other one is let in.
        const read = (buyer: string) =>
          stage.node.request(`/v1/orders/${orderId}`, { headers: { 'x-buyer-id': buyer } });
        expect(await read(text), text).toMatchObject({ status: 200, body: { orderId, status: 'unpaid' } });
        expectProblem(await read('somebody-else'), 403, 'forbidden');
      }
      await expectSold(stage.node, id, odd.length);
    });
  });

  describe('addresses', () => {
    const sale = untouchedSale(stage);

    test.each([
      'no-such-sale',
      'SALE-1',
      '..',
      '%2e%2e',
      '%00',
      '%',
      '%zz',
      'a%2Fb',
      '{a}',
      'a:b',
      "'--",
      '*',
      'x'.repeat(65),
      'x'.repeat(2_000),
      'caf\xc3\xa9',
      '\xff',
    ])('there is no sale %s', async (id) => {
      const { node } = stage;
      for (const request of [rawRequest('GET', `/v1/sales/${id}`), rawHead(id)]) {
        const answer = await ask(node, request);
        if (isBeyondAscii(id)) expectProblem(answer, 400, 'invalid_request');
        else expectProblem(answer, 404, 'unknown_sale');
      }
    });

    test('an id may have percent signs for characters that need none, and for no others', async () => {
      const id = await stage.sale();
      const escaped = [...id].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('');
      expect(decodeURIComponent(escaped)).toBe(id);
      const bought = await stage.node.buy(escaped, 'ann');
      expect(bought).toMatchObject({ status: 201, body: { saleId: id } });
      const { orderId } = bought.body;
      const headers = { 'x-buyer-id': 'ann' };
      const path = `/v1/orders/%3${orderId[0]}${orderId.slice(1)}`;
      expect(await stage.node.request(path, { headers })).toMatchObject({ status: 200, body: { orderId } });
      for (const read of [
        stage.node.request(`/v1/sales/${escaped}`),
        stage.node.opsRequest(`/v1/sales/${escaped}`),
      ])
        expect(await read).toMatchObject({ status: 200, body: { id } });
      const twice = escaped.replaceAll('%', '%25');
      for (const other of [twice, `${id}%2Forders`, `${id}%00`, `${id}%0`, `${id}%`, `${id}%zz`, `%20${id}`])
        expectProblem(await stage.node.buy(other, 'ann'), 404, 'unknown_sale');
    });

    test('a sale id of 10 KB is too large for a request line', async () => {
      expect((await ask(stage.node, rawHead('x'.repeat(10_240))))?.status).toBe(431);
    });

    test.each(['1', '0', '99999999999999999999', '-1', '1.5', 'abc', '%31', '9223372036854775807', '0x10'])(
      'there is no order %s',
      async (id) => {
        const headers = { 'x-buyer-id': 'ann' };
        expectProblem(await stage.node.request(`/v1/orders/${id}`, { headers }), 404, 'unknown_order');
        expectProblem(await stage.node.request(`/v1/orders/${id}`), 401, 'unauthenticated');
      },
    );

    test.each(['/', '/v1', '/v1/sales', '/v1/sales/', '/v2/sales/a', '/v1/sales//orders', '/metrics'])(
      'there is nothing at %s of the public port',
      async (path) => {
        for (const method of ['GET', 'POST', 'DELETE'] as const) {
          expectProblem(await stage.node.request(path, { method }), 404, 'not_found');
        }
      },
    );

    test.each([
      ['/v1/sales/a/orders', ['PUT', 'PATCH', 'DELETE', 'OPTIONS'], 'POST, GET'],
      ['/v1/orders', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'], 'GET'],
      ['/v1/sales/a/tokens', ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'], 'POST'],
      ['/v1/sales/a', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'], 'GET'],
      ['/v1/orders/1', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'], 'GET'],
      ['/v1/orders/1/pay', ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'], 'POST'],
    ] as const)('%s of the public port takes none of %s', async (path, methods, allow) => {
      for (const method of methods) {
        const answer = await stage.node.request(path, { method });
        expectProblem(answer, 405, 'method_not_allowed');
        expect(answer.headers.allow).toBe(allow);
      }
    });

    test.each([
      ['/healthz', ['POST', 'PATCH', 'DELETE'], 'GET'],
      ['/readyz', ['POST', 'PATCH', 'DELETE'], 'GET'],
      ['/metrics', ['POST', 'PATCH', 'DELETE'], 'GET'],
      ['/v1/sales', ['PATCH', 'PUT', 'DELETE'], 'GET, POST'],
      ['/v1/sales/a', ['POST', 'PUT'], 'GET, PATCH, DELETE'],
      ['/v1/sales/a/deletion', ['POST', 'PATCH', 'DELETE'], 'GET'],
      ['/v1/erasures', ['GET', 'PATCH', 'DELETE'], 'POST'],
      ['/v1/sales/a/verify', ['GET', 'PATCH', 'DELETE'], 'POST'],
      ['/v1/sales/a/rebalance', ['GET', 'PATCH', 'DELETE'], 'POST'],
      ['/v1/sales/a/orders', ['POST', 'PATCH', 'DELETE'], 'GET'],
      ['/v1/sales/a/orders/export', ['POST', 'PATCH', 'DELETE'], 'GET'],
      ['/v1/orders/1', ['POST', 'DELETE'], 'GET, PATCH'],
      ['/v1/orders/1/refund', ['GET', 'PATCH', 'DELETE'], 'POST'],
      ['/v1/refunds-due', ['POST', 'PATCH', 'DELETE'], 'GET'],
    ] as const)('%s of the ops port takes none of %s', async (path, methods, allow) => {
      for (const method of methods) {
        const answer = await stage.node.opsRequest(path, { method });
        expectProblem(answer, 405, 'method_not_allowed');
        expect(answer.headers.allow).toBe(allow);
      }
    });

    test('other addresses of the ops port are unknown', async () => {
      for (const path of ['/', '/v1', '/v1/orders', '/v1/orders/1/expire', '/admin']) {
        expectProblem(await stage.node.opsRequest(path), 404, 'not_found');
      }
    });

    test('an answer to HEAD has no body, and closes the connection', async () => {
      using connection = await RawConnection.open(stage.node.publicUrl);
      await connection.send(rawRequest('HEAD', `/v1/sales/${sale.id}`));
      expect(await connection.answer({ toHead: true })).toMatchObject({
        status: 405,
        headers: { allow: 'GET' },
      });
      await connection.closed;
      expect(connection.rest).toBe('');
    });
  });

  describe('the ops port', () => {
    const sale = untouchedSale(stage);

    test.each([
      '',
      '{',
      'null',
      '[]',
      '"pause"',
      '{}',
      '{"action":"explode"}',
      '{"action":"__proto__"}',
      '{"action":["pause"]}',
      '{"action":"pause","why":"because"}',
      '{"Action":"pause"}',
    ])('refuses to change a sale by %j', async (body) => {
      const answer = await stage.node.opsRequest(`/v1/sales/${sale.id}`, { method: 'PATCH', body });
      expectProblem(answer, 400, 'invalid_request');
      expect(await stage.node.ops.show(sale.id)).toMatchObject({ state: 'open' });
    });

    test.each(['{', 'null', '[]', '1', '{"dryRun":1}', '{"dryRun":"true"}', '{"dryrun":true}'])(
      'refuses to rebalance a sale by %j',
      async (body) => {
        const path = `/v1/sales/${sale.id}/rebalance`;
        const answer = await stage.node.opsRequest(path, { method: 'POST', body });
        expectProblem(answer, 400, 'invalid_request');
      },
    );

    test.each(['{', 'null', '[]', '1', '{"repair":1}', '{"repair":"true"}', '{"Repair":true}'])(
      'refuses to verify a sale by %j',
      async (body) => {
        const path = `/v1/sales/${sale.id}/verify`;
        const answer = await stage.node.opsRequest(path, { method: 'POST', body });
        expectProblem(answer, 400, 'invalid_request');
      },
    );

    test('answers that a sale is unknown', async () => {
      for (const id of ['no-such-sale', '%73o-such-sale', '%00', 'x'.repeat(1_000)]) {
        const path = `/v1/sales/${id}`;
        const pause: RequestSpec = { method: 'PATCH', body: '{"action":"pause"}' };
        expectProblem(await stage.node.opsRequest(path), 404, 'unknown_sale');
        expectProblem(await stage.node.opsRequest(path, pause), 404, 'unknown_sale');
        expectProblem(await stage.node.opsRequest(`${path}/verify`, { method: 'POST' }), 404, 'unknown_sale');
      }
    });

    test('does not ask Postgres about ids that it can’t contain', async () => {
      for (const id of ['%00', 'a%00b', '%C3%28', 'x'.repeat(1_000)]) {
        const answer = await stage.node.opsRequest(`/v1/refunds-due?saleId=${id}`);
        expectProblem(answer, 404, 'unknown_sale');
      }
    });

    test('names the state of a sale that can’t be changed', async () => {
      const id = await stage.sale();
      await stage.node.ops.change(id, { action: 'close' }, BY);
      const resume: RequestSpec = { method: 'PATCH', body: '{"action":"resume"}' };
      const answer = await stage.node.opsRequest(`/v1/sales/${id}`, resume);
      expectProblem(answer, 409, 'wrong_state');
      expect(answer.body.state).toBe('closed');
    });
  });

  describe('the creation of a sale', () => {
    const good = { id: 'good', stock: 10 };
    const create = (body: string | Buffer) => stage.node.opsRequest('/v1/sales', { method: 'POST', body });

    afterEach(async () => {
      expect((await stage.node.ops.list()).sales.map(({ id }) => id)).not.toContain('good');
    });

    test.each(['', '{', 'null', '[]', '"x"', '1', '{"id":"good","stock":10,}'])(
      'is refused for %j',
      async (body) => {
        expectProblem(await create(body), 400, 'invalid_request');
      },
    );

    test.each([
      ['stock', 0],
      ['stock', -1],
      ['stock', 2 ** 31 + 1],
      ['stock', 1.5],
      ['stock', '5'],
      ['stock', null],
      ['stock', undefined],
      ['segments', 0],
      ['segments', 1_025],
      ['segments', '8'],
      ['perBuyerLimit', 0],
      ['perBuyerLimit', 1_001],
      ['id', undefined],
      ['id', ''],
      ['id', 5],
      ['id', 'a b'],
      ['id', 'a{b}'],
      ['id', 'a:b'],
      ['id', 'café'],
      ['id', '-a'],
      ['id', 'x'.repeat(65)],
      ['title', 5],
      ['title', 'x'.repeat(201)],
      ['startsAt', '2030-01-01T00:00:00'],
      ['startsAt', '2030-01-01'],
      ['startsAt', 'tomorrow'],
      ['startsAt', '2030-13-01T00:00:00Z'],
      ['startsAt', '2030-02-30T00:00:00Z'],
      ['startsAt', 1_900_000_000_000],
      ['startsAt', null],
      ['startsAt', '0000-12-31T23:59:59Z'],
      ['endsAt', '9999-12-31T23:59:59-01:00'],
      ['endsAt', '2020-01-01T00:00:00Z'],
      ['endsAt', '2030-01-01T00:00:00'],
      ['payWithinSeconds', 0],
      ['requireToken', 'yes'],
      ['priceMinor', -1],
      ['priceMinor', 9.99],
      ['currency', 'euro'],
      ['shopId', 'x'.repeat(129)],
      ['metadata', []],
      ['metadata', 'x'],
      ['metadata', { a: 'x'.repeat(16 * 1024) }],
      ['colour', 'red'],
      ['state', 'open'],
      ['generation', 1],
    ])('is refused with %s %j', async (field, value) => {
      const answer = await create(JSON.stringify({ ...good, [field]: value }));
      expectProblem(answer, 400, 'invalid_request');
      expect(answer.body.faults).toEqual([{ field, problem: expect.any(String) }]);
    });

    // These pass the check of the sale, and Postgres' error would be answered "unavailable".
    test.each([
      ['a title that Postgres can’t hold', { title: 'a\0b' }],
      ['a shop that Postgres can’t hold', { shopId: 'a\0b' }],
      ['metadata that Postgres can’t hold', { metadata: { a: '\0' } }],
      ['half a character in the metadata', { metadata: { a: '\ud800' } }],
      [
        'metadata nested very deeply',
        { metadata: { a: JSON.parse(`${'['.repeat(1_000)}${']'.repeat(1_000)}`) } },
      ],
      ['metadata of more bytes than allowed', { metadata: { a: 'ü'.repeat(16_000) } }],
    ])('is refused with %s', async (_, fields) => {
      const id = `odd-${Object.keys(fields)}`;
      expectProblem(await create(JSON.stringify({ ...good, id, ...fields })), 400, 'invalid_request');
    });

    test('is refused with metadata of which a number would be rounded', async () => {
      for (const number of ['1e400', '12345678901234567890', '1e-400']) {
        const answer = await create(`{"id":"good","stock":1,"metadata":{"a":${number}}}`);
        expectProblem(answer, 400, 'invalid_request');
        expect(answer.body.faults).toMatchObject([{ field: 'metadata' }]);
      }
    });

    test('is refused if the sale would end before it starts', async () => {
      const [startsAt, endsAt] = ['2030-01-02T00:00:00Z', '2030-01-01T23:59:59+00:00'];
      for (const window of [
        { startsAt, endsAt },
        { startsAt, endsAt: startsAt },
      ]) {
        const answer = await create(JSON.stringify({ ...good, ...window }));
        expectProblem(answer, 400, 'invalid_request');
        expect(answer.body.faults).toMatchObject([{ field: 'endsAt' }]);
      }
    });

    test('names all faults at once', async () => {
      const answer = await create('{"id":"good","stock":0,"segments":0,"colour":"red"}');
      const fields = (answer.body.faults as { field: string }[]).map(({ field }) => field);
      expect(fields.sort()).toEqual(['colour', 'segments', 'stock']);
    });

    test('is refused when the id is taken, and leaves the first sale as it is', async () => {
      const id = await stage.sale({ stock: 7 });
      const answer = await create(JSON.stringify({ id, stock: 1_000 }));
      expectProblem(answer, 409, 'sale_exists');
      expect(await stage.node.ops.show(id)).toMatchObject({ stock: 7, remaining: 7 });
      await expectBalanced(stage.node, id);
    });

    test('with one id, requested twenty times at once, happens once', async () => {
      const body = JSON.stringify({ id: 'wanted', stock: 3 });
      const answers = await Promise.all(Array.from({ length: 20 }, () => create(body)));
      const codes = answers.map(({ status }) => status).sort();
      expect(codes).toEqual([201, ...new Array<number>(19).fill(409)]);
      await expectSold(stage.node, 'wanted', 0);
    });

    test('is refused with a body of more than 64 KB', async () => {
      const answer = await create(JSON.stringify({ ...good, metadata: { a: 'x'.repeat(65_536) } }));
      expectProblem(answer, 413, 'payload_too_large');
    });

    test('accepts values at their limits', async () => {
      const [id, title] = ['x'.repeat(64), 'ü'.repeat(200)];
      const spec = {
        id,
        title,
        stock: 2 ** 31,
        segments: 1_024,
        perBuyerLimit: 1_000,
        metadata: JSON.parse('{"a":["\\"\\\\"],"__proto__":1,"b":-9007199254740991}'),
      };
      expect(await create(JSON.stringify(spec))).toMatchObject({ status: 201, body: spec });
      expect(await stage.node.buy(id, 'ann', { quantity: 1_000 })).toMatchObject({ status: 201 });
      await expectSold(stage.node, id, 1_000);
    });
  });

  describe('requests that are not completed', () => {
    test('leave nothing in the node', async () => {
      const sale = await stage.sale({ stock: 1_000 });
      const halves = [
        'POST /v1/sales',
        `POST /v1/sales/${sale}/orders HTTP/1.1\r\nHost: localhost\r\n`,
        rawHead(sale, { 'Content-Length': '14' }),
        `${rawHead(sale, { 'Content-Length': '14' })}{"quant`,
        rawHead(sale, { 'Transfer-Encoding': 'chunked' }),
      ];
      for (const half of halves) {
        for (const end of ['close', 'reset'] as const) {
          const connections = await Promise.all(
            Array.from({ length: 20 }, () => RawConnection.open(stage.node.publicUrl)),
          );
          await Promise.all(connections.map((connection) => connection.send(half)));
          for (const connection of connections) connection[end]();
          await Promise.all(connections.map(({ closed }) => closed));
        }
      }
      expect(await stage.node.buy(sale, 'ann')).toMatchObject({ status: 201 });
      await expectSold(stage.node, sale, 1);
      // Stopping the node (stores.ts) shows that none of them still counts as under way.
    });

    test('leave nothing in the node at the ops port', async () => {
      const authorization = `Bearer ${stage.node.opsToken}`;
      for (const end of ['close', 'reset'] as const) {
        using connection = await RawConnection.open(stage.node.opsUrl);
        await connection.send(rawRequest('POST', '/v1/sales', { authorization, 'Content-Length': '99' }));
        await connection.send('{"id":"half"');
        connection[end]();
        await connection.closed;
      }
      expect((await stage.node.ops.list()).sales.map(({ id }) => id)).not.toContain('half');
    });

    test('still buy if the connection breaks after the whole request was sent', async () => {
      const sale = await stage.sale({ stock: 100 });
      const buyers = Array.from({ length: 40 }, (_, i) => `gone-${i}`);
      const connections = await Promise.all(buyers.map(() => RawConnection.open(stage.node.publicUrl)));
      await Promise.all(
        connections.map(async (connection, i) => {
          const headers = { 'X-Buyer-Id': buyers[i]!, 'Idempotency-Key': 'k' };
          await connection.send(rawHead(sale, headers));
          connection.close();
        }),
      );
      await until(async () => (await stage.node.ops.show(sale)).committedOrders === buyers.length, {
        what: 'the orders of all closed connections',
      });
      await expectSold(stage.node, sale, buyers.length);
      // A repeated purchase with the same key learns of its order, and buys nothing twice.
      const again = await Promise.all(buyers.map((buyer) => stage.node.buy(sale, buyer, { key: 'k' })));
      expect(new Set(again.map(({ status }) => status))).toEqual(new Set([201]));
      await expectSold(stage.node, sale, buyers.length);
    });
  });

  describe('several requests on one connection', () => {
    test('are answered in order', async () => {
      const sale = await stage.sale();
      using connection = await RawConnection.open(stage.node.publicUrl);
      const codes: (string | undefined)[] = [];
      for (const buyer of ['ann', 'bob', 'ann']) {
        await connection.send(rawHead(sale, { 'X-Buyer-Id': buyer }));
        codes.push((await connection.answer())?.code);
      }
      expect(codes).toEqual(['committed', 'committed', 'limit_reached']);
      await expectSold(stage.node, sale, 2);
    });

    test('sent without waiting for answers end the connection, also if answers are immediate', async () => {
      const sale = await stage.sale();
      using connection = await RawConnection.open(stage.node.publicUrl);
      await connection.send(
        rawRequest('PUT', '/v1/orders/1') +
          rawRequest('POST', `/v1/sales/${sale}/orders`, {}, '{}') +
          rawRequest('POST', `/v1/sales/${sale}/orders`, { 'X-Buyer-Id': 'ann' }, '{"quantity":0}') +
          rawRequest('GET', '/nowhere'),
      );
      expect(await connection.answer()).toBeUndefined();
      await expectSold(stage.node, sale, 0);
    });

    test('sent before a purchase is answered end the connection, and never get another’s answer', async () => {
      const sale = await stage.sale();
      using connection = await RawConnection.open(stage.node.publicUrl);
      const buyers = ['ann', 'bob', 'cy'];
      await connection.send(
        buyers.map((buyer) => rawHead(sale, { 'X-Buyer-Id': buyer, 'Idempotency-Key': 'k' })).join(''),
      );
      // The server takes no request while another of the connection is under way: it closes.
      expect(await connection.answer()).toBeUndefined();
      // The first one's orders still exist, and each key tells its outcome.
      const orders = await Promise.all(buyers.map((buyer) => stage.node.buy(sale, buyer, { key: 'k' })));
      expect(new Set(orders.map(({ body }) => body.orderId)).size).toBe(buyers.length);
      await expectSold(stage.node, sale, buyers.length);
    });
  });
});

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

/** Sends one request on a connection of its own. @returns `undefined` if the connection is closed without an answer */
async function ask(node: TestNode, request: string): Promise<Answer | undefined> {
  using connection = await RawConnection.open(node.publicUrl);
  await connection.send(request);
  return await connection.answer();
}

function rawHead(saleId: string, headers: Record<string, string> = {}): string {
  return rawRequest('POST', `/v1/sales/${saleId}/orders`, { 'X-Buyer-Id': 'ann', ...headers });
}
