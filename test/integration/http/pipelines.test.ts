/** Requests sent before earlier ones are answered, and answers that clients do not read. */
import { describe, expect, test } from 'vitest';
import { notModified } from '../../../src/http/server/conditional.ts';
import type { OpenHttpServer } from '../../../src/http/server/http-server.ts';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { json } from '../../../src/http/server/replies/reply.ts';
import { Router } from '../../../src/http/server/router.ts';
import { Traffic } from '../../../src/http/server/traffic.ts';
import { chooseHttpServer } from '../../../src/node/process/http-server.ts';
import { until } from '../../support/fixtures.ts';
import { ANY_PORT, openHttpServer } from '../../support/http/http-server.ts';
import { HTTP_SERVERS } from '../../support/http/http-servers.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import { startTestNode } from '../../support/nodes/node.ts';
import { makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { residentBytesOf } from '../../support/servers/process/process-table.ts';
import { isRelease } from '../../support/tier.ts';

/** More requests than a server reads at once. */
const PIPELINE = 20_000;
const GET = rawRequest('GET', '/now');
const LONG = 'x'.repeat(3_000);
/** As long as `LONG`, without a body. */
const UNCHANGED = notModified({ etag: `"${LONG}"` });
/** More than the kernels on both sides of a connection buffer. */
const VAST = 'y'.repeat(16 * 1024 * 1024);
/** An upper limit for what the kernels on both sides of a connection buffer. */
const MOST_KEPT_BYTES = 32 * 1024 * 1024;
/** Within this time the node reads what is sent, or stops reading. */
const SENT_WITHIN_MS = 120_000;
/** Turns after which the node has read everything that was sent. */
const TURNS = 20;
const MOST_GROWTH_BYTES = 100 * 1024 * 1024;

interface Port extends AsyncDisposable {
  /** Requests that reached the gate. */
  readonly handled: number;
  /** Open connections of the port. */
  readonly held: number;
  open(): Promise<RawConnection>;
  /** As when a node stops. */
  drain(): Promise<void>;
}

/** A port whose routes all answer within the callback that calls them. */
async function openPort(open: OpenHttpServer = openHttpServer): Promise<Port> {
  let handled = 0;
  const traffic = new Traffic();
  const faults: unknown[] = [];
  const gate = (_: unknown, request: { getUrl(): string }) => {
    handled++;
    return request.getUrl() === '/refused' ? problem('rate_limited') : undefined;
  };
  const listener = await new Router(open, { fault: (error) => faults.push(error) }, traffic, gate)
    .route('get', '/now', (exchange) => exchange.reply(json(200, {})))
    .route('get', '/long', (exchange) => exchange.reply(json(200, LONG)))
    .route('get', '/unchanged', (exchange) => exchange.reply(UNCHANGED))
    .route('get', '/vast', (exchange) => exchange.reply(json(200, VAST)))
    .route('post', '/body', (exchange, request) =>
      exchange.readBody(request, () => exchange.reply(json(200, {}))),
    )
    .listen(ANY_PORT);
  const opened: RawConnection[] = [];
  return {
    get handled() {
      return handled;
    },
    get held() {
      return traffic.connections.counts().open;
    },
    async open() {
      const connection = await RawConnection.open(`http://127.0.0.1:${listener.port}`);
      opened.push(connection);
      return connection;
    },
    drain: () => listener.drain(60_000),
    async [Symbol.asyncDispose]() {
      for (const connection of opened) connection.close();
      await listener.drain(1_000);
      expect(faults).toEqual([]);
    },
  };
}

describe('the second request of a pipeline is not handled, and its connection is closed', () => {
  test.each([
    ['answered at once', GET],
    ['to an unknown address', rawRequest('GET', '/nowhere')],
    ['with a method that is not allowed', rawRequest('DELETE', '/now')],
    ['for the head alone', rawRequest('HEAD', '/now')],
    ['refused by the gate', rawRequest('GET', '/refused')],
    ['with a body', rawRequest('POST', '/body', {}, '{}')],
    ['with a body of no bytes', rawRequest('POST', '/body', {}, '')],
  ])('a request %s', async (_, request) => {
    await using port = await openPort();
    const connection = await port.open();
    await connection.send(request.repeat(PIPELINE));
    await connection.closed;
    expect(port.handled).toBe(1);
  });

  test('a request is not handled if it follows a body that is longer than its content-length', async () => {
    await using port = await openPort();
    const connection = await port.open();
    await connection.send(`${rawRequest('POST', '/body', {}, '{}')}${GET}`);
    await connection.closed;
    expect(port.handled).toBe(1);
  });
});

describe('a request whose end is ambiguous is refused, and nothing after it is handled', () => {
  const SECOND = rawRequest('GET', '/now');
  const shapes = [
    ['chunks', { 'Transfer-Encoding': 'chunked' }, '2\r\n{}\r\n0\r\n\r\n'],
    ['chunks with a wrong end', { 'Transfer-Encoding': 'chunked' }, '2\r\n{}XX0\r\n\r\n'],
    ['another encoding', { 'Transfer-Encoding': 'xchunked' }, '0\r\n\r\n'],
    ['an encoding and a length', { 'Transfer-Encoding': 'chunked', 'Content-Length': '5' }, '0\r\n\r\n'],
    ['two lengths', { 'Content-Length': '2', 'content-length': '60' }, '{}'],
    ['the same length twice', { 'Content-Length': '2', 'content-length': '2' }, '{}'],
    ['a length without a value in front', { 'Content-Length': '', 'content-length': '60' }, ''],
    ['an encoding without a value in front', { 'Transfer-Encoding': '', 'transfer-encoding': 'chunked' }, ''],
    ['a list of lengths', { 'Content-Length': '2, 2' }, '{}'],
    ['a length with a sign', { 'Content-Length': '+2' }, '{}'],
    ['a length of nothing in hexadecimal', { 'Content-Length': '0x0' }, ''],
  ] as const;

  test.each(shapes)('%s', async (_, headers, body) => {
    await using port = await openPort();
    for (const path of ['/body', '/now', '/nowhere']) {
      // The following bytes arrive in the same packet, or later.
      const together = await port.open();
      await together.send(rawRequest('POST', path, headers) + body + SECOND);
      await together.closed;
      const later = await port.open();
      await later.send(rawRequest('POST', path, headers) + body);
      expect((await later.answer())?.status).toBe(400);
      await later.send(SECOND);
      await later.closed;
      expect(later.rest).not.toContain('HTTP/1.1');
    }
    expect(port.handled).toBe(0);
  });
});

test('a client that waits for each answer keeps its connection', async () => {
  await using port = await openPort();
  const connection = await port.open();
  for (let i = 0; i < 500; i++) {
    for (const request of [GET, rawRequest('POST', '/body', {}, '{}'), rawRequest('GET', '/nowhere')]) {
      await connection.send(request);
      expect((await connection.answer())?.status).toBe(request.includes('nowhere') ? 404 : 200);
    }
  }
  expect(port.handled).toBe(1_500);
});

test.each(['/long', '/unchanged'])(
  'a client that does not read answers is closed as soon as the kernel’s buffer is full: %s',
  async (path) => {
    await using port = await openPort();
    const connection = await port.open();
    connection.stopReading();
    const request = rawRequest('GET', path);
    let asked = 0;
    do {
      const due = ++asked;
      void connection.send(request);
      await until(() => port.handled === due || port.held === 0, { what: `request ${due}` });
      // The answer is written at the end of this turn: a request before that is a pipeline.
      await new Promise((resolve) => setImmediate(resolve));
    } while (port.held > 0 && asked * LONG.length < MOST_KEPT_BYTES);
    expect(asked * LONG.length).toBeLessThan(MOST_KEPT_BYTES);
  },
);

test('an answer larger than the kernel’s buffer keeps its request under way until the client has read it', async () => {
  await using port = await openPort();
  const connection = await port.open();
  connection.stopReading();
  await connection.send(rawRequest('GET', '/vast'));
  await until(() => port.handled === 1, { what: 'the request' });
  await fetchTurn(port);
  const handled = port.handled;
  await connection.send(GET);
  await until(() => port.held === 1, { what: 'its connection is closed' });
  expect(port.handled).toBe(handled);
});

test('a slow reader gets all of a long answer, also when the port drains', async () => {
  await using port = await openPort();
  const connection = await port.open();
  connection.stopReading();
  await connection.send(rawRequest('GET', '/vast'));
  await fetchTurn(port);
  const drained = port.drain();
  // Longer than a port must be quiet before its connections are closed.
  await new Promise((resolve) => setTimeout(resolve, 300));
  connection.readOn();
  expect((await connection.answer())?.body === VAST).toBe(true);
  await drained;
});

/** Sends another request and waits for its answer, so that earlier answers have been written. */
async function fetchTurn(port: Port): Promise<void> {
  const other = await port.open();
  await other.send(GET);
  expect((await other.answer())?.status).toBe(200);
}

// `overload.test.ts` bounds what eight such clients can make a node hold.
if (isRelease) {
  test('clients that do not read answers cost less than 100 MB on each port: four hundred, or as many as the port takes', async () => {
    await using node = await startTestNode({ ...(await redisAndPostgres()), env: { WORKERS: '1' } });
    const before = residentBytesOf(node.pid);
    const pipeline = Buffer.from(rawRequest('GET', '/').repeat(PIPELINE));
    for (const { url, count } of [
      { url: node.publicUrl, count: 400 },
      { url: node.opsUrl, count: 90 },
    ]) {
      const connections: RawConnection[] = [];
      for (let i = 0; i < count; i++) connections.push(await RawConnection.open(url));
      for (const connection of connections) connection.stopReading();
      await Promise.all(connections.map((connection) => connection.sendOrGiveUp(pipeline, SENT_WITHIN_MS)));
      // In each turn of its loop the node reads from every connection, at most once each.
      for (let turn = 0; turn < TURNS; turn++) expect((await fetch(`${url}/nowhere`)).status).toBe(404);
      expect(residentBytesOf(node.pid) - before).toBeLessThan(MOST_GROWTH_BYTES);
      for (const connection of connections) connection.close();
    }
  });
}

/** A node reads this much in one go. If all of it is there, the node reads on in the same turn, and finds the reset. */
const READ_BYTES = 65_536;

test('a connection that is reset behind a CONNECT does not end the node', async () => {
  await using node = await startTestNode({ ...(await redisAndPostgres()), env: { WORKERS: '1' } });
  const first = `${rawRequest('POST', '/v1/orders/1/cancel', { 'Transfer-Encoding': 'chunked' })}0\r\n\r\n`;
  for (const url of [node.publicUrl, node.opsUrl]) {
    for (const bytes of [READ_BYTES, 2 * READ_BYTES]) {
      const connection = await RawConnection.open(url);
      // Bytes and reset must both be there when the node reads.
      node.signal('SIGSTOP');
      await connection.send((first + rawRequest('CONNECT', 'shop.example:443')).padEnd(bytes, 'x'));
      connection.reset();
      await connection.closed;
      node.signal('SIGCONT');
      const next = await RawConnection.open(url);
      await next.send(rawRequest('GET', '/docs'));
      expect((await next.answer())?.status, await node.log()).toBe(200);
      next.close();
    }
  }
});

describe.each(HTTP_SERVERS)('over %s, a request line in two packets', (kind) => {
  /** Sends the request line up to the middle of its version, and the rest once the server has read that. */
  async function sendCut(connection: RawConnection, request: string, other: () => Promise<unknown>) {
    const cut = request.indexOf(' HT') + ' HT'.length;
    await connection.send(request.slice(0, cut));
    // It came later than the first packet, so that was read before it is answered.
    await other();
    await connection.send(request.slice(cut));
    return connection.answer();
  }

  test('reaches no code of ours if uWebSockets.js answers it', async () => {
    await using port = await openPort((await chooseHttpServer(kind)).open);
    const [connection, another] = [await port.open(), await port.open()];
    const answer = await sendCut(connection, GET, async () => {
      await another.send(GET);
      expect((await another.answer())?.status).toBe(200);
    });
    const [status, handled] = kind === 'uws' ? [505, 1] : [200, 2];
    expect(answer?.status).toBe(status);
    expect(port.handled).toBe(handled);
    if (kind === 'uws') await connection.closed;
  });

  test('of a purchase makes no order if it is answered 505', async () => {
    const env = { HTTP_SERVER: kind, WORKERS: '1' };
    await using node = await startTestNode({ ...(await redisAndPostgres()), env });
    const saleId = await makeSale(node);
    using connection = await RawConnection.open(node.publicUrl);
    const headers = { 'X-Buyer-Id': 'ann', 'Idempotency-Key': 'one', 'Content-Type': 'application/json' };
    const purchase = rawRequest('POST', `/v1/sales/${saleId}/orders`, headers, '{"quantity":1}');
    const answer = await sendCut(connection, purchase, () => node.request('/healthz'));
    const [status, orders] = kind === 'uws' ? [505, 0] : [201, 1];
    expect(answer?.status).toBe(status);
    expect(await node.ops.show(saleId)).toMatchObject({ committedOrders: orders, remaining: 10 - orders });
    // Sent again as usual clients send it, the same request is a purchase, or a repetition of one.
    using whole = await RawConnection.open(node.publicUrl);
    await whole.send(purchase);
    expect((await whole.answer())?.status).toBe(201);
    expect(await node.ops.show(saleId)).toMatchObject({ committedOrders: 1 });
  });
});
