/** A process with the Redis of one shop and the database of another: it does not start, and changes nothing. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import { callCli, runCli } from '../../support/cli/cli.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { emptyDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { startTestNode, type TestNode, type TestNodeOptions } from '../../support/nodes/node.ts';
import { embedded } from '../../support/nodes/stores.ts';
import { isRelease } from '../../support/tier.ts';

interface Place extends Required<Pick<TestNodeOptions, 'redisUrl' | 'databaseUrl' | 'keyPrefix'>> {}

let shop: Place;
let node: TestNode;

beforeAll(async () => {
  shop = await freshPlace();
  node = await startTestNode(shop);
  await node.ops.create({ id: 'web', stock: 88, segments: 2, perBuyerLimit: 1 }, 'tests');
  expect(await node.buy('web', 'alice')).toMatchObject({ status: 201 });
  return () => node[Symbol.asyncDispose]();
});

/** Copies of one database are one shop: so each of these begins empty. */
async function freshPlace(): Promise<Place> {
  return { redisUrl: redisUrl(), databaseUrl: await emptyDatabase(), keyPrefix: freshPrefix() };
}

const envOf = ({ redisUrl, databaseUrl, keyPrefix }: Partial<Place>) => ({
  ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
  ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
  ...(keyPrefix !== undefined && { KEY_PREFIX: keyPrefix }),
});

/** The sale is as it was: 87 units for buyers who may have one each. */
async function expectUnharmed(): Promise<void> {
  expect(await node.ops.show('web')).toMatchObject({ remaining: 87, perBuyerLimit: 1, generation: 1 });
  expect(await node.ops.verify('web')).toMatchObject({ ok: true, findings: [] });
  expect(await node.buy('web', 'alice')).toMatchObject({ status: 409, code: 'limit_reached' });
}

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'stockade-other-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** What a node would do with these stores if it started. */
async function attack(place: TestNodeOptions): Promise<string> {
  await using attacker = await startTestNode(place);
  await attacker.ops.create({ id: 'web', stock: 7, perBuyerLimit: 2 }, 'tests').catch(() => {});
  return 'it sells';
}

// `ownership.test.ts` has these stores, and the adoption, in one process.
if (isRelease) {
  test('a node without its DATABASE_URL does not start, names both stores, and changes no sale', async () => {
    const { databaseUrl, ...rest } = shop;
    const { pathname } = new URL(databaseUrl);
    const said = new RegExp(
      `belongs to the database postgres://[^ ]*${pathname} \\(shop \\w{8}\\), and this is PGlite in .* \\(shop \\w{8}\\)`,
    );
    await expect(attack({ ...rest, ...(await embedded()) })).rejects.toThrow(said);
    await expectUnharmed();
  });
}

test('a node without its REDIS_URL, or with another KEY_PREFIX, does not start', async () => {
  await expect(attack({ databaseUrl: shop.databaseUrl })).rejects.toThrow(
    `is in a Redis, under KEY_PREFIX ${shop.keyPrefix}, and REDIS_URL is not set`,
  );
  const keyPrefix = freshPrefix();
  await expect(attack({ ...shop, keyPrefix })).rejects.toThrow(`and KEY_PREFIX is ${keyPrefix}`);
  await using other = new RedisKeys({ ...shop, keyPrefix });
  expect(await other.redis.keys(`${keyPrefix}*`)).toEqual([]);
  await expectUnharmed();
});

test('`stockade sync` and commands on the stores refuse too, with exit code 2, and leave no mark', async () => {
  const { databaseUrl } = await freshPlace();
  const env = envOf({ ...shop, databaseUrl });
  expect(await callCli(['migrate'], { env })).toMatchObject({ exitCode: 0 });
  for (const command of [
    'sync --ops-port 0',
    'sale create web --stock 7',
    'sale list',
    'recover web --yes',
  ]) {
    const ended = await callCli([...command.split(' '), '--json'], { env });
    expect(ended, command).toMatchObject({ exitCode: 2 });
    expect(JSON.parse(ended.stdout).error, command).toMatchObject({
      code: 'foreign_stores',
      message: expect.stringMatching(/belongs to the database .*`node dist\/cli\/main.js recover --adopt`/),
    });
  }
  await expectUnharmed();
});

if (isRelease) {
  test('a second node finds out that its empty Redis is not the one in which the first one sells', async () => {
    const place = await freshPlace();
    await using first = await startTestNode(place);
    // The same prefix in another database of the same server is another Redis.
    const elsewhere = new URL(place.redisUrl);
    elsewhere.pathname = '/1';
    const said = /the process [^ ]+ sells the stock of the database .* from another store/;
    await expect(attack({ ...place, redisUrl: elsewhere.href })).rejects.toThrow(said);
    await using second = await startTestNode(place);
    expect((await second.opsRequest('/readyz')).body).toEqual({ status: 'ready' });
    expect((await first.opsRequest('/readyz')).body).toEqual({ status: 'ready' });
  });
}

test('a node ends when its Redis becomes that of another database while it runs', async () => {
  const place = await freshPlace();
  await using stray = await startTestNode(place);
  await stray.ops.create({ id: 'tickets', stock: 3, segments: 1 }, 'tests');
  await using keys = new RedisKeys(place);
  await keys.redis.set(new Keys(place.keyPrefix).owner, '0b5e55ed-0000-4000-8000-000000000000 another');
  await until(() => !stray.isUp, { what: 'the node ends', timeoutMs: 30_000 });
  expect(stray.lastEnd).toBe('exit code 1');
  expect(await stray.log()).toMatch(/belongs to the database another \(shop 0b5e55ed\)/);
  // Nothing of the sale was built there.
  expect(await keys.redis.hget(keys.sale('tickets'), 'generation')).toBe('1');
});

if (isRelease) {
  test('a new PGlite beside the former Redis is refused until the Redis is adopted', async () => {
    const place = { redisUrl: redisUrl(), keyPrefix: freshPrefix() };
    await using before = await startTestNode({ ...place, ...(await embedded()) });
    await before.ops.create({ id: 'tickets', stock: 5, segments: 2 }, 'tests');
    expect(await before.buy('tickets', 'alice')).toMatchObject({ status: 201 });
    await before.stop();
    const env = { ...envOf(place), DATA_DIR: join(await emptyFolder(), 'data') };
    const refused = await runCli(['serve', '--port', '0', '--ops-port', '0'], { env });
    expect(refused).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('belongs to the database PGlite in'),
    });
    const adopted = await runCli(['recover', '--adopt', '--json'], { env });
    expect(adopted).toMatchObject({ exitCode: 0 });
    expect(JSON.parse(adopted.stdout)).toMatchObject({
      before: expect.stringMatching(/^PGlite in /),
      discarded: [],
    });
    await using after = await startTestNode({ ...place, env });
    // The old sale of that name lies there still, in a generation that is no newer.
    await after.ops.create({ id: 'tickets', stock: 9, segments: 2 }, 'tests');
    expect(await after.buy('tickets', 'alice')).toMatchObject({ status: 201 });
    expect(await after.ops.verify('tickets')).toMatchObject({ ok: true, committedOrders: 1 });
  });
}
