/**
 * nginx and HAProxy, with the files of `deploy/`, in front of a node. Clients send requests that the two might frame differently.
 * A relay between gateway and node records every byte.
 */
import { createHmac } from 'node:crypto';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BuyerClient } from '../../../src/client/index.ts';
import { until } from '../../support/fixtures.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import { SaleListener } from '../../support/http/sale-listener.ts';
import type { Answer, TestNode } from '../../support/nodes/node.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { expectSold, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { Gateway, type GatewayKind } from '../../support/servers/gateway.ts';
import { QUEUE } from '../../support/shop/queue.ts';

const SECRET = 'a secret of more than thirty-two characters';
const BODY = '{"quantity":1}';

describe.each(['nginx', 'haproxy'] as const)('%s in front of a node', (kind: GatewayKind) => {
  let node: TestNode;
  let relay: Relay;
  let login: Login;
  let gateway: Gateway;
  let sale: string;

  beforeAll(async () => {
    node = await startTestNode({
      ...(await redisAndPostgres()),
      env: { WORKERS: '1', PUBLIC_PAYMENT: '1', TRUST_BUYER_HEADER: '1' },
    });
    relay = await Relay.to(Number(new URL(node.publicUrl).port));
    login = await Login.start();
    gateway = await Gateway.start(kind, { nodePort: relay.port, loginPort: login.port, jwtSecret: SECRET });
    sale = await makeSale(node, { stock: 1_000 });
  });

  afterAll(async () => {
    await gateway?.[Symbol.asyncDispose]();
    await login?.stop();
    await relay?.stop();
    await node?.[Symbol.asyncDispose]();
  });

  /** Credentials that both gateways accept. */
  const proof = async (buyer: string) => {
    const token = await new SignJWT({ sub: buyer })
      .setProtectedHeader({ alg: 'HS256' })
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode(SECRET));
    return `Bearer ${token}`;
  };
  const request = async (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
    buyer = 'ann',
  ) => rawRequest(method, path, { Authorization: await proof(buyer), ...headers }, body);
  const ask = async (text: string): Promise<Answer | undefined> => {
    using connection = await RawConnection.open(`http://127.0.0.1:${gateway.port}`);
    await connection.send(text);
    return await connection.answer();
  };

  const roomFor = (listen: () => SaleListener) =>
    until(
      async () => {
        using page = listen();
        await until(() => page.head !== '', { what: 'the answer' });
        return page.status === 200;
      },
      { what: 'room for another page' },
    );

  test('a purchase gets through, with the buyer that the token proves', async () => {
    const id = await makeSale(node, { stock: 10 });
    const headers = {
      'X-Buyer-Id': 'mallory',
      X_Buyer_Id: 'mallory',
      'X-Forwarded-For': '192.0.2.1',
      'Idempotency-Key': 'k',
    };
    relay.forget();
    const bought = await ask(await request('POST', `/v1/sales/${id}/orders`, headers, BODY));
    expect(bought, await gateway.log()).toMatchObject({ status: 201, body: { quantity: 1 } });
    const [arrived, ...others] = relay.requests();
    expect(others).toEqual([]);
    expect(arrived).toMatchObject({ method: 'POST', body: BODY });
    expect(arrived!.values('x-buyer-id')).toEqual(['ann']);
    expect(arrived!.values('x-forwarded-for')).toEqual(['127.0.0.1']);
    expect(arrived!.values('idempotency-key')).toEqual(['k']);

    const order = `/v1/orders/${bought!.body.orderId}`;
    expect(await ask(await request('GET', order))).toMatchObject({ status: 200 });
    expect(await ask(await request('GET', order, {}, undefined, 'bob'))).toMatchObject({ status: 403 });
    expect(await ask(await request('GET', `/v1/sales/${id}`))).toMatchObject({ status: 200 });
    const own = { status: 200, body: { orders: [{ orderId: bought!.body.orderId }] } };
    expect(await ask(await request('GET', `/v1/sales/${id}/orders?limit=1`))).toMatchObject(own);
    expect(await ask(await request('GET', '/v1/orders?limit=1'))).toMatchObject(own);
    await expectSold(node, id, 1);
  });

  test('a request without credentials does not get through', async () => {
    relay.forget();
    const path = `/v1/sales/${sale}/orders`;
    for (const headers of [{}, { Authorization: 'Bearer x' }, { 'X-Buyer-Id': 'ann' }])
      expect((await ask(rawRequest('POST', path, headers, BODY)))?.status).toBe(401);
    expect(relay.requests()).toEqual([]);
  });

  test('a list of orders has pages', async () => {
    const id = await makeSale(node, { stock: 3, perBuyerLimit: 3 });
    const bought: string[] = [];
    for (let i = 0; i < 3; i++) bought.push((await node.buy(id, 'ann')).body.orderId);
    const page = async (query: string) =>
      (await ask(await request('GET', `/v1/sales/${id}/orders?${query}`)))!.body;
    const first = await page('limit=2');
    const second = await page(`limit=2&after=${encodeURIComponent(first.next)}`);
    const ids = [...first.orders, ...second.orders].map(({ orderId }: { orderId: string }) => orderId);
    expect(ids.sort()).toEqual(bought.sort());
  });

  test('everybody may listen to a sale, and nothing that the client has sent gets through with that', async () => {
    const id = await makeSale(node, { stock: 2 });
    relay.forget();
    const sent = { 'X-Buyer-Id': 'mallory', Authorization: 'Bearer x' };
    using page = new SaleListener(gateway.port, id, sent);
    await until(() => page.last?.data.remaining === 2, { what: 'the first event' });
    await node.buy(id, 'bob');
    await until(() => page.last?.data.remaining === 1, { what: 'the event of a purchase' });
    using again = new SaleListener(gateway.port, id, { ...sent, 'Last-Event-ID': page.last!.id! });
    await until(() => again.head !== '', { what: 'the answer' });
    expect(again.status).toBe(200);
    const [first, second] = relay.requests();
    for (const { values } of [first!, second!]) {
      for (const name of ['x-buyer-id', 'authorization']) expect(values(name)).toEqual([]);
      expect(values('x-forwarded-for')).toEqual(['127.0.0.1']);
    }
    expect(second!.values('last-event-id')).toEqual([page.last!.id!]);
  });

  test('one address may listen a hundred times at once, and buy all the same', async () => {
    const listen = () => new SaleListener(gateway.port, sale, {}, '127.0.0.7');
    const pages = Array.from({ length: 101 }, listen);
    try {
      await until(() => pages.every(({ head }) => head !== ''), { what: 'all answers' });
      expect(pages.map(({ status }) => status).filter((status) => status !== 200)).toEqual([429]);
      expect((await ask(await request('GET', `/v1/sales/${sale}`)))?.status).toBe(200);
    } finally {
      for (const page of pages) page[Symbol.dispose]();
    }
    await roomFor(listen);
  });

  test('what the gateway itself refuses is an outcome for the typed client, and no wrong address', async () => {
    const client = new BuyerClient({ url: `http://127.0.0.1:${gateway.port}` });
    expect(await client.purchase({ saleId: sale })).toMatchObject({ code: 'unauthenticated' });
    const pages = new Set<SaleListener>();
    // The gateway may still count pages that have left.
    const allListen = () => {
      for (const page of pages)
        if (page.head !== '' && page.status !== 200) {
          page[Symbol.dispose]();
          pages.delete(page);
        }
      while (pages.size < 100) pages.add(new SaleListener(gateway.port, sale));
      return [...pages].every(({ status }) => status === 200);
    };
    const updates = client.followSale(sale);
    try {
      await until(allListen, { what: 'a hundred pages listen' });
      expect((await updates.next()).value).toMatchObject({
        code: 'interrupted',
        detail: expect.stringContaining('Too many'),
      });
    } finally {
      await updates.return();
      for (const page of pages) page[Symbol.dispose]();
    }
    await roomFor(() => new SaleListener(gateway.port, sale));
  });

  test('an anonymous request has no body, and a query only visible characters', async () => {
    relay.forget();
    const path = `/v1/sales/${sale}`;
    expect([400, 200], 'a body').toContain((await ask(rawRequest('GET', path, {}, BODY)))?.status);
    expect((await ask(rawRequest('GET', path, {}, '')))?.status).toBe(200);
    expect((await ask(rawRequest('GET', `${path}?a=\xe9`)))?.status).toBe(400);
    for (const { body, values } of relay.requests())
      expect([body, values('transfer-encoding')]).toEqual(['', []]);
  });

  test('a buyer takes a place of a queue, listens to it, buys with its offer, and another one leaves', async () => {
    const id = await makeSale(node, { stock: 1, ...QUEUE });
    const path = `/v1/sales/${id}/place`;
    const joined = await ask(await request('POST', path, { 'X-Buyer-Id': 'mallory' }, BODY));
    expect(joined).toMatchObject({ status: 200, body: { number: 1 } });
    using page = new SaleListener(gateway.port, `${id}/place`, { authorization: await proof('ann') });
    await until(() => page.last?.data.state === 'offered', { what: 'the offer' });
    const { token } = page.last!.data.offer;
    const bought = await request('POST', `/v1/sales/${id}/orders`, { 'Purchase-Token': token }, BODY);
    expect(await ask(bought)).toMatchObject({ status: 201 });

    const { body: place } = (await ask(await request('POST', path, {}, '', 'bob')))!;
    relay.forget();
    const asked = await request('GET', path, { 'Place-Token': place.placeToken }, undefined, 'bob');
    expect(await ask(asked)).toMatchObject({ status: 200, body: { number: 2 } });
    expect(relay.requests()[0]!.values('place-token')).toEqual([place.placeToken]);
    expect(await ask(await request('DELETE', path, {}, undefined, 'bob'))).toMatchObject({
      body: { state: 'left' },
    });
    expect((await ask(rawRequest('POST', path, {}, '')))?.status).toBe(401);
  });

  test('the pages that explain a problem are there for everybody, and nothing that the client has sent gets through with them', async () => {
    relay.forget();
    const { body: problem } = (await ask(await request('GET', '/v1/orders/1')))!;
    const headers = { 'X-Buyer-Id': 'mallory', 'X-Forwarded-For': '192.0.2.1', Authorization: 'Bearer x' };
    for (const path of [problem.type, '/problems', '/openapi.json', '/docs']) {
      const page = await ask(rawRequest('GET', path, headers));
      expect(page?.status, path).toBe(200);
      const again = { ...headers, 'If-None-Match': page!.headers.etag! };
      expect((await ask(rawRequest('GET', path, again)))?.status, path).toBe(304);
    }
    const [, ...arrived] = relay.requests();
    expect(arrived).toHaveLength(8);
    for (const one of arrived) {
      for (const name of ['x-buyer-id', 'authorization']) expect(one.values(name)).toEqual([]);
      expect(one.values('x-forwarded-for')).toEqual(['127.0.0.1']);
    }
    for (const path of ['/problems/../metrics', '/problems/a/b', '/problemsx', '/docs/'])
      expect([400, 404], path).toContain((await ask(rawRequest('GET', path, headers)))?.status);
    expect((await ask(rawRequest('POST', '/docs', headers, '')))?.status).toBe(404);
    expect(relay.requests()).toHaveLength(9);
  });

  test('a request to a route that is not for buyers does not get through', async () => {
    const { orderId } = (await node.buy(await makeSale(node), 'ann')).body;
    relay.forget();
    const refused = [
      ['POST', `/v1/orders/${orderId}/pay`],
      ['POST', `/v1/orders/${orderId}/redeem`],
      ['POST', `/v1/orders/${orderId}/%70ay`],
      ['POST', `//v1/orders/${orderId}/pay`],
      ['POST', `/v1/orders/${orderId}/cancel/../pay`],
      ['POST', `/v1/orders/${orderId}/./pay`],
      ['POST', `/v1/orders/${orderId}/pay?/cancel`],
      ['POST', `/v1/orders/${orderId}/pay#/cancel`],
      ['GET', '/metrics'],
      ['GET', '/v1/sales'],
      ['POST', '/v1/sales'],
      ['PATCH', `/v1/sales/${sale}`],
      ['POST', `/v1/sales/${sale}`],
      ['DELETE', `/v1/sales/${sale}`],
      ['GET', `/v1/sales/${sale}/ledger`],
      ['GET', `/v1/sales/${sale}/place/../ledger`],
      ['GET', `/v1/sales/${sale}%0a`],
      ['POST', `/v1/sales/${sale}/orders%0a`],
      ['POST', `/v1/orders/${orderId}/refund`],
    ] as const;
    for (const [method, path] of refused) {
      const answer = await ask(await request(method, path, {}, '{"payType":"card"}'));
      expect([400, 404], `${method} ${path}`).toContain(answer?.status);
    }
    expect(relay.requests()).toEqual([]);
  });

  test.each([
    ['a body', (id: string) => request('POST', `/v1/sales/${id}/orders`, {}, ' '.repeat(17_000))],
    [
      'a header',
      (id: string) => request('POST', `/v1/sales/${id}/orders`, { 'X-Long': 'x'.repeat(9_000) }, BODY),
    ],
    ['an address', (id: string) => request('GET', `/v1/sales/${id}?${'x'.repeat(9_000)}`)],
  ])('%s that is too large does not get through', async (_, large) => {
    relay.forget();
    expect([400, 413, 414, 431]).toContain((await ask(await large(sale)))?.status);
    expect(relay.requests()).toEqual([]);
  });

  /** A second request in the name of another buyer, hidden so that only gateway or node might see it. */
  const smuggled = () =>
    rawRequest(
      'POST',
      `/v1/sales/${sale}/orders`,
      { 'X-Buyer-Id': 'victim', Authorization: 'Bearer x' },
      BODY,
    );
  /** Headers after `Host` and the credentials, and what follows the head. */
  const shapes: [string, (second: string) => [lines: string, content: string]][] = [
    ['two lengths, the first one short', (s) => [`Content-Length: 0\r\nContent-Length: ${s.length}\r\n`, s]],
    ['two lengths, the first one long', (s) => [`Content-Length: ${s.length}\r\nContent-Length: 0\r\n`, s]],
    ['the same length twice', (s) => ['Content-Length: 14\r\nContent-Length: 14\r\n', BODY + s]],
    ['a list of lengths', (s) => [`Content-Length: 0, ${s.length}\r\n`, s]],
    ['an empty length in front', (s) => [`Content-Length:\r\nContent-Length: ${s.length}\r\n`, s]],
    ['a length with a sign', (s) => [`Content-Length: +${s.length}\r\n`, s]],
    ['a length in hexadecimal', (s) => [`Content-Length: 0x${s.length.toString(16)}\r\n`, s]],
    ['a length behind a header without a name', (s) => [`: x\r\nContent-Length: ${s.length}\r\n`, s]],
    ['a length behind a space', (s) => [`Content-Length : ${s.length}\r\n`, s]],
    ['a length that is folded', (s) => [`Content-Length:\r\n ${s.length}\r\n`, s]],
    ['a length in a folded header', (s) => [`X-A: b\r\n Content-Length: ${s.length}\r\n`, s]],
    ['a length behind a bare LF', (s) => [`X-A: b\nContent-Length: ${s.length}\r\n`, s]],
    ['a length behind a bare CR', (s) => [`X-A: b\rContent-Length: ${s.length}\r\n`, s]],
    ['a length behind a NUL', (s) => [`X-A: b\0\r\nContent-Length: ${s.length}\r\n`, s]],
    ['an underscore in the name', (s) => [`Content_Length: ${s.length}\r\n`, s]],
    [
      'an encoding and a length',
      (s) => [`Content-Length: ${s.length + 5}\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n${s}`],
    ],
    [
      'a length and an encoding',
      (s) => [`Transfer-Encoding: chunked\r\nContent-Length: 5\r\n`, `0\r\n\r\n${s}`],
    ],
    ['xchunked', (s) => ['Transfer-Encoding: xchunked\r\n', `0\r\n\r\n${s}`]],
    [
      'xchunked and a length',
      (s) => [`Transfer-Encoding: xchunked\r\nContent-Length: ${s.length + 5}\r\n`, `0\r\n\r\n${s}`],
    ],
    ['chunked, then identity', (s) => ['Transfer-Encoding: chunked, identity\r\n', `0\r\n\r\n${s}`]],
    ['chunked twice', (s) => ['Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n', `0\r\n\r\n${s}`]],
    [
      'an empty encoding in front',
      (s) => ['Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n', `0\r\n\r\n${s}`],
    ],
    ['an encoding behind a tab', (s) => ['Transfer-Encoding:\tchunked\r\n', `0\r\n\r\n${s}`]],
    ['an encoding behind a space', (s) => ['Transfer-Encoding : chunked\r\n', `0\r\n\r\n${s}`]],
    ['an encoding behind a vertical tab', (s) => ['Transfer-Encoding: \x0bchunked\r\n', `0\r\n\r\n${s}`]],
    ['chunks', (s) => ['Transfer-Encoding: chunked\r\n', `e\r\n${BODY}\r\n0\r\n\r\n${s}`]],
    [
      'chunks with an extension',
      (s) => ['Transfer-Encoding: chunked\r\n', `e;a=b\r\n${BODY}\r\n0\r\n\r\n${s}`],
    ],
    [
      'chunks with a trailer',
      (s) => ['Transfer-Encoding: chunked\r\n', `e\r\n${BODY}\r\n0\r\nX-A: b\r\n\r\n${s}`],
    ],
    ['chunks with a wrong end', (s) => ['Transfer-Encoding: chunked\r\n', `e\r\n${BODY}XX0\r\n\r\n${s}`]],
    ['chunks that end with bare LFs', (s) => ['Transfer-Encoding: chunked\r\n', `e\n${BODY}\n0\n\n${s}`]],
    [
      'a chunk of a size that is none',
      (s) => ['Transfer-Encoding: chunked\r\n', `g\r\n${BODY}\r\n0\r\n\r\n${s}`],
    ],
    [
      'a chunk of a size beyond 64 bits',
      (s) => ['Transfer-Encoding: chunked\r\n', `1000000000000000e\r\n${BODY}\r\n0\r\n\r\n${s}`],
    ],
    ['a pipeline', (s) => ['Content-Length: 14\r\n', BODY + s]],
  ];

  test.each(shapes)('no second request gets through in %s, without a login', async (_, shape) => {
    const remaining = (await node.ops.show(sale)).remaining!;
    const [lines, content] = shape(smuggled());
    relay.forget();
    using connection = await RawConnection.open(`http://127.0.0.1:${gateway.port}`);
    await connection.send(`GET /v1/sales/${sale} HTTP/1.1\r\nHost: shop\r\n${lines}\r\n${content}`);
    await connection.answer();
    for (let i = 0; i < 3; i++)
      expect((await ask(await request('GET', `/v1/sales/${sale}`)))?.status).toBe(200);
    for (const { method, body, values } of relay.requests())
      expect([method, body, values('transfer-encoding'), values('x-buyer-id')]).toEqual(['GET', '', [], []]);
    expect((await node.ops.show(sale)).remaining).toBe(remaining);
  });

  test.each(shapes)('no second request gets through in %s', async (_, shape) => {
    const remaining = (await node.ops.show(sale)).remaining!;
    const [lines, content] = shape(smuggled());
    const head = `POST /v1/sales/${sale}/orders HTTP/1.1\r\nHost: shop\r\nAuthorization: ${await proof(`ann-${Math.random()}`)}\r\n`;
    relay.forget();
    using connection = await RawConnection.open(`http://127.0.0.1:${gateway.port}`);
    await connection.send(`${head}${lines}\r\n${content}`);
    const first = await connection.answer();
    // The gateway may answer the rest in any way, and so may a later request on its connection to the node.
    for (let i = 0; i < 3; i++)
      expect((await ask(await request('GET', `/v1/sales/${sale}`)))?.status).toBe(200);

    // All arriving bytes are valid HTTP, and name the buyer that the gateway has authenticated.
    const arrived = relay.requests().filter(({ method }) => method !== 'GET');
    expect(arrived.length).toBeLessThanOrEqual(1);
    for (const { values } of arrived) {
      expect(values('x-buyer-id')).toEqual([expect.stringMatching(/^ann-/)]);
      expect(values('transfer-encoding')).toEqual([]);
    }
    expect(remaining - (await node.ops.show(sale)).remaining!).toBe(first?.status === 201 ? 1 : 0);
    if (arrived.length === 0) expect([400, 413, 501, undefined]).toContain(first?.status);
  });
});

describe('HAProxy, which checks tokens itself', () => {
  /** In the place of a node: it answers 200 to all that gets through. */
  const node = createHttpServer((_, response) => response.end());

  beforeAll(async () => {
    await new Promise<void>((resolve) => node.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => new Promise((resolve) => node.close(resolve)));

  const start = (jwtSecret: string | undefined) =>
    Gateway.start('haproxy', { nodePort: (node.address() as AddressInfo).port, loginPort: 1, jwtSecret });
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

  /** @param key may be empty; libraries refuse that */
  async function statusOf(gateway: Gateway, sub: string, key: string): Promise<number | undefined> {
    const exp = Math.floor(Date.now() / 1_000) + 600;
    const text = `${part({ alg: 'HS256' })}.${part({ sub, exp })}`;
    const token = `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
    using connection = await RawConnection.open(`http://127.0.0.1:${gateway.port}`);
    await connection.send(rawRequest('POST', '/v1/sales/x/orders', { Authorization: `Bearer ${token}` }, ''));
    return (await connection.answer())?.status;
  }

  test('does not start without a key, because anybody could sign then', async () => {
    await expect(start(undefined)).rejects.toThrow(/JWT_SECRET is not in HAProxy's environment/);
  });

  test.each(['', 'a key that is too short'])('lets nobody in with the key %j', async (key) => {
    await using gateway = await start(key);
    expect(await statusOf(gateway, 'ann', key), await gateway.log()).toBe(503);
  });

  test('takes no name for a buyer that a node would not take', async () => {
    await using gateway = await start(SECRET);
    for (const sub of ['a', 'a'.repeat(128)]) expect(await statusOf(gateway, sub, SECRET)).toBe(200);
    for (const sub of ['ann\n', 'ann\0', 'a nn', 'anné', '', 'a'.repeat(129)])
      expect(await statusOf(gateway, sub, SECRET), JSON.stringify(sub)).toBe(401);
  });
});

interface Arrived {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  values(name: string): string[];
}

/** Passes bytes between a gateway and a node, and records those of the gateway. */
class Relay {
  readonly #server: Server;
  #connections: Buffer[][] = [];

  private constructor(nodePort: number) {
    this.#server = createServer((gateway) => {
      const node = connect(nodePort, '127.0.0.1');
      gateway.on('data', (bytes) => this.#keep(gateway, bytes));
      gateway.pipe(node);
      node.pipe(gateway);
      for (const [one, other] of [
        [gateway, node],
        [node, gateway],
      ] as const) {
        one.on('error', () => {});
        one.on('close', () => other.destroy());
      }
    });
  }

  readonly #kept = new Map<unknown, Buffer[]>();

  #keep(connection: unknown, bytes: Buffer): void {
    let pieces = this.#kept.get(connection);
    if (!pieces) {
      pieces = [];
      this.#kept.set(connection, pieces);
      this.#connections.push(pieces);
    }
    pieces.push(bytes);
  }

  static async to(nodePort: number): Promise<Relay> {
    const relay = new Relay(nodePort);
    await new Promise<void>((resolve) => relay.#server.listen(0, '127.0.0.1', resolve));
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  forget(): void {
    this.#connections = [];
    this.#kept.clear();
  }

  /** All requests that have arrived since. @throws if a byte is not part of a request by RFC 9112 */
  requests(): Arrived[] {
    return this.#connections.flatMap((pieces) => strictlyRead(Buffer.concat(pieces).toString('latin1')));
  }

  stop(): Promise<unknown> {
    return new Promise((resolve) => this.#server.close(resolve));
  }
}

const REQUEST_LINE = /^(GET|POST|DELETE) (\/[\x21-\x7e]*) HTTP\/1\.1$/;
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?[ \t]*$/;

function strictlyRead(text: string): Arrived[] {
  const requests: Arrived[] = [];
  for (let rest = text; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n');
    const [first = '', ...lines] = rest.slice(0, Math.max(end, 0)).split('\r\n');
    const [, method, path] = REQUEST_LINE.exec(first) ?? [];
    const fields = lines.map((line) => FIELD_LINE.exec(line));
    if (method === undefined || path === undefined || fields.includes(null))
      throw new Error(`no request arrives: ${JSON.stringify(rest)}`);
    const values = (name: string) =>
      fields.filter((field) => field![1]!.toLowerCase() === name).map((field) => field![2] ?? '');
    const lengths = values('content-length');
    if (lengths.length > 1 || !/^\d*$/.test(lengths[0] ?? '') || lengths[0] === '')
      throw new Error(`the length of the request is ambiguous: ${JSON.stringify(rest)}`);
    const bodyAt = end + 4;
    const length = Number(lengths[0] ?? 0);
    const body = rest.slice(bodyAt, bodyAt + length);
    if (body.length !== length) throw new Error(`half a request arrives: ${JSON.stringify(rest)}`);
    requests.push({ method, path, body, values });
    rest = rest.slice(bodyAt + length);
  }
  return requests;
}

/** The shop's login service, which nginx asks for the buyer of a token. */
class Login {
  readonly #server = createHttpServer((request, response) => {
    const [, payload] = (request.headers.authorization ?? '').split('.');
    const { sub } = payload ? JSON.parse(Buffer.from(payload, 'base64url').toString()) : {};
    if (sub !== undefined) response.setHeader('X-Buyer-Id', sub);
    response.writeHead(sub === undefined ? 401 : 200).end();
  });

  static async start(): Promise<Login> {
    const login = new Login();
    await new Promise<void>((resolve) => login.#server.listen(0, '127.0.0.1', resolve));
    return login;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): Promise<unknown> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(resolve));
  }
}
