/**
 * More requests than a node can serve: the excess is refused at once, takes little memory, and leaves nothing behind.
 */
import { describe, expect, test } from 'vitest';
import { until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { expectSold, makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { TcpProxy } from '../../support/servers/network/tcp-proxy.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { residentBytesOf } from '../../support/servers/process/process-table.ts';
import { inTier, isRelease } from '../../support/tier.ts';

const MB = 1024 * 1024;
/** Connections that are idle or slow. */
const IDLE = inTier({ test: 150, release: 600 });
const BUSY = { status: 503, code: 'busy', headers: { 'retry-after': '1' } };

const orderPath = (saleId: string) => `/v1/sales/${saleId}/orders`;
const orderFrom = (saleId: string, buyerId: string, body = '{"quantity":1}') =>
  rawRequest('POST', orderPath(saleId), { 'X-Buyer-Id': buyerId }, body);

async function openMany(node: TestNode, count: number): Promise<RawConnection[]> {
  const before = await metric(node, 'stockade_connections');
  const opened = await Promise.all(Array.from({ length: count }, () => RawConnection.open(node.publicUrl)));
  await until(async () => (await metric(node, 'stockade_connections')) >= before + count, {
    what: `${count} connections more`,
  });
  return opened;
}

function closeAll(connections: readonly RawConnection[]): void {
  for (const connection of connections) connection.close();
}

describe('connections beyond MAX_CONNECTIONS', () => {
  const env = { WORKERS: '1', MAX_CONNECTIONS: '16' };
  const refused = 'stockade_connections_refused_total';

  test('are answered `busy` and closed, or far above the limit closed at once; afterwards the node serves as before', async () => {
    await using node = await startTestNode({ ...(await redisAndPostgres()), env });
    const id = await makeSale(node, { stock: 100 });
    const opened: RawConnection[] = [];
    const open = async () => {
      opened.push(await RawConnection.open(node.publicUrl));
      return opened.at(-1)!;
    };
    const anybody = rawRequest('GET', '/nowhere');

    // Silent connections are closed after a while, so open one after the other until there is one too many.
    const told = (await until(
      async () => {
        const connection = await open();
        await connection.send(anybody);
        const answer = await connection.answer();
        return answer?.status === 404 ? undefined : { connection, answer };
      },
      { what: 'a connection too many' },
    ))!;
    expect(opened.length).toBeGreaterThan(16);
    expect(told.answer).toMatchObject(BUSY);
    await told.connection.closed;
    expect(told.connection.failure).toBeUndefined();
    expect(await metric(node, refused)).toBe(1);

    const dropped = (await until(
      async () => {
        const connection = await open();
        const closed = connection.closed.then(() => connection);
        return (await metric(node, refused)) > 1 ? closed : undefined;
      },
      { what: 'a connection that is closed unanswered' },
    ))!;
    expect(dropped.rest).toBe('');

    closeAll(opened);
    await until(async () => (await metric(node, 'stockade_connections')) === 0, { what: 'none is left' });
    expect((await node.buy(id, 'cleo')).status).toBe(201);
    await expectSold(node, id, 1);
  });
});

test('connections to the ops port, which need no token, cannot use up the open files that buyers need', async () => {
  await using node = await startTestNode({ ...(await redisAndPostgres()), env: { WORKERS: '1' } });
  const opened: RawConnection[] = [];
  let status: number | undefined = 200;
  while (status === 200 && opened.length < 200) {
    const connection = await RawConnection.open(node.opsUrl);
    opened.push(connection);
    await connection.send(rawRequest('GET', '/healthz'));
    status = (await connection.answer())?.status;
  }
  expect(status).toBe(503);
  // Each of fifty consoles keeps one.
  expect(opened.length).toBeGreaterThan(60);
  closeAll(opened);
  await until(async () => (await node.opsRequest('/v1/sales')).status === 200, {
    what: 'room for operators',
  });
});

describe('a worker whose lanes are full', () => {
  const env = { WORKERS: '1', LANE_CAPACITY: '1', REQUEST_DEADLINE_MS: '30000', TAKE_TIMEOUT_MS: '29000' };

  test('refuses without reading token and body, and sells again when the store does', async () => {
    const stores = await redisAndPostgres();
    await using proxy = await TcpProxy.start(Number(new URL(stores.redisUrl).port));
    await using node = await startTestNode({ ...stores, redisUrl: proxy.through(stores.redisUrl), env });
    const id = await makeSale(node, { stock: 100, segments: 1 });
    const other = await makeSale(node, { stock: 1, segments: 1 });
    for (const buyer of ['ann', 'ben']) await node.buy(other, buyer);

    // Only of this sale: the event of the buyer's order in the other sale names the buyer too.
    const { held } = proxy.hold((command) => command.includes('ann') && command.includes(`{${id}:`));
    const first = node.buy(id, 'ann');
    await held;
    const second = node.buy(id, 'ben');
    await until(async () => (await metric(node, 'stockade_lane_depth')) === 1, { what: 'one is queued' });
    expect(await node.buy(id, 'cleo')).toMatchObject(BUSY);

    // Neither a buyer nor a whole body: neither is needed.
    using early = await RawConnection.open(node.publicUrl);
    await early.send(rawRequest('POST', orderPath(id), { 'Content-Length': '2000' }));
    expect(await early.answer()).toMatchObject(BUSY);
    await early.send(`${' '.repeat(2_000)}${orderFrom(id, 'dan')}`);
    expect(await early.answer()).toMatchObject(BUSY);

    await proxy.release();
    expect((await first).status).toBe(201);
    expect((await second).status).toBe(201);
    await early.send(orderFrom(id, 'dan'));
    expect(await early.answer()).toMatchObject({ status: 201 });
    await expectSold(node, id, 3);
  });
});

describe('what one connection can make a node hold', () => {
  const env = { WORKERS: '1' };

  test('is at most one body of the largest size, even if it comes in tiny pieces', async () => {
    await using node = await startTestNode({ ...(await redisAndPostgres()), env });
    const id = await makeSale(node, { stock: 1 });
    const connections = await openMany(node, 100);
    const before = residentBytesOf(node.pid);
    const head = rawRequest('POST', orderPath(id), { 'Content-Length': '4096' });
    await Promise.all(connections.map((connection) => connection.send(head)));
    for (let sent = 0; sent < 4_095; sent += 65) {
      await Promise.all(connections.map((connection) => connection.send(' '.repeat(65))));
      // A later request on the same worker is answered, so everything sent before it has been read.
      expect((await node.request(`/v1/sales/${id}`)).status).toBe(200);
    }
    expect(residentBytesOf(node.pid) - before).toBeLessThan(48 * MB);
    for (const connection of connections) await connection.send(' ');
    for (const connection of connections)
      expect(await connection.answer()).toMatchObject({ code: 'invalid_request' });
    closeAll(connections);
  });

  // `pipelines.test.ts` closes a client that does not read.
  if (isRelease) {
    test('does not include answers that the client does not read', async () => {
      await using node = await startTestNode({ ...(await redisAndPostgres()), env });
      const id = await makeSale(node, { stock: 1 });
      await node.buy(id, 'ann');
      expect((await node.buy(id, 'ben')).code).toBe('sold_out');
      const before = residentBytesOf(node.pid);
      const greedy = await Promise.all(Array.from({ length: 8 }, () => RawConnection.open(node.publicUrl)));
      const many = orderFrom(id, 'ben').repeat(2_000);
      await Promise.all(
        greedy.map(async (connection) => {
          connection.stopReading();
          // Until the node closes it, or reads no more of it.
          for (let sent = 0; sent < 64 && !connection.isStuck; sent++)
            await connection.sendOrGiveUp(many, 500);
        }),
      );
      expect((await node.buy(id, 'cleo')).code).toBe('sold_out');
      expect(residentBytesOf(node.pid) - before).toBeLessThan(64 * MB);
      closeAll(greedy);
    });
  }
});

test('reads and changes of orders are refused at once while Postgres hangs, and served as soon as it is back', async () => {
  await using postgres = await PostgresServer.start();
  const { redisUrl, keyPrefix } = await redisAndPostgres();
  const databaseUrl = await postgres.createDatabase();
  const env = { WORKERS: '1', REQUEST_DEADLINE_MS: '1000', TAKE_TIMEOUT_MS: '900' };
  await using node = await startTestNode({ redisUrl, keyPrefix, databaseUrl, env });
  const id = await makeSale(node, { stock: 100 });
  const { orderId } = (await node.buy(id, 'ann')).body;
  const headers = { 'x-buyer-id': 'ann' };
  const read = () => node.request(`/v1/orders/${orderId}`, { headers });
  const cancel = () => node.request(`/v1/orders/${orderId}/cancel`, { method: 'POST', headers });
  expect((await read()).body).toMatchObject({ orderId });

  await postgres.pause();
  const crowd = Array.from({ length: 40 }, read);
  // The first in the queue has waited for half of its time, so no request joins it any more.
  await until(async () => (await read()).code === 'busy', { what: 'the queue refuses requests' });
  for (const refused of [await read(), await cancel()]) expect(refused).toMatchObject(BUSY);
  const codes = new Set((await Promise.all(crowd)).map(({ code }) => code));
  expect([...codes].filter((code) => code !== 'busy' && code !== 'unavailable')).toEqual([]);
  postgres.resume();
  await until(async () => (await read()).status === 200, { what: 'the order is read' });
  expect((await cancel()).body).toMatchObject({ status: 'cancelled' });
});

test('idle and slow connections do not disturb others', async () => {
  const env = { WORKERS: '1' };
  await using node = await startTestNode({ ...(await redisAndPostgres()), env });
  const id = await makeSale(node, { stock: 1_000 });
  const before = residentBytesOf(node.pid);
  const connections = await openMany(node, IDLE);
  // A third sends nothing, a third has begun a request, a third has begun a body.
  for (const [i, connection] of connections.entries()) {
    if (i % 3 === 1) await connection.send(`POST ${orderPath(id)} HTTP/1.1\r\nHost: sto`);
    if (i % 3 === 2) await connection.send(orderFrom(id, `slow-${i}`).slice(0, -1));
  }
  const bought = await Promise.all(Array.from({ length: 200 }, (_, i) => node.buy(id, `buyer-${i}`)));
  expect(bought.filter(({ status }) => status === 201)).toHaveLength(200);
  expect(residentBytesOf(node.pid) - before).toBeLessThan(64 * MB);
  // A client that is slow, but fast enough, is served in the end.
  using slow = await RawConnection.open(node.publicUrl);
  await slow.send(orderFrom(id, 'slow').slice(0, -1));
  await slow.send('}');
  expect(await slow.answer()).toMatchObject({ status: 201 });
  // The node closes the others itself.
  await until(async () => (await metric(node, 'stockade_connections')) <= 2, {
    what: 'the silent connections are closed',
    timeoutMs: 60_000,
  });
  await expectSold(node, id, 201);
});
