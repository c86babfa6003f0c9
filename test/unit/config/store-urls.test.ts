/** TLS parameters in the URLs of the stores, and their effects. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encryption as ofPostgres } from '../../../src/cli/doctor/postgres.ts';
import { encryption as ofRedis } from '../../../src/cli/doctor/redis.ts';
import { ConfigError, loadConfig } from '../../../src/config/load-config.ts';
import { redisUrls } from '../../../src/config/values/redis-urls.ts';
import { redisAddress } from '../../../src/redis/redis-address.ts';
import { Authority, type Certificate } from '../../support/servers/certificates.ts';

let directory: string;
let ca: string;
let authority: Authority;
let own: Certificate;
let another: Certificate;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'stockade-urls-'));
  authority = await Authority.create();
  [own, another] = await Promise.all([
    authority.sign('own', 'DNS:node'),
    authority.sign('another', 'DNS:node'),
  ]);
  ca = join(directory, 'ca@1,2.pem');
  copyFileSync(authority.certificate, ca);
});

afterAll(async () => {
  rmSync(directory, { recursive: true });
  await authority[Symbol.asyncDispose]();
});

const databaseUrl = (url: string) => loadConfig({ DATABASE_URL: url }, {}).databaseUrl!.reveal();

function faultOf(env: NodeJS.ProcessEnv): string | undefined {
  try {
    loadConfig(env, {});
    return undefined;
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ problem }) => problem).join();
    throw error;
  }
}

describe('DATABASE_URL', () => {
  test.each([
    ['sslmode=prefer', 'sslmode=verify-full'],
    ['sslmode=require', 'sslmode=verify-full'],
    ['sslmode=verify-ca', 'sslmode=verify-full'],
    ['sslmode=verify-full', 'sslmode=verify-full'],
    ['sslmode=no-verify', 'sslmode=no-verify'],
    ['sslmode=disable', 'sslmode=disable'],
    ['ssl=true', 'sslmode=verify-full'],
    ['ssl=1', 'sslmode=verify-full'],
    ['ssl=no-verify', 'sslmode=no-verify'],
    ['ssl=0', 'sslmode=disable'],
  ])('with %s is %s to the driver', (said, meant) => {
    expect(databaseUrl(`postgres://db/shop?${said}`)).toBe(`postgres://db/shop?${meant}`);
  });

  test('with the file of an authority asks for all that can be checked', () => {
    const url = new URL(databaseUrl(`postgres://db/shop?sslrootcert=${encodeURIComponent(ca)}`));
    expect(url.searchParams.get('sslmode')).toBe('verify-full');
  });

  test.each(['postgres://db/shop', 'postgres://u:p@db:5433/shop?application_name=x'])(
    'without that parameter stays unchanged: %s',
    (url) => expect(databaseUrl(url)).toBe(url),
  );

  test.each([
    ['sslmode=verify-fully', /must have an sslmode of/],
    ['ssl=maybe', /must have an sslmode of/],
    ['sslmode=require&uselibpqcompat=true', /must not have uselibpqcompat/],
    ['sslmode=verify-full&sslrootcert=/nowhere/ca.pem', /sslrootcert that can't be read: \/nowhere\/ca.pem/],
  ])('with %s is refused', (said, why) => {
    expect(faultOf({ DATABASE_URL: `postgres://db/shop?${said}` })).toMatch(why);
  });
});

describe('REDIS_URL', () => {
  test('of a cluster gives its parameters to each server', () => {
    const query = `?sslrootcert=${ca}`;
    expect(redisUrls(`rediss://u:p@a:1,b:2${query}`)).toEqual([
      `rediss://u:p@a:1${query}`,
      `rediss://u:p@b:2${query}`,
    ]);
    expect(faultOf({ REDIS_URL: `rediss://u:p@a:1,b:2${query}` })).toBeUndefined();
  });

  test.each([
    'redis://cache?maxRetriesPerRequest=3',
    'rediss://cache?rejectUnauthorized=false',
    'rediss://cache?tls=false',
    'redis://cache?sslrootcert=/etc/hostname',
  ])('with a parameter that the client would follow is refused: %s', (url) => {
    expect(faultOf({ REDIS_URL: url })).toMatch(/may have the parameters sslrootcert, sslcert, sslkey/);
  });

  test('with a path that names no database is refused: the client would use the database 0', () => {
    for (const url of ['redis://cache/shop', 'redis://cache/1/2', 'redis://a/1,b/x'])
      expect(faultOf({ REDIS_URL: url })).toMatch(
        'must have no path but the number of a database, such as /1',
      );
    for (const url of ['redis://cache/', 'redis://cache/15'])
      expect(faultOf({ REDIS_URL: url })).toBeUndefined();
  });

  test('with a # is refused: parameters behind it would hold for some servers only', () => {
    const env = { REDIS_URL: `rediss://a#,b?sslrootcert=${ca}` };
    expect(faultOf(env)).toMatch(/must not hold a #; in a password it is written %23/);
    expect(faultOf({ REDIS_URL: 'redis://u:pass%23word@cache' })).toBeUndefined();
  });

  test('with a % that escapes nothing is refused: the client would fail without a name', () => {
    for (const url of ['redis://u:50%off@cache', 'redis://a%:word@cache', 'redis://u:%ff@a,b'])
      expect(faultOf({ REDIS_URL: url })).toMatch(
        /must hold % in a user or password only as part of an escape/,
      );
    expect(faultOf({ REDIS_URL: 'redis://u:50%25off@cache' })).toBeUndefined();
  });

  test('with a file that is not there is refused', () => {
    const env = { REDIS_URL: 'rediss://cache?sslrootcert=/nowhere/ca.pem' };
    expect(faultOf(env)).toMatch(/names a sslrootcert that can't be read: \/nowhere\/ca.pem \(ENOENT\)/);
  });

  test('becomes an address without parameters, and what TLS needs', () => {
    expect(redisAddress(`rediss://u:p@cache:6380/1?sslrootcert=${ca}`)).toEqual({
      url: 'rediss://u:p@cache:6380/1',
      tls: { ca: readFileSync(ca), servername: 'cache' },
    });
    expect(redisAddress('rediss://127.0.0.1:6380').tls).toEqual({});
    expect(redisAddress('rediss://[::1]:6380').tls).toEqual({});
    expect(redisAddress('redis://cache').tls).toBeUndefined();
  });
});

describe('the files of TLS', () => {
  const file = (name: string, content: string | Buffer) => {
    const path = join(directory, name);
    writeFileSync(path, content);
    return path;
  };
  const withKey = (key: string) => `sslcert=${own.cert}&sslkey=${key}`;
  const cases: [string, () => string, RegExp][] = [
    ['a folder', () => `sslrootcert=${directory}`, /sslrootcert that can't be read: \/.* \(EISDIR\)/],
    [
      'no certificate',
      () => `sslrootcert=${file('text', 'a text')}`,
      /sslrootcert that has no certificate in PEM: \/.*text$/,
    ],
    [
      'an empty one',
      () => `sslrootcert=${file('empty', '')}`,
      /sslrootcert that has no certificate in PEM: \/.*empty$/,
    ],
    [
      'the key in place of the certificate',
      () => `sslrootcert=${own.key}`,
      /sslrootcert that has no certificate/,
    ],
    [
      'a certificate in DER, which TLS does not take',
      () => `sslrootcert=${file('der', new X509Certificate(readFileSync(ca)).raw)}`,
      /sslrootcert that has no certificate in PEM/,
    ],
    ['a certificate without its key', () => `sslcert=${own.cert}`, /a sslcert, but no sslkey/],
    ['a key without its certificate', () => `sslkey=${own.key}`, /a sslkey, but no sslcert/],
    [
      'another key',
      () => withKey(another.key),
      /a sslkey that does not belong to the certificate in sslcert/,
    ],
    ['no key', () => withKey(own.cert), /a sslkey that has no private key in PEM, or one with a passphrase/],
  ];

  test.each(cases)('with %s, both URLs are refused', (_, parameters, why) => {
    expect(faultOf({ REDIS_URL: `rediss://a,b?${parameters()}` })).toMatch(why);
    expect(faultOf({ DATABASE_URL: `postgres://db/shop?${parameters()}` })).toMatch(why);
  });

  test('a key with a passphrase is refused: nothing could tell it', () => {
    const key = createPrivateKey(readFileSync(own.key)).export({
      ...{ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'word' },
    });
    expect(faultOf({ REDIS_URL: `rediss://a?${withKey(file('locked', key))}` })).toMatch(
      /one with a passphrase/,
    );
  });

  test('several authorities with words between them, and a certificate and its key in one file, are taken', () => {
    const several = file('several', `# ours\n${readFileSync(ca)}\n# theirs\n${readFileSync(own.cert)}`);
    const both = file('both', `${readFileSync(own.cert)}${readFileSync(own.key)}`);
    const parameters = `sslrootcert=${several}&sslcert=${both}&sslkey=${both}`;
    expect(faultOf({ REDIS_URL: `rediss://a?${parameters}` })).toBeUndefined();
    expect(faultOf({ DATABASE_URL: `postgres://db/shop?${parameters}` })).toBeUndefined();
  });
});

describe('doctor', () => {
  test.each([
    [ofRedis('rediss://cache'), 'ok'],
    [ofRedis('redis://127.0.0.1'), 'ok'],
    [ofRedis('redis://cache'), 'warn'],
    [ofPostgres('postgres://db/shop?sslmode=verify-full'), 'ok'],
    [ofPostgres('postgres://localhost/shop'), 'ok'],
    [ofPostgres('postgres://db/shop'), 'warn'],
    [ofPostgres('postgres://db/shop?sslmode=disable'), 'warn'],
    [ofPostgres('postgres://db/shop?sslmode=no-verify'), 'warn'],
  ])('warns of what others on the way can read: %o', (check, status) => {
    expect(check.status).toBe(status);
    expect(check.advice === undefined).toBe(status === 'ok');
  });
});
