/** No two nodes serve on one port by mistake. The HTTP servers would let them: they share ports among threads. */
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { onOwnPort } from '../../../src/node/process/ports.ts';

const HOST = '127.0.0.1';
const opened: Server[] = [];

afterEach(() => {
  for (const server of opened.splice(0)) server.close();
});

function listen(port = 0): Promise<number> {
  const server = createServer();
  opened.push(server);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, HOST, () => resolve((server.address() as AddressInfo).port));
  });
}

/** Until its servers have opened, which `opens` tells. */
function startOn(port: number) {
  let opens = () => {};
  const began = new Promise<number>((begin) => {
    const opening = new Promise<void>((resolve) => {
      opens = resolve;
    });
    void onOwnPort(HOST, port, async (own) => {
      begin(own);
      await opening;
    });
  });
  return { began, opens: () => opens() };
}

test('a port is free for the servers that are opened there, and used afterwards', async () => {
  const port = await onOwnPort(HOST, 0, async (own) => {
    expect(await listen(own)).toBe(own);
    return own;
  });
  await expect(onOwnPort(HOST, port, async () => 'opened')).rejects.toMatchObject({
    code: 'port_in_use',
    message: `can't listen on ${HOST}:${port}: something else listens there`,
  });
});

test('while a node opens its servers, no other node gets the port', async () => {
  const first = startOn(0);
  const port = await first.began;
  await expect(onOwnPort(HOST, port, async () => 'opened')).rejects.toMatchObject({
    code: 'port_in_use',
    message: `can't listen on ${HOST}:${port}: another node is about to listen there`,
  });
  expect(await onOwnPort(HOST, 0, async (other) => other)).not.toBe(port);
  first.opens();
});

test('a port is free again if the servers fail to open', async () => {
  const port = await onOwnPort(HOST, 0, async (own) => own);
  const failed = onOwnPort(HOST, port, () => Promise.reject(new Error('no servers')));
  await expect(failed).rejects.toThrow('no servers');
  expect(await onOwnPort(HOST, port, async (own) => own)).toBe(port);
});
