/** The command `stockade verify`: once, with repairs, and repeatedly while the sale sells. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CliOptions, callCli, RunningCli } from '../../support/cli/cli.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { Load } from '../../support/http/load.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;
let keys: RedisKeys;
let stores: CliOptions;

beforeEach(async () => {
  shop = await Shop.open();
  keys = new RedisKeys(shop);
  const { redisUrl, databaseUrl, keyPrefix } = shop;
  stores = { env: { REDIS_URL: redisUrl, DATABASE_URL: databaseUrl, KEY_PREFIX: keyPrefix } };
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

test('prints the cause, and with --repair what it has done', async () => {
  const { id } = await shop.sell({ stock: 20, segments: 2 });
  await keys.redis.hincrby(keys.of(id, 1).segment, 'left', 5);
  const found = await callCli(['verify', id], stores);
  expect(found.exitCode).toBe(1);
  expect(found.stdout).toMatch(/found: segment 1: 15 units left, .* \(foreign write in Redis\)\n/);
  const repaired = await callCli(['verify', '--repair'], stores);
  expect(repaired.exitCode).toBe(0);
  expect(repaired.stdout).toMatch(/repaired: set units left of segment 1/);
  const whole = await callCli(['verify', id, '--repair', '--json'], stores);
  expect(JSON.parse(whole.stdout)).toMatchObject({ saleId: id, ok: true, repairs: [] });
});

test('--watch verifies a selling sale; if there was a fault at any time, Ctrl-C ends it with exit code 1', async () => {
  const { id } = await shop.sell({ stock: 100_000, segments: 4 });
  await shop.startSync();
  await using _load = new Load(await shop.startEngine(), id, { lines: 10 });
  await using watching = new RunningCli(['verify', id, '--watch', '--every', '1', '--json'], stores);
  await watching.said(/("ok":true[^\n]*\n[^\n]*){2}/);
  await keys.redis.hincrby(keys.of(id, 1).segment, 'left', 5);
  await watching.said(/"at":"[^"]+","ok":false/);
  expect(await shop.service.verify(id, { repair: true })).toMatchObject({ ok: true });
  await watching.said(/"at":"[^"]+","ok":false[\s\S]*"at":"[^"]+","ok":true/);
  watching.signal('SIGINT');
  const { exitCode, stdout } = await watching.ended;
  expect(exitCode).toBe(1);
  const looks = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(looks.every(({ sales }) => sales[0].saleId === id)).toBe(true);
});

test('--watch of a sale without faults exits with code 0', async () => {
  await shop.sell({ stock: 10 });
  await using watching = new RunningCli(['verify', '--watch'], stores);
  await watching.said(/: ok, 0 orders/);
  watching.signal('SIGTERM');
  expect(await watching.ended).toMatchObject({ exitCode: 0, stderr: '' });
});

test.each(['0', '-1', '1.5', 'soon', '86401'])('--every %s is refused', async (every) => {
  const { exitCode, stderr } = await callCli(['verify', '--watch', `--every=${every}`], stores);
  expect(exitCode).toBe(2);
  expect(stderr).toMatch('--every must be a whole number of seconds, 1 to 86400');
});
