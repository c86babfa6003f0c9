import { describe, expect, test } from 'vitest';
import { checkBuyers } from '../../../src/cli/doctor/buyers.ts';
import type { Check } from '../../../src/cli/doctor/check.ts';
import { checkClocks } from '../../../src/cli/doctor/clocks.ts';
import { opsReach } from '../../../src/cli/doctor/ports.ts';
import {
  judgePostgres,
  encryption as ofPostgres,
  type PostgresFacts,
} from '../../../src/cli/doctor/postgres.ts';
import {
  judgeRedis,
  encryption as ofRedis,
  type RedisFacts,
  type RedisPlan,
} from '../../../src/cli/doctor/redis.ts';
import { nodeVersion, openFiles } from '../../../src/cli/doctor/runtime.ts';
import { SecretUrl } from '../../../src/config/values/secret.ts';

const notOk = (checks: readonly Check[]) =>
  checks.filter(({ status }) => status !== 'ok').map(({ name, status }) => `${status} ${name}`);

describe('Redis', () => {
  const good: RedisFacts = {
    redis_version: '7.0.15',
    cluster_enabled: '0',
    role: 'master',
    aof_enabled: '1',
    appendfsync: 'everysec',
    maxmemory: '1073741824',
    maxmemory_policy: 'noeviction',
    used_memory: '1048576',
  };
  const found = (changes: RedisFacts, plan: Partial<RedisPlan> = {}) =>
    notOk(judgeRedis({ ...good, ...changes }, { servers: 1, ...plan }));
  const cluster = { cluster_enabled: '1', cluster_state: 'ok', cluster_size: '3' };

  test.each<[string, RedisFacts, string[]]>([
    ['as it should be', {}, []],
    ['6.2.0', { redis_version: '6.2.0' }, []],
    ['6.0.16', { redis_version: '6.0.16' }, ['fail version']],
    ['no version', { redis_version: undefined }, ['fail version']],
    ['a cluster', cluster, []],
    ['a cluster without all its slots', { ...cluster, cluster_state: 'fail' }, ['fail topology']],
    ['a replica in a cluster', { ...cluster, role: 'slave' }, []],
    ['a replica', { role: 'slave' }, ['fail role']],
    ['no append-only file', { aof_enabled: '0' }, ['warn appendonly']],
    ['never synced', { appendfsync: 'no' }, ['warn appendonly']],
    ['CONFIG is forbidden', { appendfsync: undefined }, []],
    ['evicts', { maxmemory_policy: 'allkeys-lru' }, ['fail maxmemory-policy']],
    [
      'would evict, had it a limit',
      { maxmemory_policy: 'volatile-ttl', maxmemory: '0' },
      ['fail maxmemory-policy', 'warn memory'],
    ],
    ['does not tell its policy', { maxmemory_policy: undefined }, ['warn maxmemory-policy']],
    ['nearly full', { used_memory: '1000000000' }, ['warn memory']],
  ])('%s', (_, changes, expected) => expect(found(changes)).toEqual(expected));

  test('several servers that form no cluster are a fault', () => {
    expect(found({}, { servers: 3 })).toEqual(['fail topology']);
  });
});

test.each<[string, 'jwt' | 'header', string[]]>([
  ['https://keys.example/set', 'jwt', []],
  ['http://keys.example/set', 'jwt', ['warn key set']],
  ['http://10.0.0.1:8080/set', 'jwt', ['warn key set']],
  ['http://127.0.0.1:8080/set', 'jwt', []],
  ['http://[::1]:8080/set', 'jwt', []],
  ['http://localhost/set', 'jwt', []],
  ['http://[2001:db8::1]/set', 'jwt', ['warn key set']],
  ['http://keys.example/set', 'header', []],
])('keys of buyers from %s, BUYER_AUTH=%s', (url, buyerAuth, expected) => {
  const local = { publicPayment: false, publicOrderNotes: false, host: '127.0.0.1' };
  const checks = checkBuyers({ buyerAuth, jwtJwksUrl: new SecretUrl(url), ...local });
  expect(notOk(checks)).toEqual(expected);
  expect(checks).toHaveLength(buyerAuth === 'jwt' ? 1 : 0);
});

const noKeySet = { buyerAuth: 'header', jwtJwksUrl: undefined } as const;

test.each<[boolean, string, string[]]>([
  [true, '0.0.0.0', ['warn payment']],
  [true, 'shop.example', ['warn payment']],
  [true, '127.0.0.1', []],
  [false, '0.0.0.0', []],
])('PUBLIC_PAYMENT %j at %s', (publicPayment, host, expected) => {
  const checks = checkBuyers({ ...noKeySet, publicPayment, publicOrderNotes: false, host });
  expect(notOk(checks)).toEqual(expected);
});

test.each<[boolean, string, string[]]>([
  [true, '0.0.0.0', ['warn order notes']],
  [true, '127.0.0.1', []],
  [false, '0.0.0.0', []],
])('PUBLIC_ORDER_NOTES %j at %s', (publicOrderNotes, host, expected) => {
  const checks = checkBuyers({ ...noKeySet, publicPayment: false, publicOrderNotes, host });
  expect(notOk(checks)).toEqual(expected);
});

describe('Postgres', () => {
  const shipped = ['001-a.sql', '002-b.sql'];
  const good: PostgresFacts = {
    version: '15.1',
    versionNumber: 150_001,
    fsync: 'on',
    inRecovery: false,
    readOnly: false,
    applied: shipped,
    mayMigrate: false,
  };
  const found = (changes: Partial<PostgresFacts>) => notOk(judgePostgres({ ...good, ...changes }, shipped));

  test.each<[string, Partial<PostgresFacts>, string[]]>([
    ['as it should be', {}, []],
    ['13', { versionNumber: 130_011 }, ['fail version']],
    ['a standby', { inRecovery: true }, ['fail role']],
    ['read-only', { readOnly: true }, ['fail role']],
    ['fsync off', { fsync: 'off' }, ['fail fsync']],
    ['never migrated', { applied: undefined, mayMigrate: true }, ['warn migrations']],
    ['never migrated, by a user who may not', { applied: undefined }, ['fail migrations']],
    ['one behind', { applied: ['001-a.sql'], mayMigrate: true }, ['warn migrations']],
    ['one behind, by a user who may not', { applied: ['001-a.sql'] }, ['fail migrations']],
    ['newer than the program', { applied: [...shipped, '003-c.sql'] }, ['fail migrations']],
  ])('%s', (_, changes, expected) => expect(found(changes)).toEqual(expected));
});

describe('clocks', () => {
  const at = (store: string, aheadMs: number) => ({ store, aheadMs, uncertainMs: 0.4 });

  test('together', () => {
    const [check] = checkClocks([at('Redis', 200), at('Postgres', -200)]);
    expect(check).toMatchObject({
      status: 'ok',
      found: 'Redis +200 ms (± 1), Postgres -200 ms (± 1) from this machine',
    });
  });

  test('each near this machine, but far from one another', () => {
    expect(notOk(checkClocks([at('Redis', 300), at('Postgres', -300)]))).toEqual(['warn difference']);
  });

  test('nothing to compare', () => expect(checkClocks([])).toEqual([]));
});

test.each([
  ['18.19.0', 'fail'],
  ['20.11.1', 'fail'],
  ['20.12.0', 'ok'],
  ['20.20.2', 'ok'],
  ['22.1.0', 'ok'],
  ['24.0.0', 'ok'],
  ['26.10.0', 'ok'],
  ['23.1.0', 'warn'],
  ['27.0.0', 'warn'],
])('Node.js %s: %s', (version, status) => expect(nodeVersion(version).status).toBe(status));

test.each([
  ['127.0.0.1', 'ok'],
  ['::1', 'ok'],
  ['localhost', 'ok'],
  ['0.0.0.0', 'warn'],
  ['::', 'warn'],
  ['10.0.0.7', 'warn'],
  ['ops.example', 'warn'],
])('the ops port at %s: %s', (host, status) => expect(opsReach(host).status).toBe(status));

test.each([
  [1_024, 'warn'],
  [20_000, 'ok'],
  [Number.POSITIVE_INFINITY, 'ok'],
])('a limit of %d open files and 16,000 connections: %s', (limit, status) => {
  expect(openFiles(limit, 16_000).status).toBe(status);
});

test.each(['127.0.0.1', 'localhost', '[::1]'])('a connection to %s needs no TLS', (host) => {
  expect(ofPostgres(`postgres://${host}/shop`)).toMatchObject({ status: 'ok' });
  expect(ofRedis(`redis://${host}`)).toMatchObject({ status: 'ok' });
});

test.each(['10.0.0.1', 'db', '[fd00::1]'])('a connection to %s should have TLS', (host) => {
  expect(ofPostgres(`postgres://${host}/shop`)).toMatchObject({ status: 'warn' });
  expect(ofRedis(`redis://${host}`)).toMatchObject({ status: 'warn' });
});
