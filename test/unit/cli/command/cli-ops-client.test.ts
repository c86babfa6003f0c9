import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { withOperations } from '../../../../src/cli/command/open-operations.ts';
import { OpsClient } from '../../../../src/cli/command/ops-client.ts';
import { NoNode, opsUrlOf, TokenRefused } from '../../../../src/cli/command/ops-connection.ts';
import { loadConfig } from '../../../../src/config/load-config.ts';
import { InvalidInput } from '../../../../src/engine/errors.ts';
import { createLog } from '../../../../src/node/process/log.ts';
import { OrdersDiffer, SaleDeleting } from '../../../../src/operations/delete-operations.ts';
import {
  SaleArchived,
  SaleExists,
  UnknownSale,
  WrongState,
} from '../../../../src/operations/sale-operations.ts';
import { BY } from '../../../support/author.ts';

const OPS_TOKEN = 'a-token-of-some-length';

let server: Server;
let client: OpsClient;
let seen: { method: string; url: string; authorization: string | undefined; body: string };
let reply: { status: number; body: string };

beforeEach(async () => {
  server = createServer(async (request: IncomingMessage, response) => {
    const { method = '', url = '', headers } = request;
    seen = { method, url, authorization: headers.authorization, body: await text(request) };
    response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const OPS_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  client = new OpsClient(loadConfig({ OPS_URL, OPS_TOKEN }, {}));
});

afterEach(async () => {
  await client.disconnect();
  await new Promise((resolve) => server.close(resolve));
});

const answer = (status: number, body: unknown) => {
  reply = { status, body: typeof body === 'string' ? body : JSON.stringify(body) };
};

describe('ids that a path would fold away', () => {
  test.each(['.', '..'])('ask for nothing else: %s', async (id) => {
    answer(404, { title: 'No such dead letter', status: 404, code: 'unknown_dead_letter' });
    await expect(client.resendDeadLetter(id)).rejects.toThrow();
    expect(seen.url).toBe(`/v1/events/dead/${id.replaceAll('.', '%252E')}/resend`);
    answer(404, { title: 'No such sale', status: 404, code: 'unknown_sale' });
    await expect(client.show(id)).rejects.toBeInstanceOf(UnknownSale);
    await expect(client.recovery(id)).rejects.toBeInstanceOf(UnknownSale);
    expect(seen.url).toBe(`/v1/sales/${id.replaceAll('.', '%252E')}/recover`);
  });
});

describe('calls', () => {
  test.each([
    [
      'create',
      () => client.create({ id: 'x', stock: 1 }, BY.actor),
      'POST',
      '/v1/sales',
      '{"id":"x","stock":1}',
    ],
    ['show', () => client.show('x'), 'GET', '/v1/sales/x', ''],
    [
      'pause',
      () => client.change('x', { action: 'pause' }, BY),
      'PATCH',
      '/v1/sales/x',
      '{"action":"pause","reason":"a test"}',
    ],
    [
      'resume',
      () => client.change('x', { action: 'resume' }, BY),
      'PATCH',
      '/v1/sales/x',
      '{"action":"resume","reason":"a test"}',
    ],
    [
      'close',
      () => client.change('x', { action: 'close' }, BY),
      'PATCH',
      '/v1/sales/x',
      '{"action":"close","reason":"a test"}',
    ],
    ['verify', () => client.verify('x'), 'POST', '/v1/sales/x/verify', ''],
    ['repair', () => client.verify('x', { repair: true }), 'POST', '/v1/sales/x/verify', '{"repair":true}'],
    [
      'rebalance',
      () => client.rebalance('x', { dryRun: true }),
      'POST',
      '/v1/sales/x/rebalance',
      '{"dryRun":true}',
    ],
    ['delete', () => client.delete('x', 12, BY), 'DELETE', '/v1/sales/x?orders=12&reason=a+test', ''],
    ['queue', () => client.showQueue('x'), 'GET', '/v1/sales/x/queue', ''],
    ['count', () => client.showQueue('x', { count: true }), 'GET', '/v1/sales/x/queue?count=true', ''],
    [
      'places',
      () => client.places('x', { state: 'left', after: 7, limit: 5 }),
      'GET',
      '/v1/sales/x/queue/places?state=left&after=7&limit=5',
      '',
    ],
    [
      'pace',
      () => client.changeQueue('x', { action: 'pace', perMinute: null }, BY),
      'PATCH',
      '/v1/sales/x/queue',
      '{"action":"pace","perMinute":null,"reason":"a test"}',
    ],
    ['deletion', () => client.deletion('x'), 'GET', '/v1/sales/x/deletion', ''],
    ['an odd id', () => client.show('a/b?'), 'GET', '/v1/sales/a%2Fb%3F', ''],
  ])('%s', async (_, call, method, url, body) => {
    answer(method === 'POST' ? 201 : 200, { id: 'x', stock: 5 });
    expect(await call()).toEqual({ id: 'x', stock: 5 });
    expect(seen).toEqual({ method, url, body, authorization: `Bearer ${OPS_TOKEN}` });
  });

  test('list', async () => {
    answer(200, { sales: [{ id: 'x' }] });
    expect(await client.list()).toEqual({ sales: [{ id: 'x' }] });
  });
});

describe('errors come back as what they were', () => {
  test.each([
    ['unknown_sale', 404, { code: 'unknown_sale' }, UnknownSale],
    ['sale_exists', 409, { code: 'sale_exists' }, SaleExists],
    ['archived', 409, { code: 'archived' }, SaleArchived],
    ['deleting', 409, { code: 'deleting' }, SaleDeleting],
    ['orders_differ', 409, { code: 'orders_differ', orders: 7 }, OrdersDiffer],
    ['wrong_state', 409, { code: 'wrong_state', state: 'closed' }, WrongState],
    ['a refused token', 401, { code: 'unauthenticated' }, TokenRefused],
    ['something else that listens', 404, '<html>', NoNode],
    ['something else that is content', 200, '<html>', NoNode],
  ])('%s', async (_, status, body, type) => {
    answer(status, body);
    await expect(client.change('x', { action: 'pause' }, BY)).rejects.toBeInstanceOf(type);
  });

  test('with all faults of the input', async () => {
    const faults = [{ field: 'stock', problem: 'must be at least 1' }];
    answer(400, { code: 'invalid_request', detail: 'the sale is not valid', faults });
    const error = await client.create({}, BY.actor).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(InvalidInput);
    expect((error as InvalidInput).faults).toEqual(faults);
  });

  test('with code and detail otherwise', async () => {
    answer(503, { code: 'unavailable', detail: 'Redis is away' });
    await expect(client.list()).rejects.toMatchObject({ code: 'unavailable', message: 'Redis is away' });
  });
});

describe('a file in pieces', () => {
  const read = async () => {
    let text = '';
    for await (const piece of await client.drawFile('x')) text += piece;
    return text;
  };

  test('is what the node sends', async () => {
    answer(200, '{"version":1}\n{"rank":1}\n');
    expect(await read()).toBe('{"version":1}\n{"rank":1}\n');
    expect(seen.url).toBe('/v1/sales/x/queue/draw');
  });

  test('that does not exist is refused with the reason', async () => {
    answer(409, { code: 'wrong_state', detail: 'not drawn yet' });
    await expect(read()).rejects.toMatchObject({ code: 'wrong_state', message: 'not drawn yet' });
  });

  test('that breaks off is an error', async () => {
    server.removeAllListeners('request');
    server.on('request', (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"version":1}\n', () => response.destroy());
    });
    await expect(read()).rejects.toBeInstanceOf(NoNode);
  });
});

test('nothing listens: says where, and how to start a node', async () => {
  const away = new OpsClient(loadConfig({ OPS_URL: 'http://user:hunter2@127.0.0.1:1', OPS_TOKEN }, {}));
  await expect(away.list()).rejects.toThrow(
    /^nothing listens at http:\/\/127\.0\.0\.1:1\. Start a node with `.+ serve`, or name a running one with --ops-url or OPS_URL$/,
  );
  await away.disconnect();
});

test('the public port instead of the ops port: says so, and what to set', async () => {
  answer(404, { title: 'There is no such route', status: 404, code: 'not_found' });
  const error = await client.list().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(NoNode);
  expect((error as Error).message).toMatch(/^http:\S+ does not know this request: .*public port.*OPS_URL$/);
});

test.each([
  ['a change', 405, { code: 'method_not_allowed', detail: 'use GET' }],
  ['a sale as buyers see it', 200, { id: 'tickets', title: '', state: 'open', remaining: 5 }],
  ['no name of a buyer', 401, { code: 'unauthenticated', detail: 'X-Buyer-Id is missing' }],
])('the public port, which has routes of the same paths: %s', async (_, status, body) => {
  answer(status, body);
  await expect(client.show('tickets')).rejects.toThrow(
    /public port.*name the ops port with --ops-url or OPS_URL$/i,
  );
});

test.each([
  [{}, 'OPS_URL, or set both REDIS_URL and DATABASE_URL to work without a node'],
  [
    { REDIS_URL: 'redis://127.0.0.1:1', DATABASE_URL: 'postgres://127.0.0.1:1/x' },
    'OPS_URL, or unset OPS_URL to work without a node',
  ],
])('nothing listens, with %j: says how a command works without a node', async (stores, advice) => {
  const config = loadConfig({ ...stores, OPS_URL: 'http://127.0.0.1:1', OPS_TOKEN }, {});
  const log = createLog({ logLevel: 'silent' });
  const listed = withOperations({ config, log }, ({ sales }) => sales.list());
  await expect(listed).rejects.toThrow(advice);
});

test.each([
  [{}, 'http://127.0.0.1:9090'],
  [{ OPS_PORT: '1234', OPS_HOST: '0.0.0.0' }, 'http://127.0.0.1:1234'],
  [{ OPS_HOST: '::' }, 'http://[::1]:9090'],
  [{ OPS_URL: 'https://ops.example/shop/', OPS_PORT: '1234' }, 'https://ops.example/shop'],
])('the ops port by %j is at %s', (env, url) => expect(opsUrlOf(loadConfig(env, {}))).toBe(url));
