import { describe, expect, test } from 'vitest';
import { normalised, parseAddress } from '../../../src/admission/addresses.ts';
import { ConnectionBound } from '../../../src/admission/connection-bound.ts';
import { rateTable } from '../../../src/admission/rate-limiter.ts';
import { parseRatePolicy, SITE_SHARE } from '../../../src/admission/rate-policy.ts';

const KEY = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7);
const ANN = parseAddress('192.0.2.1')!;
const BOB = parseAddress('192.0.2.2')!;
const PROXY = parseAddress('10.0.0.1')!;
const PROXY_6 = normalised(parseAddress('2001:db8:0:ffff::1')!);

function bounds(text: string, count = 1) {
  const clock = { ms: 1_000_000, reads: 0 };
  const parts = {
    policy: parseRatePolicy(text)!,
    addresses: { table: rateTable(1_024), key: KEY },
    sites: { table: rateTable(1_024), key: KEY },
    isExempt: (address: Uint8Array) => address === PROXY || address === PROXY_6,
    answeredAboveShare: 1 / 8,
  };
  const now = () => {
    clock.reads++;
    return clock.ms;
  };
  const made = Array.from({ length: count }, () => new ConnectionBound(parts, now));
  return { clock, bound: made[0]!, other: made[1]! };
}

/** How many of so many new connections may stay. */
const stay = (bound: ConnectionBound, count: number, address = ANN) =>
  Array.from({ length: count }, () => bound.opened(address)).filter(Boolean).length;

/** How many of so many requests are refused, with their connections. */
const shed = (bound: ConnectionBound, count: number, address = ANN) =>
  Array.from({ length: count }, () => bound.shed(address)).filter(Boolean).length;

describe('connections of one address', () => {
  test('are served up to the burst, refused with an answer up to an eighth above, and without one beyond', () => {
    const { bound } = bounds('16/10');
    expect(stay(bound, 16)).toBe(16);
    expect(bound.isAnyAbove).toBe(false);
    expect(shed(bound, 3)).toBe(0);
    expect(stay(bound, 9)).toBe(2);
    expect(bound.isAnyAbove).toBe(true);
    // As many are refused as are above the bound, whichever connections send requests. Then all are served again.
    expect(shed(bound, 9)).toBe(2);
    expect(stay(bound, 9)).toBe(2);
  });

  test('do not count for another address, nor for a proxy', () => {
    const { bound } = bounds('16/10');
    expect(stay(bound, 100)).toBe(18);
    expect(shed(bound, 1, BOB)).toBe(0);
    expect(stay(bound, 16, BOB)).toBe(16);
    expect(stay(bound, 1_000, PROXY)).toBe(1_000);
    expect(shed(bound, 1_000, PROXY)).toBe(0);
  });

  test('count for as long as the policy says', () => {
    const { bound, clock } = bounds('16/10');
    expect(stay(bound, 100)).toBe(18);
    clock.ms += 1_249;
    expect(bound.isAnyAbove).toBe(true);
    clock.ms += 1;
    expect(bound.isAnyAbove).toBe(false);
    expect(stay(bound, 100)).toBe(2);
    expect(bound.isAnyAbove).toBe(true);
    clock.ms += 20_000;
    expect(bound.isAnyAbove).toBe(false);
    expect(shed(bound, 1)).toBe(0);
    expect(stay(bound, 100)).toBe(18);
  });

  test('cost no look at the clock for a request, until one address is above its burst', () => {
    const { bound, clock } = bounds('16/10');
    stay(bound, 16);
    const before = clock.reads;
    expect(bound.isAnyAbove).toBe(false);
    expect(clock.reads).toBe(before);
  });

  test('count at all workers', () => {
    const { bound, other } = bounds('16/10', 2);
    expect(stay(bound, 10) + stay(other, 10)).toBe(18);
    expect(shed(other, 9)).toBe(2);
    expect(shed(bound, 9)).toBe(0);
  });

  test('are counted by network in IPv6, and by 64 such networks where one site has more', () => {
    const { bound } = bounds('1/86400/8');
    const inSite = (network: number, host: number) =>
      normalised(parseAddress(`2001:db8:0:${network.toString(16)}::${host}`)!);
    expect(
      Array.from({ length: 20 }, (_, host) => bound.opened(inSite(0, host))).filter(Boolean),
    ).toHaveLength(9);
    let stayed = 9;
    for (let network = 1; network <= 500; network++) if (bound.opened(inSite(network, 1))) stayed++;
    for (let network = 1; network <= 500; network++) if (bound.opened(inSite(network, 2))) stayed++;
    expect(stayed).toBe(9 * SITE_SHARE);
    // The site has too many, but not this network of it; and a proxy of the site is served.
    expect(shed(bound, 1, inSite(499, 1))).toBe(1);
    expect(shed(bound, 1, PROXY_6)).toBe(0);
    expect(bound.opened(parseAddress('2001:db8:1::1')!)).toBe(true);
  });
});
