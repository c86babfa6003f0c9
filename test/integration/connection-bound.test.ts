/** What somebody meets who has too many connections: as at MAX_CONNECTIONS, and nobody else notices. */
import * as uWS from 'uWebSockets.js';
import { expect, test } from 'vitest';
import { ConnectionBound } from '../../src/admission/connection-bound.ts';
import { rateTable } from '../../src/admission/rate-limiter.ts';
import { ANSWERED_ABOVE_SHARE, Connections } from '../../src/http/connections.ts';
import { Router, Traffic } from '../../src/http/exchange.ts';
import { listen } from '../../src/http/listener.ts';
import { json } from '../../src/http/problem.ts';
import { until } from '../support/fixtures.ts';
import { RawConnection, rawRequest } from '../support/raw-http.ts';

const GREEDY = '127.0.0.2';
const LOOK = rawRequest('GET', '/');
const GOOD = { status: 200 };
const BUSY = { status: 503, code: 'busy', headers: { 'retry-after': '1' } };

test('an address with too many connections is told busy and closed, far beyond it closed at once', async () => {
  const bound = new ConnectionBound({
    policy: { requests: 1, seconds: 86_400, burst: 8 },
    addresses: { table: rateTable(1_024), key: new Uint8Array(8) },
    sites: { table: rateTable(1_024), key: new Uint8Array(8) },
    isExempt: (address) => address[3] === 3,
    answeredAboveShare: ANSWERED_ABOVE_SHARE,
  });
  const connections = new Connections(1_000, bound);
  const traffic = new Traffic(connections);
  const app = uWS.App();
  const faults: unknown[] = [];
  new Router(app, { fault: (error) => faults.push(error) }, traffic)
    .route('get', '/', (exchange) => exchange.reply(json(200, {})))
    .end();
  const listener = await listen(app, '127.0.0.1', 0, traffic);
  const url = `http://127.0.0.1:${listener.port}`;
  const opened: RawConnection[] = [];
  const open = async (count: number, localAddress: string) => {
    const before = connections.counts();
    for (let i = 0; i < count; i++) opened.push(await RawConnection.open(url, { localAddress }));
    const seen = () => connections.counts().open + connections.counts().ofAddress.dropped;
    const expected = before.open + before.ofAddress.dropped + count;
    await until(() => seen() >= expected, { what: `${count} connections more` });
    return opened.slice(-count);
  };
  const look = async (connection: RawConnection) => {
    await connection.send(LOOK);
    return connection.answer();
  };

  try {
    const [early] = await open(9, GREEDY);
    // The next request of that address, on whichever connection.
    expect(await look(early!)).toMatchObject(BUSY);
    await early!.closed;
    expect(early!.failure).toBeUndefined();
    const [, late] = opened;
    expect(await look(late!)).toMatchObject(GOOD);
    expect(connections.counts()).toMatchObject({ shed: 0, ofAddress: { shed: 1, dropped: 0 } });

    const [last, dropped] = await open(2, GREEDY);
    await dropped!.closed;
    expect(dropped!.rest).toBe('');
    expect(connections.counts().ofAddress).toEqual({ shed: 1, dropped: 1 });

    for (const other of await open(3, '127.0.0.1')) expect(await look(other)).toMatchObject(GOOD);
    for (const proxied of await open(30, '127.0.0.3')) expect(await look(proxied)).toMatchObject(GOOD);
    expect(await look(last!)).toMatchObject(BUSY);
    expect(connections.counts().ofAddress).toEqual({ shed: 2, dropped: 1 });
    expect(faults).toEqual([]);
  } finally {
    for (const connection of opened) connection.close();
    await listener.drain(1_000);
  }
});
