/** Any environment and command line is either a configuration or a complete list of its faults. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import { describeConfig } from '../../../src/config/describe.ts';
import { ConfigError, loadConfig } from '../../../src/config/load-config.ts';
import { type SettingName, settingNames, settings } from '../../../src/config/settings.ts';
import { redisUrls } from '../../../src/config/values/redis-urls.ts';
import { redisAddress } from '../../../src/redis/redis-address.ts';
import { seed } from '../../support/fixtures.ts';

const RUNS = Number(process.env.FUZZ_RUNS ?? 500);

/** Values that some setting accepts. Slightly changed ones are nearly right. */
const GOOD = [
  ...[
    '0',
    '1',
    '100',
    '8080',
    '256',
    '65535',
    'on',
    'off',
    'true',
    'header',
    'jwt',
    'lock',
    'script',
    'info',
    'pow',
  ],
  ...['127.0.0.1', '::1', 'localhost', 'x-forwarded-for', '10/60', '5/1/20', '10.0.0.0/8,192.0.2.1', 'shop:'],
  ...['redis://127.0.0.1:6379', 'redis://user:pass,word@a:6379,b:6380', 'rediss://a,b?sslrootcert=/dev/null'],
  ...['postgres://user:word@db:5432/shop?sslmode=require', 'postgresql://db/shop?ssl=true&sslcert=/dev/null'],
  ...[
    'https://keys.example/jwks',
    'http://127.0.0.1:9090',
    'a secret that is as long as it has to be',
    '/a/file.mjs',
  ],
];
/** Characters and words with a meaning in a parser. */
const SPECIAL = [
  ...'@,:/?#%[]&=. \0\n\ud800',
  '://',
  'redis://',
  '..',
  '%00',
  '%zz',
  '__proto__',
  'constructor',
  '[::1',
];

const piece = fc.oneof(fc.constantFrom(...SPECIAL), fc.string({ maxLength: 3, unit: 'binary' }));
const bent = fc
  .tuple(fc.constantFrom(...GOOD), fc.nat(), fc.nat(4), piece)
  .map(
    ([text, at, cut, put]) =>
      text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + cut),
  );
const value = fc.oneof(fc.constantFrom(...GOOD), bent, fc.string({ maxLength: 200, unit: 'binary' }));
const given = fc.array(fc.tuple(fc.constantFrom(...settingNames), value), { maxLength: 6 });
const FIELDS = new Set(
  settingNames.flatMap((name) => [settings[name].env, settings[name].flag?.split(' ')[0], name]),
);

function load(env: NodeJS.ProcessEnv, flags: Record<string, string>): Config | ConfigError {
  try {
    return loadConfig(env, flags);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

it('settings are either all read, or their faults are listed by name, without any secret', () => {
  const of = (pairs: readonly (readonly [SettingName, string])[], name: (setting: SettingName) => string) =>
    Object.fromEntries(pairs.map(([setting, text]) => [name(setting), text]));
  const property = fc.property(given, given, (environment, flagged) => {
    const env = of(environment, (setting) => settings[setting].env);
    const flags = of(flagged, (setting) => setting);
    const end = load(env, flags);
    if (!(end instanceof ConfigError)) {
      expect(Object.keys(end).sort()).toEqual([...settingNames].sort());
      // The first line of the log shows this.
      expect(typeof JSON.stringify(describeConfig(end))).toBe('string');
      return;
    }
    expect(end.faults.length).toBeGreaterThan(0);
    for (const { field, problem } of end.faults) {
      expect(FIELDS).toContain(field);
      expect(problem).not.toBe('');
    }
    const secrets = settingNames.filter((name) => settings[name].flag === undefined);
    for (const name of secrets) {
      const text = flags[name] ?? env[settings[name].env] ?? '';
      const isItsOwn = [...environment, ...flagged].filter(([, other]) => other.includes(text)).length === 1;
      if (text.length > 20 && isItsOwn) expect(end.message).not.toContain(text);
    }
  });
  fc.assert(property, { seed: seed(), numRuns: RUNS });
});

it.each([
  ['a NUL', 'a\0b'],
  ['too long a name', 'x'.repeat(300)],
])('a module whose path is %s is a fault like any other', (_, path) => {
  expect(load({ CHALLENGE: path }, {})).toMatchObject({ faults: [{ field: 'CHALLENGE' }] });
});

it('a list of servers is parsed into the same servers, whatever the password is', () => {
  const label = fc.stringMatching(/^[a-z][a-z0-9-]{0,9}[a-z0-9]$/);
  const server = fc.record({ host: label, port: fc.integer({ min: 1, max: 65_535 }) });
  // A comma needs no escape. The author of the URL must escape all other characters that have a meaning in URLs.
  const password = fc
    .string({ maxLength: 20 })
    .map((text) => encodeURIComponent(text).replaceAll('%2C', ','));
  const parts = [
    fc.array(server, { minLength: 1, maxLength: 5 }),
    password,
    fc.constantFrom(',', ', '),
  ] as const;
  const property = fc.property(...parts, (servers, word, comma) => {
    const text = `redis://user:${word}@${servers.map(({ host, port }) => `${host}:${port}`).join(comma)}`;
    const { redisUrl } = loadConfig({ REDIS_URL: text }, {});
    const urls = redisUrls(redisUrl!.reveal()).map((url) => new URL(redisAddress(url).url));
    expect(urls.map(({ host, password }) => [host, decodeURIComponent(password)])).toEqual(
      servers.map(({ host, port }) => [`${host}:${port}`, decodeURIComponent(word)]),
    );
    if (word.length > 8) expect(`${redisUrl}`).not.toContain(word);
  });
  fc.assert(property, { seed: seed(), numRuns: RUNS });
});

it('any text is either refused or a list of servers', () => {
  const list = fc.array(fc.oneof(bent, piece, fc.constantFrom('a', 'b:6379', '[::1]:6379')), {
    minLength: 1,
    maxLength: 4,
  });
  const property = fc.property(fc.constantFrom('redis://', 'rediss://', ''), list, (protocol, servers) => {
    const end = load({ REDIS_URL: `${protocol}${servers.join(',')}` }, {});
    if (end instanceof ConfigError || end.redisUrl === undefined) return;
    for (const url of redisUrls(end.redisUrl.reveal())) {
      const { protocol, hostname, search } = new URL(redisAddress(url).url);
      expect(['redis:', 'rediss:']).toContain(protocol);
      expect(hostname).not.toBe('');
      expect(search).toBe('');
    }
  });
  fc.assert(property, { seed: seed(), numRuns: RUNS });
});
