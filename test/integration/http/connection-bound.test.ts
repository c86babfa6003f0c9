/** The limit on connections of one address: what the address is answered, and that no other client notices. */
import { expect, test } from 'vitest';
import { ConnectionBound } from '../../../src/admission/connection-bound.ts';
import { rateTable } from '../../../src/admission/rate-limiter.ts';
import { ANSWERED_ABOVE_SHARE, Connections } from '../../../src/http/server/connections.ts';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { json } from '../../../src/http/server/replies/reply.ts';
import { type Gate, Router } from '../../../src/http/server/router.ts';
import { Traffic } from '../../../src/http/server/traffic.ts';
import { until } from '../../support/fixtures.ts';
import { ANY_PORT, openHttpServer } from '../../support/http/http-server.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import type { Answer } from '../../support/nodes/node.ts';

const GREEDY = '127.0.0.2';
const PROXY = '127.0.0.3';
const LOOK = rawRequest('GET', '/');
const GOOD = { status: 200 };
const BUSY = { status: 503, code: 'busy', headers: { 'retry-after': '1' } };

interface Port extends AsyncDisposable {
  readonly connections: Connections;
  open(count: number, localAddress: string): Promise<RawConnection[]>;
  look(connection: RawConnection): Promise<Answer | undefined>;
}

/** Opens a port with one route, to which 127.0.0.3 is a proxy. */
async function openPort(most: number, gate?: Gate): Promise<Port> {
  const bound = new ConnectionBound({
    policy: { requests: 1, seconds: 86_400, burst: 8 },
    addresses: { table: rateTable(1_024), key: new Uint8Array(8) },
    sites: { table: rateTable(1_024), key: new Uint8Array(8) },
    isExempt: (address) => address[3] === 3,
    answeredAboveShare: ANSWERED_ABOVE_SHARE,
  });
  const connections = new Connections(most, bound);
  const traffic = new Traffic(connections);
  const faults: unknown[] = [];
  const listener = await new Router(openHttpServer, { fault: (error) => faults.push(error) }, traffic, gate)
    .route('get', '/', (exchange) => exchange.reply(json(200, {})))
    .listen(ANY_PORT);
  const opened: RawConnection[] = [];
  const seen = () => connections.counts().open + connections.counts().ofAddress.dropped;
  return {
    connections,
    async open(count, localAddress) {
      const expected = seen() + count;
      const url = `http://127.0.0.1:${listener.port}`;
      for (let i = 0; i < count; i++) opened.push(await RawConnection.open(url, { localAddress }));
      await until(() => seen() >= expected, { what: `${count} connections more` });
      return opened.slice(-count);
    },
    async look(connection) {
      await connection.send(LOOK);
      return connection.answer();
    },
    async [Symbol.asyncDispose]() {
      for (const connection of opened) connection.close();
      await listener.drain(1_000);
      expect(faults).toEqual([]);
    },
  };
}

test('above its limit an address is answered busy and closed; far above it, new connections are closed at once', async () => {
  await using port = await openPort(1_000);
  const { connections, open, look } = port;
  const [early, late] = await open(9, GREEDY);
  // The next request of that address, on any of its connections.
  expect(await look(early!)).toMatchObject(BUSY);
  await early!.closed;
  expect(early!.failure).toBeUndefined();
  expect(await look(late!)).toMatchObject(GOOD);
  expect(connections.counts()).toMatchObject({ shed: 0, ofAddress: { shed: 1, dropped: 0 } });

  const [last, dropped] = await open(2, GREEDY);
  await dropped!.closed;
  expect(dropped!.rest).toBe('');
  expect(connections.counts().ofAddress).toEqual({ shed: 1, dropped: 1 });

  for (const other of await open(3, '127.0.0.1')) expect(await look(other)).toMatchObject(GOOD);
  for (const proxied of await open(30, PROXY)) expect(await look(proxied)).toMatchObject(GOOD);
  expect(await look(last!)).toMatchObject(BUSY);
  expect(connections.counts().ofAddress).toEqual({ shed: 2, dropped: 1 });
});

test('a request for the head alone keeps no connection open', async () => {
  await using port = await openPort(1_000);
  const [early] = await port.open(9, GREEDY);
  await early!.send(rawRequest('HEAD', '/'));
  await early!.closed;
  await until(() => port.connections.counts().open === 8, { what: 'the connection is not counted any more' });
});

test('an address above its rate keeps its connections only while there are enough', async () => {
  const REFUSED = { status: 503, code: 'unavailable' };
  await using port = await openPort(10, () => problem('unavailable'));
  const { open, look } = port;
  const [one] = await open(5, GREEDY);
  expect(await look(one!)).toMatchObject(REFUSED);
  const [proxied] = await open(1, PROXY);
  // The next one is above half of the limit. A proxy is not closed for the requests that it passes on.
  expect(await look(proxied!)).toMatchObject(REFUSED);
  expect(await look(one!)).toMatchObject(REFUSED);
  await one!.closed;
  expect(one!.failure).toBeUndefined();
  expect(await look(proxied!)).toMatchObject(REFUSED);
});
