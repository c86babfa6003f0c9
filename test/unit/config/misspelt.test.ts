/** Environment variables that look like a setting and are none. */
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load-config.ts';
import { misspeltIn } from '../../../src/config/misspelt.ts';
import { settingNames, settings, settingsFor } from '../../../src/config/settings.ts';

const found = (...variables: string[]) =>
  misspeltIn(Object.fromEntries(variables.map((name) => [name, 'x'])), settingsFor('node')).map(
    ({ variable, meant }) => `${variable} -> ${meant}`,
  );

test('a letter that is missing, wrong or too much', () => {
  expect(found('RATE_LIMIT_ADRESS')).toEqual(['RATE_LIMIT_ADRESS -> RATE_LIMIT_ADDRESS']);
  expect(found('REDIS_URI', 'DATABASE__URL')).toEqual([
    'REDIS_URI -> REDIS_URL',
    'DATABASE__URL -> DATABASE_URL',
  ]);
});

test('two letters in the wrong order', () => {
  expect(found('TRUSTED_PROXEIS')).toEqual(['TRUSTED_PROXEIS -> TRUSTED_PROXIES']);
});

test('not a setting itself, even if another one has a similar name', () => {
  expect(found(...settingNames.map((name) => settings[name].env))).toEqual([]);
});

test('not if the setting is set as well: the other variable then belongs to another program', () => {
  expect(found('REDIS_URI', 'REDIS_URL')).toEqual([]);
});

test('not names of other programs', () => {
  const others = [
    'PATH',
    'HOME',
    'HOSTNAME',
    'POST',
    'PORTS',
    'PGHOST',
    'PGPORT',
    'NODE_ENV',
    'POSTGRES_URL',
  ];
  expect(found(...others, 'OTEL_SERVICE_NAMESPACE', 'REDIS_SERVICE_HOST', 'LOG_FORMAT')).toEqual([]);
});

test('not a variable without a value, which counts as not set', () => {
  expect(misspeltIn({ REDIS_URI: '' }, settingsFor('node'))).toEqual([]);
});

test('is listed with the faults that it may explain', () => {
  const env = { TRUST_BUYER_HEADER: '1', RATE_LIMIT_ADDRESS: '1/1', TRUSTED_PROXEIS: '1' };
  expect(() => loadConfig(env, {})).toThrow(
    /RATE_LIMIT_ADDRESS .*; TRUSTED_PROXEIS has no effect: is TRUSTED_PROXIES meant\?$/,
  );
});

test('not settings that the command does not use', () => {
  expect(misspeltIn({ RATE_LIMIT_ADRESS: '1/1' }, ['redisUrl', 'logLevel'])).toEqual([]);
});
