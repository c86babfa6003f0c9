/** Rates as operators write them. */
import { expect, test } from 'vitest';
import { intervalMs, parseRatePolicy, SITE_SHARE, sitePolicy } from '../../../src/admission/rate-policy.ts';

test.each([
  ['10/60', { requests: 10, seconds: 60, burst: 10 }],
  ['5/1/20', { requests: 5, seconds: 1, burst: 20 }],
  ['1/1/1', { requests: 1, seconds: 1, burst: 1 }],
  ['1000000/86400/1000000', { requests: 1_000_000, seconds: 86_400, burst: 1_000_000 }],
])('%s is a rate', (text, policy) => {
  expect(parseRatePolicy(text)).toEqual(policy);
});

test.each([
  ...[
    '',
    '10',
    '10/',
    '/60',
    '10/60/',
    '10/60/5/',
    'x10/60',
    '10/60x',
    '10/60/5x',
    '-1/60',
    '1.5/60',
    '10/x',
  ],
  ...['0/60', '10/0', '10/60/0', '1000001/60', '10/86401', '10/60/1000001', '00000010/60', '10/000060'],
])('%j is none', (text) => {
  expect(parseRatePolicy(text)).toBeUndefined();
});

test('a network of 48 bits has the rate of many, with a burst that a limiter can count', () => {
  expect(sitePolicy({ requests: 3, seconds: 7, burst: 5 })).toEqual({
    ...{ requests: 3 * SITE_SHARE, seconds: 7, burst: 5 * SITE_SHARE },
  });
  expect(sitePolicy({ requests: 1, seconds: 1, burst: 125_001 }).burst).toBe(8_000_000);
});

test('the time between requests', () => {
  expect(intervalMs({ requests: 4, seconds: 60, burst: 1 })).toBe(15_000);
});
