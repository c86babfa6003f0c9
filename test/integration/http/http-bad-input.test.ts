/** Bad input at the public port: the answer has the code, nothing is changed, and the node keeps serving. */
import { describe, expect, test } from 'vitest';
import { until } from '../../support/fixtures.ts';
import { httpServerKind } from '../../support/http/http-server.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import type { Answer, RequestSpec, TestNode } from '../../support/nodes/node.ts';
import { expectProblem, LIMIT, onStores, untouchedSale } from '../../support/nodes/refusals.ts';
import { expectSold } from '../../support/nodes/stores.ts';
import { residentBytesOf } from '../../support/servers/process/process-table.ts';

/** Of a purchase. */
const MAX_BODY_BYTES = 8_192;
const HUGE_BODY_BYTES = 128 * 1024 * 1024;
/** `node:http` allocates each piece of a body separately, and V8 collects them when there are 64 MB of them. */
const HUGE_BODY_GROWTH_BYTES = { uws: 16, node: 96 }[httpServerKind] * 1024 * 1024;

/** `{"quantity":1}` padded with spaces. */
const bodyOf = (bytes: number) => '{"quantity":1}'.padEnd(bytes, ' ');

/** The parser of `node:http` refuses such a request, so no route sees it. */
const isUnreadable = (header: string) => httpServerKind === 'node' && header.includes('\x7f');
const isBeyondAscii = (path: string) => httpServerKind === 'node' && /[\x80-\xff]/.test(path);

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

/** Sends one request on a connection of its own. @returns `undefined` if the connection is closed without an answer */
async function ask(node: TestNode, request: string): Promise<Answer | undefined> {
  using connection = await RawConnection.open(node.publicUrl);
  await connection.send(request);
  return await connection.answer();
}

function rawHead(saleId: string, headers: Record<string, string> = {}): string {
  return rawRequest('POST', `/v1/sales/${saleId}/orders`, { 'X-Buyer-Id': 'ann', ...headers });
}
