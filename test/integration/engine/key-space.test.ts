/**
 * No id reaches anything outside its sale. Ids of sales, buyers, keys and orders become parts of Redis keys, of paths and of SQL.
 * With any of them, the data of other sales stays the same, byte by byte, and no key appears that belongs to no sale.
 */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load-config.ts';
import { MAX_PER_BUYER_LIMIT } from '../../../src/engine/limits.ts';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { BY } from '../../support/author.ts';
import { callCli, runCli } from '../../support/cli/cli.ts';
import { freshDatabase, freshPrefix, redisAdminUrl, redisUrl, until } from '../../support/fixtures.ts';
import { RawConnection, rawRequest } from '../../support/http/raw-http.ts';
import { startTestNode, type TestNode } from '../../support/nodes/node.ts';
import { expectSold, makeSale } from '../../support/nodes/stores.ts';

const SEGMENTS = 2;

/** Ids that would be another key, path, pattern or member, if a program did not escape or check them. */
const LEADING_OUT = [
  '..',
  '.',
  '../neighbour',
  '..%2fneighbour',
  '%2e%2e',
  '{neighbour}',
  'neighbour}:sale',
  '}:sale{neighbour',
  'neighbour:0',
  'neighbour:0}:segment',
  'a\nDEL neighbour',
  'a\r\nDEL neighbour\r\n',
  'a\0b',
  '*',
  '?',
  '[a-z]*',
  '__proto__',
  ':changes',
  'neighbour ',
  ' neighbour',
  'nеighbour',
  'n\u0301eighbour',
  '\u202eruobhgien',
  '',
  'n'.repeat(65),
  'n'.repeat(5_000),
];

let node: TestNode;
let admin: Redis;
let stores: { redisUrl: string; databaseUrl: string; keyPrefix: string };
/** Keys of another installation in the same Redis, whose prefix begins with this one's. */
let another: Keys;

beforeAll(async () => {
  stores = { redisUrl: redisUrl(), databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
  admin = new Redis(redisAdminUrl());
  node = await startTestNode({ ...stores, env: { WORKERS: '1' } });
  await makeSale(node, { id: 'neighbour', segments: SEGMENTS });
  await node.buy('neighbour', 'ann');
  await expectSold(node, 'neighbour', 1);
  await until(isAtRest, { what: 'what the purchase has set going has ended' });
  another = new Keys(`${stores.keyPrefix}more:`);
  for (const key of [another.sale('neighbour'), another.changes, ...ofSale(another, 'neighbour')]) {
    await admin.set(key, 'another’s');
  }
});

afterAll(async () => {
  await node?.stop();
  await node?.[Symbol.asyncDispose]();
  admin?.disconnect();
});

/** Whether the event is in the stream and the log is trimmed: then no process writes any more. */
async function isAtRest(): Promise<boolean> {
  const keys = new Keys(stores.keyPrefix);
  const logs = Array.from(
    { length: SEGMENTS },
    (_, segment) => keys.segment({ saleId: 'neighbour', segment }).log,
  );
  const lengths = await Promise.all([keys.events, ...logs].map((key) => admin.xlen(key)));
  return lengths[0] === 1 && lengths.slice(1).every((length) => length === 0);
}

function ofSale(keys: Keys, saleId: string): string[] {
  const segments = Array.from({ length: SEGMENTS }, (_, segment) => keys.segment({ saleId, segment }));
  return [keys.sale(saleId), ...segments.flatMap((each) => Object.values(each))];
}

/** Every key of the installation, and every key of others that begins like them, with its exact value. */
async function everything(): Promise<Map<string, string>> {
  const values = new Map<string, string>();
  for (const key of (await admin.keys(`${stores.keyPrefix}*`)).sort()) {
    values.set(key, (await admin.dumpBuffer(key))?.toString('hex') ?? '');
  }
  return values;
}

describe('an id that looks like a path, key or pattern', () => {
  test.each(LEADING_OUT)('as the id of a sale: %j', async (id) => {
    const before = await everything();
    const created = await node.opsRequest('/v1/sales', {
      method: 'POST',
      body: JSON.stringify({ id, stock: 1 }),
    });
    expect(created).toMatchObject({ status: 400, code: 'invalid_request' });
    for (const path of [id, encodeURIComponent(id), encodeURIComponent(encodeURIComponent(id))]) {
      // An id that is not possible in a request line fails here.
      if (/[\s\0]|[^\x20-\xff]/.test(path) || path.length > 4_000) continue;
      const token = { Authorization: `Bearer ${node.opsToken}`, 'X-Buyer-Id': 'mallory' };
      const requests: [string, string][] = [
        [node.publicUrl, rawRequest('POST', `/v1/sales/${path}/orders`, token)],
        [node.publicUrl, rawRequest('GET', `/v1/sales/${path}`, token)],
        [node.opsUrl, rawRequest('PATCH', `/v1/sales/${path}`, token, '{"action":"close"}')],
        [node.opsUrl, rawRequest('POST', `/v1/sales/${path}/recover`, token)],
        [node.opsUrl, rawRequest('POST', `/v1/sales/${path}/rebalance`, token)],
        [node.publicUrl, rawRequest('POST', `/v1/orders/${path}/cancel`, token)],
        [node.opsUrl, rawRequest('POST', `/v1/orders/${path}/refund`, token)],
        [node.opsUrl, rawRequest('POST', `/v1/events/dead/${path}/resend`, token)],
      ];
      for (const [origin, request] of requests) {
        using connection = await RawConnection.open(origin);
        await connection.send(request);
        const answer = await connection.answer();
        expect([400, 404, 405], `${request.split('\r\n')[0]}: ${answer?.status}`).toContain(answer?.status);
      }
    }
    expect(await everything()).toEqual(before);
  });

  test.each(['.', '..', '../neighbour', '{neighbour}', 'neighbour:0', '*', '__proto__'])(
    'on the command line, by way of the node: %j',
    async (id) => {
      const before = await everything();
      const commands = [
        () => node.ops.show(id),
        () => node.ops.change(id, { action: 'close' }, BY),
        () => node.ops.recover(id),
        () => node.ops.verify(id, { repair: true }),
        () => node.ops.rebalance(id, { dryRun: false }),
        () => node.ops.resendDeadLetter(id),
      ];
      for (const command of commands)
        await expect(command()).rejects.toMatchObject({ name: /Unknown|Invalid/ });
      expect(await everything()).toEqual(before);
    },
  );

  test('on the command line, with the stores alone', async () => {
    const before = await everything();
    const env = {
      REDIS_URL: stores.redisUrl,
      DATABASE_URL: stores.databaseUrl,
      KEY_PREFIX: stores.keyPrefix,
      OPS_PORT: '1',
      DATA_DIR: '/nonexistent',
    };
    for (const args of [
      ['sale', 'create', '{neighbour}', '--stock', '1'],
      ['sale', 'close', '../neighbour', '--yes'],
      ['recover', 'neighbour:0', '--yes'],
    ]) {
      const { exitCode, stderr } = await callCli(args, { env });
      expect([1, 2], `${args}: ${stderr}`).toContain(exitCode);
      expect(stderr).toMatch(/^error: /);
    }
    expect(await everything()).toEqual(before);
  });
});

describe('valid ids with a meaning in a program', () => {
  test.each([
    'constructor',
    'hasOwnProperty',
    'toString',
    'valueOf',
    'length',
    '0',
    'sale',
    'changes',
    'a.b',
    'a..b',
  ])('a sale may be called %s', async (id) => {
    const before = await everything();
    await makeSale(node, { id, segments: SEGMENTS, perBuyerLimit: MAX_PER_BUYER_LIMIT, stock: 40 });
    for (const buyer of ['__proto__', 'constructor', '{neighbour}', `{${id}:0}:log`, '0', 'a:b', '*']) {
      const bought = await node.buy(id, buyer, { key: buyer });
      expect(bought, buyer).toMatchObject({ status: 201 });
      expect((await node.buy(id, buyer, { key: buyer })).body, buyer).toEqual(bought.body);
    }
    await expectSold(node, id, 7);
    const after = await everything();
    const own = new Keys(stores.keyPrefix);
    const mayChange = new Set([...ofSale(own, id), own.changes, own.events]);
    for (const [key, value] of after) if (!mayChange.has(key)) expect(before.get(key), key).toBe(value);
    for (const key of before.keys()) expect(after.has(key), key).toBe(true);
  });
});

describe('KEY_PREFIX', () => {
  test.each(['', 'a{b', 'a}b', 'with space:', 'é:', 'a\nb', 'x'.repeat(65)])('may not be %j', (keyPrefix) => {
    expect(() => loadConfig({}, { keyPrefix })).toThrow(/must be 1 to 64 visible ASCII characters without/);
  });

  test('outside of the Redis user’s rights is refused at the start', async () => {
    const env = { REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl, KEY_PREFIX: 'elsewhere:' };
    const { exitCode, stdout, stderr } = await runCli(['serve', '--port', '0', '--ops-port', '0'], { env });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: expect.not.stringContaining('"ready"') });
    expect(stderr).toMatch(/KEY_PREFIX/);
    expect(await admin.keys('elsewhere:*')).toEqual([]);
  });
});
