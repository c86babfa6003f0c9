/** Which program speaks HTTP, where one of the two can't be loaded or can't share its port. */
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { chooseHttpServer, workersPossible } from '../../../src/node/process/http-server.ts';
import { canShareNodePorts } from '../../../src/node/process/ports.ts';

const noBinary = async () => {
  throw new Error('This version of uWS.js supports only Node.js versions 18, 20, 21 and 22');
};
const notInstalled = async () => {
  throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
};
const loads = async () => () => {
  throw new Error('nobody opens it');
};

test('uWebSockets.js serves where a binary of it loads', async () => {
  expect(await chooseHttpServer('auto', loads)).toMatchObject({ kind: 'uws' });
  expect(await chooseHttpServer('uws', loads)).toMatchObject({ kind: 'uws' });
});

test('node:http serves where none loads, and the reason is known', async () => {
  const why = `no binary of uWebSockets.js loads on ${process.platform} ${process.arch} with Node ${process.versions.node}`;
  expect(await chooseHttpServer('auto', noBinary)).toMatchObject({ kind: 'node', why });
  const missing = { kind: 'node', why: 'uWebSockets.js is not installed' };
  expect(await chooseHttpServer('auto', notInstalled)).toMatchObject(missing);
});

test('if a setting demands one of the two, that one serves, or the node does not start', async () => {
  const chosen = await chooseHttpServer('node', loads);
  expect(chosen.kind).toBe('node');
  expect(chosen.why).toBeUndefined();
  await expect(chooseHttpServer('uws', noBinary)).rejects.toThrow(/HTTP_SERVER is uws, but no binary/);
});

test('one worker serves where threads can’t share a port, which is logged', async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => lines.push(line) });
  const canShare = await canShareNodePorts('127.0.0.1');
  const wanted = { httpServer: 'node', workers: 3, host: '127.0.0.1' } as const;
  expect(await workersPossible(wanted, log)).toBe(canShare ? 3 : 1);
  expect(lines.length).toBe(canShare ? 0 : 1);
  if (!canShare) expect(lines[0]).toContain('one worker serves buyers');
  expect(await workersPossible({ ...wanted, workers: 1 }, log)).toBe(1);
});

test('threads share a port on Linux, from Node 22.12 and 23.1', async () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const isKnown = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
  expect(await canShareNodePorts('127.0.0.1')).toBe(isKnown && process.platform === 'linux');
});
