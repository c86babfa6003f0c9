import { expect, test } from 'vitest';
import { parseAddress } from '../../../src/admission/addresses.ts';
import { SITE_SHARE } from '../../../src/admission/rate-policy.ts';
import { StreamBound } from '../../../src/admission/stream-bound.ts';

const ANN = parseAddress('192.0.2.1')!;
const BOB = parseAddress('192.0.2.2')!;
const PROXY = parseAddress('10.0.0.1')!;

const boundOf = (burst: number) =>
  new StreamBound({ policy: { requests: 1, seconds: 1, burst }, isExempt: (address) => address === PROXY });

/** Opens streams until one is refused. @returns how many */
function fill(bound: StreamBound, address: Uint8Array): number {
  let opened = 0;
  for (; opened < 10_000 && bound.admits(address); opened++) bound.opened(address);
  return opened;
}

test('an address has as many streams as its burst, and others have their own', () => {
  const bound = boundOf(3);
  expect(fill(bound, ANN)).toBe(3);
  expect(fill(bound, BOB)).toBe(3);
});

test('a stream that is closed makes room for one more', () => {
  const bound = boundOf(3);
  fill(bound, ANN);
  bound.closed(ANN);
  expect(fill(bound, ANN)).toBe(1);
  for (let i = 0; i < 3; i++) bound.closed(ANN);
  expect(fill(bound, ANN)).toBe(3);
});

test('a network of 64 bits counts as one address, and one of 48 bits may have 64 times as many', () => {
  const bound = boundOf(2);
  expect(fill(bound, parseAddress('2001:db8::1')!)).toBe(2);
  expect(bound.admits(parseAddress('2001:db8::2')!)).toBe(false);
  let inSite = 2;
  for (let i = 1; i < 2 * SITE_SHARE; i++) inSite += fill(bound, parseAddress(`2001:db8:0:${i}::1`)!);
  expect(inSite).toBe(2 * SITE_SHARE);
  expect(fill(bound, parseAddress('2001:db8:1::1')!), 'another network').toBe(2);
});

test('a proxy has no limit', () => {
  expect(fill(boundOf(1), PROXY)).toBe(10_000);
});
