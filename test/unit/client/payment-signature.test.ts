/** The signature of a payment provider's webhooks, in the example of payments. */
import { describe, expect, test } from 'vitest';
// @ts-expect-error The example is JavaScript.
import { isSigned, signed } from '../../../examples/payment/signature.js';

const SECRET = 'whsec_of_the_tests';

describe('a signature', () => {
  const NOW = 1_700_000_000_000;
  const body = Buffer.from('{"id":"evt_1"}');
  const header = signed(body, [SECRET], NOW);
  const [at, v1] = header.split(',') as [string, string];

  test('is valid for five minutes, in both directions of the clock', () => {
    for (const [seconds, isValid] of [
      [0, true],
      [300, true],
      [-300, true],
      [301, false],
      [-301, false],
    ] as const)
      expect(isSigned(header, body, [SECRET], NOW + seconds * 1_000), `${seconds} s`).toBe(isValid);
  });

  test('is what OpenSSL computes: HMAC-SHA256 of the time, a dot and the body', () => {
    const one = 't=1700000000,v1=35495024f4ef3f94e5a93e22221544c4b75e9a42300cd965ab81cb85cd994e91';
    expect(signed(Buffer.from('{}'), ['whsec_test'], NOW)).toBe(one);
  });

  test.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['no time', v1],
    ['no signature', at],
    ['two times', `${at},${at},${v1}`],
    ['another time', `t=1700000001,${v1}`],
    ['a time that is no number', `t=1.7e9,${v1}`],
    ['a signature that is cut', `${at},${v1.slice(0, -2)}`],
    ['a signature that is longer', `${at},${v1}00`],
    ['another scheme', `${at},${v1.replace('v1', 'v0')}`],
    ['a signature that is not hexadecimal', `${at},v1=${'g'.repeat(64)}`],
  ])('is refused: %s', (_, given) => {
    expect(isSigned(given, body, [SECRET], NOW)).toBe(false);
  });

  test('is refused if one byte of the body differs; one of several signatures is enough', () => {
    expect(isSigned(header, Buffer.from('{"id":"evt_2"}'), [SECRET], NOW)).toBe(false);
    expect(isSigned(`${at},v1=${'0'.repeat(64)},${v1}`, body, ['old', SECRET], NOW)).toBe(true);
  });
});
