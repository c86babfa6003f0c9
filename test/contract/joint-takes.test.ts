/** Takes of one turn of the event loop: a Redis server gets many of them as one command. */
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { BackendCorrupt, NotExecuted, OutcomeUnknown } from '../../src/engine/errors.ts';
import { MAX_BATCH_ORDERS } from '../../src/engine/limits.ts';
import { Keys } from '../../src/engine/redis/protocol/keys.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { freshPrefix, until } from '../support/fixtures.ts';
import { LONG_TIMEOUTS } from '../support/long-timeouts.ts';
import { TcpProxy } from '../support/servers/network/tcp-proxy.ts';
import { RedisServer } from '../support/servers/redis-server.ts';
import { aSale, kinds, type LoadedSale, loadSale } from '../support/shop/sales.ts';

const SEGMENTS = 48;

let server: RedisServer;
let keyPrefix: string;
let backend: RedisBackend;
let sale: LoadedSale;
let outsider: Redis;

// A server of its own: on a shared one, other tests make Redis forget its scripts, and commands are sent twice.
beforeAll(async () => {
  server = await RedisServer.start();
});

afterAll(() => server[Symbol.asyncDispose]());

beforeEach(async () => {
  keyPrefix = freshPrefix();
  const { takeTimeoutMs } = LONG_TIMEOUTS;
  backend = await RedisBackend.open({ url: server.url, keyPrefix, takeTimeoutMs, maxLogOrders: 2_000 });
  sale = await loadSale(backend, aSale({ stock: 9_600, segments: SEGMENTS }));
  outsider = new Redis(server.url);
});

afterEach(async () => {
  outsider.disconnect();
  await backend.close();
});

/** Runs the work. @returns how many scripts of this installation Redis ran meanwhile */
async function scriptsOf(work: () => Promise<unknown>): Promise<number> {
  const monitor = await outsider.monitor();
  const seen: string[][] = [];
  monitor.on('monitor', (_, command: string[]) => seen.push(command));
  await work();
  const mark = `${keyPrefix}the end`;
  await outsider.get(mark);
  await until(() => seen.some(([, key]) => key === mark), { what: 'all commands are seen' });
  monitor.disconnect();
  const isOwn = ([name = '', , , key = '']: string[]) => /^eval/i.test(name) && key.startsWith(keyPrefix);
  return seen.filter(isOwn).length;
}

const segmentKey = (segment: number) =>
  new Keys(keyPrefix).segment({ saleId: sale.sale.id, segment }).segment;

/** Takes from all segments in one turn, each with as many orders. */
const takeFromAll = (orders: number) =>
  Promise.all(Array.from({ length: SEGMENTS }, (_, segment) => sale.take(sale.crowd(orders), segment)));

it('sends many takes of a turn as one command, and each has its own reply', async () => {
  const [anna, again] = [sale.order('anna'), sale.order('anna', { key: 'another' })];
  await sale.take([anna], 0);
  const scripts = await scriptsOf(async () => {
    const replies = await Promise.all([
      sale.take([anna, again, sale.order('ben')], 0),
      sale.take([], 1),
      ...Array.from({ length: SEGMENTS - 2 }, (_, i) => sale.take(sale.crowd(1), i + 2)),
    ]);
    expect(replies.map(kinds)).toEqual([
      ['replay', 'limit', 'taken'],
      [],
      ...Array.from({ length: SEGMENTS - 2 }, () => ['taken']),
    ]);
  });
  expect(scripts).toBe(1);
  await sale.expectConserved();
});

it('sends a few takes of a turn as a command each', async () => {
  const few = () => Promise.all([0, 1, 2].map((segment) => sale.take(sale.crowd(1), segment)));
  expect(await scriptsOf(few)).toBe(3);
});

it('sends them as several commands if one would take longer than the largest take', async () => {
  const scripts = await scriptsOf(async () => {
    const replies = await takeFromAll(MAX_BATCH_ORDERS / 4);
    expect(replies.flatMap(kinds)).toEqual(new Array(SEGMENTS * 64).fill('taken'));
  });
  expect(scripts).toBe(SEGMENTS / 3);
  await sale.expectConserved();
});

it('fails only the takes of a segment with invalid data', async () => {
  await outsider.set(segmentKey(1), 'no hash');
  await outsider.hset(segmentKey(2), 'left', 'many');
  const taken = await Promise.allSettled([
    sale.take([sale.order('zoe', { quantity: 0 })], 0),
    ...Array.from({ length: SEGMENTS - 1 }, (_, i) => sale.take(sale.crowd(1), i + 1)),
  ]);
  const [zoe, noHash, many, ...others] = taken;
  expect(zoe).toMatchObject({ reason: expect.any(NotExecuted) });
  expect(noHash).toMatchObject({ reason: expect.any(BackendCorrupt) });
  expect(noHash).toMatchObject({ reason: { message: expect.stringContaining('WRONGTYPE') } });
  expect(many).toMatchObject({ reason: expect.any(BackendCorrupt) });
  expect(many).toMatchObject({ reason: { message: expect.stringContaining('CORRUPT') } });
  for (const other of others) expect(other).toMatchObject({ value: { status: 'served', orders: 1 } });
});

it('fails all takes of a command whose reply is lost, and each is executed once', async () => {
  const proxy = await TcpProxy.start(Number(new URL(server.url).port));
  const behind = await RedisBackend.open({
    url: proxy.through(server.url),
    keyPrefix,
    takeTimeoutMs: LONG_TIMEOUTS.takeTimeoutMs,
    maxLogOrders: 2_000,
  });
  try {
    const orders = Array.from({ length: SEGMENTS }, (_, segment) => [sale.order(`buyer-${segment}`)]);
    const all = () => Promise.allSettled(orders.map((order, i) => behind.takes.take(sale.batch(order, i))));
    const loss = proxy.loseReplies((request) => request.includes('buyer-0'));
    for (const lost of await all()) expect(lost).toMatchObject({ reason: expect.any(OutcomeUnknown) });
    await loss.lost;
    await until(() => behind.takes.ready, { what: 'the connection is back' });
    for (const again of await all())
      expect(again).toMatchObject({ value: { results: [{ kind: 'replay' }] } });
    await sale.expectConserved();
  } finally {
    await behind.close();
    await proxy.stop();
  }
});

it('reports a take as sent when it is gathered: a purchase whose deadline passes after that may have been taken', async () => {
  let sent = false;
  const taking = backend.takes.take({ ...sale.batch(sale.crowd(1)), sending: () => (sent = true) });
  expect(sent).toBe(true);
  expect(kinds(await taking)).toEqual(['taken']);
});
