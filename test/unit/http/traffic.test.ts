/** When a shutdown may close connections: no request may be under way, nor on its way. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { Traffic } from '../../../src/http/server/traffic.ts';
import { turn } from '../../support/engine/frozen-time.ts';

const QUIET_MS = 20;

/** The thread does not run for so long. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test('a request that arrived while the thread did not run is answered before it is quiet', async () => {
  const traffic = new Traffic();
  let answered = 0;
  const server = createServer((socket) =>
    socket.on('data', () => {
      traffic.begin();
      setImmediate(() => {
        answered++;
        traffic.end();
      });
    }),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [socket] = (await accepted) as [Socket];
  try {
    const quiet = traffic.quiet(QUIET_MS, 60_000).then(() => answered);
    await turn();
    client.write('request');
    standStill(4 * QUIET_MS);
    expect(await quiet).toBe(1);
  } finally {
    client.destroy();
    socket.destroy();
    server.close();
  }
});
