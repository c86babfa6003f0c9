/** `stockade doctor` finds commands that a Redis does not allow its user, and leaves nothing behind. */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkRedis } from '../../../src/cli/doctor/redis.ts';
import { SecretUrl } from '../../../src/config/values/secret.ts';
import { clusterClient, connect, disconnectCluster } from '../../../src/redis/clients.ts';
import { freePort } from '../../support/servers/process/free-port.ts';
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

describe('in a cluster', () => {
  let servers: RedisCluster;
  beforeAll(async () => {
    servers = await RedisCluster.start();
  });
  afterAll(() => servers[Symbol.asyncDispose]());

  async function primariesFor(url: string) {
    const { checks } = await checkRedis(new SecretUrl(url), 'stockade:');
    return checks.find(({ name }) => name.endsWith('primaries'));
  }

  test('the commands are tried on each server', async () => {
    expect(await commandsFor(servers.url)).toMatchObject([allowed, allowed, allowed]);
  });

  test('each primary is tried at the address that it announces', async () => {
    expect(await primariesFor(servers.url)).toMatchObject({ status: 'ok' });
    const closed = await freePort();
    const at = servers.primaries[2]!;
    const admin = new Redis(at.url);
    await admin.config('SET', 'cluster-announce-port', closed);
    expect(await primariesFor(at.productUrl)).toMatchObject({
      status: 'fail',
      found: `Redis at 127.0.0.1:${closed} can't be reached: connect ECONNREFUSED 127.0.0.1:${closed}`,
      advice: expect.stringContaining('cluster-announce-port'),
    });
    await admin.config('SET', 'cluster-announce-port', 0);
    admin.disconnect();
  });

  test('a server that does not say where the primaries are is named, by doctor and by the start of a node', async () => {
    const [first] = servers.primaries;
    const admin = new Redis(first!.url);
    await admin.call('ACL', 'SETUSER', 'blind', 'on', '>pw', '~*', '&*', '+@all', '-cluster|slots');
    admin.disconnect();
    const url = `redis://blind:pw@127.0.0.1:${first!.port}`;
    const found = expect.stringMatching(/cluster slots: NOPERM/);
    expect(await primariesFor(url)).toMatchObject({ status: 'fail', found });
    const cluster = clusterClient([url]);
    await expect(connect(cluster)).rejects.toThrow(
      new RegExp(`^Redis at 127.0.0.1:${first!.port}, a server of the cluster, can't be reached: NOPERM`),
    );
    disconnectCluster(cluster);
  });
});
