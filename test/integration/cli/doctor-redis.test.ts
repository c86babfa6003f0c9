/** `stockade doctor` finds commands that a Redis does not allow its user, and leaves nothing behind. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkRedis } from '../../../src/cli/doctor/redis.ts';
import { SecretUrl } from '../../../src/config/values/secret.ts';
import { RedisCluster } from '../../support/servers/redis-cluster.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';

let server: RedisServer;
let admin: Redis;

beforeAll(async () => {
  server = await RedisServer.start();
  admin = new Redis(server.url);
});

afterAll(async () => {
  admin.disconnect();
  await server[Symbol.asyncDispose]();
});

async function commandsFor(url: string) {
  const { checks } = await checkRedis(new SecretUrl(url), 'stockade:');
  return checks.filter(({ name }) => name.endsWith('commands'));
}

const allowed = { status: 'ok', found: 'all that a node sends are allowed' };

test('the rights of deploy/redis-users.acl are enough', async () => {
  expect(await commandsFor(server.productUrl)).toMatchObject([allowed]);
  expect(await admin.dbsize()).toBe(0);
});

test('commands that are not allowed are named, and each of the others is tried', async () => {
  await admin.call(
    'ACL',
    'SETUSER',
    'hosted',
    'on',
    '>pw',
    '~*',
    '&*',
    '+@all',
    '-xtrim',
    '-publish',
    '-hscan',
  );
  const [check] = await commandsFor(`redis://hosted:pw@127.0.0.1:${server.port}`);
  expect(check).toMatchObject({
    status: 'fail',
    found: expect.stringMatching(/^hscan: .*; xtrim: .*; publish: NOPERM.*$/),
  });
  expect(await admin.dbsize()).toBe(0);
});

test('a Redis that is full: the user’s rights are not to blame', async () => {
  await using full = await RedisServer.start({ extraArgs: ['--maxmemory', '1kb'] });
  expect(await commandsFor(full.productUrl)).toMatchObject([
    {
      status: 'fail',
      found: expect.stringMatching(/^Redis takes no writes now: OOM command not allowed[^;]*$/),
      advice: expect.stringMatching(/^The memory of Redis is full/),
    },
  ]);
});

test('scripts that are not allowed, and keys with another prefix', async () => {
  await admin.call('ACL', 'SETUSER', 'simple', 'on', '>pw', '~*', '&*', '+@all', '-eval');
  const [noScripts] = await commandsFor(`redis://simple:pw@127.0.0.1:${server.port}`);
  expect(noScripts).toMatchObject({ status: 'fail', found: expect.stringMatching(/^eval: NOPERM/) });
  await admin.call('ACL', 'SETUSER', 'narrow', 'on', '>pw', '~other:*', '&*', '+@all');
  const [otherKeys] = await commandsFor(`redis://narrow:pw@127.0.0.1:${server.port}`);
  expect(otherKeys).toMatchObject({ status: 'fail', found: expect.stringMatching(/^eval: NOPERM/) });
});

test('on each server of a cluster', async () => {
  await using servers = await RedisCluster.start();
  expect(await commandsFor(servers.url)).toMatchObject([allowed, allowed, allowed]);
});
