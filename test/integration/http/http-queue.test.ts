/** Operators see a queue and control its offers, at the ops port and on the command line. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../../src/postgres/database.ts';
import { givePlaces } from '../../../src/queue/places.ts';
import { callCli } from '../../support/cli/cli.ts';
import { until } from '../../support/fixtures.ts';
import { metric } from '../../support/http/metrics.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { makeSale, redisAndPostgres } from '../../support/nodes/stores.ts';
import { QUEUE } from '../../support/shop/queue.ts';
import { buyers } from '../../support/shop/shop.ts';

const LATER = new Date(Date.now() + 3_600_000).toISOString();
const NOW = '2026-01-01T00:00:00.000Z';

let folder: string;
let node: TestNode;
let db: Database;
let stores: Awaited<ReturnType<typeof redisAndPostgres>>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'stockade-queue-'));
  stores = await redisAndPostgres();
  node = await startTestNode(stores);
  db = openDatabase({ url: stores.databaseUrl, maxConnections: 2 });
});

afterAll(async () => {
  await db.destroy();
  await node[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const ask = (path: string, method: 'GET' | 'PATCH' = 'GET', body?: unknown) =>
  node.opsRequest(path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
const look = (id: string, rest = '') => ask(`/v1/sales/${id}/queue${rest}`);
const change = (id: string, body: object) => ask(`/v1/sales/${id}/queue`, 'PATCH', body);
const queue = (id: string, names: readonly string[]) =>
  givePlaces(
    db,
    id,
    names.map((buyerId) => ({ buyerId, quantity: 1 })),
  );

test('the queue and its places, and what operators do with the offers', async () => {
  const id = await makeSale(node, { stock: 3, ...QUEUE, startsAt: LATER });
  expect(await change(id, { action: 'pause', reason: 'slow' })).toMatchObject({
    status: 200,
    body: { stopped: true, allowed: 0 },
  });
  await queue(id, buyers(5));
  // Only now: a round that began before the pause would still make offers.
  await ask(`/v1/sales/${id}`, 'PATCH', { action: 'window', startsAt: NOW });
  expect(await change(id, { action: 'hand-out', offers: 2 })).toMatchObject({ body: { allowed: 2 } });
  await until(async () => (await look(id)).body.head === 2, { what: 'two offers are told' });
  expect(await look(id)).toMatchObject({
    status: 200,
    body: {
      ...{ saleId: id, order: 'fifo', phase: 'stopped', places: 5, head: 2, behindHead: 3, freeUnits: 1 },
      ...{ offerSeconds: QUEUE.offerSeconds, presenceSeconds: 0, maxWaiting: 1_000_000, fit: 'less' },
      counts: { waiting: 3, offered: 2, bought: 0, lapsed: 0, left: 0 },
    },
  });
  const { body } = await look(id, '/places?state=offered&limit=1');
  expect(body).toMatchObject({ places: [{ number: 1, buyerId: 'buyer-0', state: 'offered' }], next: 1 });
  expect((await look(id, '/places?buyer=buyer-4')).body).toEqual({
    places: [expect.objectContaining({ number: 5, state: 'waiting', ahead: 2 })],
  });
  expect(await change(id, { action: 'pace', perMinute: 60 })).toMatchObject({ body: { perMinute: 60 } });
  expect(await change(id, { action: 'resume' })).toMatchObject({ body: { stopped: false } });
  const { ledger } = (await ask(`/v1/sales/${id}/ledger`)).body;
  expect(ledger.slice(1)).toMatchObject([
    { action: 'queue', reason: 'slow', actor: 'ops token', applied: true },
    { action: 'window' },
    { detail: { to: { allowed: 2 } } },
    { detail: { to: { perMinute: 60 } } },
    { detail: { to: { offers: 'going on' } } },
  ]);
});

test('answers about places are counted, and how many may wait', async () => {
  const id = await makeSale(node, { stock: 1, ...QUEUE });
  const at = (buyer: string) => ({ headers: { 'x-buyer-id': buyer } });
  const place = `/v1/sales/${id}/place`;
  const count = (labels: string) => metric(node, `stockade_queue_requests_total{${labels}}`);
  for (const buyer of ['anna', 'bert', 'carl']) await node.request(place, { method: 'POST', ...at(buyer) });
  await until(async () => (await node.request(place, at('anna'))).body.state === 'offered', {
    what: 'an offer',
  });
  expect(await node.request(place, at('dora'))).toMatchObject({ status: 404 });
  expect(await node.request(place, { method: 'DELETE', ...at('dora') })).toMatchObject({ status: 404 });
  expect(await count('route="join",outcome="waiting"')).toBeGreaterThanOrEqual(2);
  expect(await count('route="poll",outcome="offered"')).toBe(1);
  expect(await count('route="poll",outcome="no_place"')).toBe(1);
  expect(await count('route="leave",outcome="no_place"')).toBe(1);
  await until(async () => (await metric(node, `stockade_queue_waiting{sale="${id}"}`)) === 2, {
    what: 'the head has told',
  });
  expect(await metric(node, `stockade_queue_silent_seconds{sale="${id}"}`)).toBeLessThan(5);
  const end = new AbortController();
  for await (const { node: figures } of node.ops.pictures({ limit: 0 }, end.signal)) {
    const queue = figures.value?.queue;
    if (queue?.perSecond === undefined) continue;
    expect(queue).toEqual({ perSecond: { joins: 0, polls: 0, failures: 0 }, streams: 0 });
    break;
  }
  end.abort();
});

describe('what is wrong is said', () => {
  test.each([
    ['?count=1', 'count'],
    ['/places?state=gone', 'state'],
    ['/places?limit=0', 'limit'],
    ['/places?after=-1', 'after'],
    ['/places?buyer=a&state=left', 'buyer'],
    ['/places?sort=up', 'sort'],
  ])('in the query %s', async (query, field) => {
    expect(await look('any', query)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', faults: [{ field }] },
    });
  });

  test.each([
    [{ action: 'stop' }, 'action'],
    [{ action: 'pace' }, 'perMinute'],
    [{ action: 'pace', perMinute: 0 }, 'perMinute'],
    [{ action: 'hand-out', offers: -1 }, 'offers'],
    [{ action: 'pause', offers: 1 }, 'offers'],
    [[], 'the change'],
  ])('in the change %j', async (body, field) => {
    expect(await change('any', body)).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', faults: [{ field }] },
    });
  });

  test('of a sale without a queue, and of one that does not exist', async () => {
    const id = await makeSale(node, { stock: 3 });
    expect(await look(id)).toMatchObject({ status: 409, body: { code: 'wrong_state' } });
    expect(await look('nowhere')).toMatchObject({ status: 404, body: { code: 'unknown_sale' } });
    expect(await look(id, '/draw')).toMatchObject({ status: 409, body: { code: 'wrong_state' } });
  });
});

describe('on the command line', () => {
  const ways = () =>
    [
      ['through the node', { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken }],
      [
        'on the stores',
        { REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl, KEY_PREFIX: stores.keyPrefix },
      ],
    ] as const;

  test('a queue is turned on, shown, paced and turned off', async () => {
    for (const [way, env] of ways()) {
      const id = await makeSale(node, { stock: 3 });
      const cli = (args: string) => callCli(args.split(' '), { env });
      const on = await cli(`sale queue ${id} --queue fifo --presence-seconds 0 --offer-seconds 300`);
      expect(on, way).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^offers stand +300 s$/m) });
      expect(on.stderr, way).toContain('from now on a purchase without an offer is refused');
      await cli(`queue pause ${id} --reason slow`);
      await queue(id, ['ann', 'ben']);
      const shown = await cli(`queue show ${id}`);
      expect(shown.stdout, way).toMatch(/^offers +(stopped|no node makes offers)/m);
      expect(shown.stdout, way).toMatch(/^waiting +2$/m);
      const places = await cli(`queue places ${id} --buyer ben`);
      expect(places.stdout, way).toMatch(/^ *2 +ben +1 +waiting +1 /m);
      const paced = await cli(`queue pace ${id} --per-minute 30 --json`);
      expect(JSON.parse(paced.stdout), way).toMatchObject({ perMinute: 30 });
      expect(await cli(`queue hand-out ${id} --offers 0`), way).toMatchObject({ exitCode: 0 });
      await cli(`queue resume ${id}`);
      expect(await cli(`queue hand-out ${id} --offers 5`), way).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining('are not stopped'),
      });
      expect(await cli(`sale queue ${id} --queue off`), way).toMatchObject({
        stderr: expect.stringContaining('add --yes to do it'),
      });
      const off = await cli(`sale queue ${id} --queue off --yes`);
      expect(off, way).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('The queue is off') });
      const ledger = await cli(`sale ledger ${id}`);
      expect(ledger.stdout, way).toMatch(/queue +.* offers stopped, was going on +slow/);
      expect(ledger.stdout, way).toContain('queue off, was fifo');
    }
  });

  test('the file of a draw is written, and it is right', async () => {
    const id = await makeSale(node, { stock: 1, ...QUEUE, queue: 'draw', startsAt: LATER });
    await queue(id, buyers(1_499));
    const enter = () =>
      node.request(`/v1/sales/${id}/place`, { method: 'POST', headers: { 'x-buyer-id': 'ann' } });
    const { number, salt, placeToken } = (await enter()).body;
    expect((await enter()).body).toMatchObject({ number, salt });
    const polled = await node.request(`/v1/sales/${id}/place`, {
      headers: { 'x-buyer-id': 'ann', 'place-token': placeToken },
    });
    expect(polled.body).toMatchObject({ number, state: 'waiting' });
    expect(polled.body).not.toHaveProperty('salt');
    const { commitment } = (await look(id)).body.draw;
    const env = { OPS_URL: node.opsUrl, OPS_TOKEN: node.opsToken };
    expect(await callCli(['queue', 'draw', id], { env })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('are not drawn yet'),
    });
    await ask(`/v1/sales/${id}`, 'PATCH', { action: 'window', startsAt: NOW });
    await until(async () => (await look(id)).body.draw.drawnAt !== undefined, { what: 'the draw' });
    for (const [way, env] of ways()) {
      const { exitCode, stdout } = await callCli(['queue', 'draw', id], { env });
      expect(exitCode, way).toBe(0);
      const digest = createHash('sha256').update(`${salt} ${id} ${number} ann`).digest('hex');
      expect(stdout, way).toContain(`"number":${number},"digest":"${digest}"`);
      writeFileSync(join(folder, 'draw.ndjson'), stdout);
      const check = await callCli(['queue', 'check', 'draw.ndjson', '--commitment', commitment], {
        cwd: folder,
      });
      expect(check, way).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('1,500 numbers') });
    }
  });
});
