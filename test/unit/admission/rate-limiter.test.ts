import { afterEach, describe, expect, test, vi } from 'vitest';
import { KeyedHash } from '../../../src/admission/keyed-hash.ts';
import { RateLimiter, rateTable } from '../../../src/admission/rate-limiter.ts';
import { parseRatePolicy, type RatePolicy } from '../../../src/admission/rate-policy.ts';

const KEY = Uint8Array.of(0, 1, 2, 3, 4, 5, 6, 7);
const MILLION = 1_000_000;

class Clock {
  ms = 1_000_000;
  readonly now = () => this.ms;
}

function limiter(text: string, { keys = 1_024, clock = new Clock() } = {}) {
  const shared = { table: rateTable(keys), key: KEY };
  const policy = parseRatePolicy(text)!;
  return { clock, shared, policy, limiter: new RateLimiter(policy, shared, clock.now) };
}

/** How many of so many requests at once are let in. */
function admitted(limited: RateLimiter, count: number, key = 'ann'): number {
  return Array.from({ length: count }, () => limited.admit(key)).filter((waitMs) => waitMs === 0).length;
}

describe('a policy', () => {
  test.each<[string, RatePolicy | undefined]>([
    ['10/60', { requests: 10, seconds: 60, burst: 10 }],
    ['5/1/20', { requests: 5, seconds: 1, burst: 20 }],
    ['1000000/86400/1000000', { requests: MILLION, seconds: 86_400, burst: MILLION }],
    ['0/1', undefined],
    ['1/0', undefined],
    ['1/1/0', undefined],
    ['1000001/1', undefined],
    ['1/86401', undefined],
    ['1.5/1', undefined],
    ['10', undefined],
    ['', undefined],
  ])('%j', (text, policy) => {
    expect(parseRatePolicy(text)).toEqual(policy);
  });
});

describe('a limit', () => {
  test('lets in a burst, then one request in each interval', () => {
    const { limiter: limited, clock } = limiter('10/60/3');
    expect(admitted(limited, 5)).toBe(3);
    clock.ms += 5_800;
    expect(admitted(limited, 2)).toBe(0);
    clock.ms += 200;
    expect(admitted(limited, 2)).toBe(1);
    clock.ms += 12_000;
    expect(admitted(limited, 5)).toBe(2);
    clock.ms += 3_600_000;
    expect(admitted(limited, 9)).toBe(3);
  });

  test.each(['10/60/3', '1/86400', '1000/1/50', '7/3'])(
    '%s says when to ask again, and keeps that',
    (text) => {
      const { limiter: limited, clock, policy } = limiter(text);
      admitted(limited, policy.burst);
      for (let round = 0; round < 50; round++) {
        const waitMs = limited.admit('ann');
        expect(waitMs).toBeGreaterThan(0);
        expect(waitMs).toBeLessThanOrEqual((policy.seconds * 1_000) / policy.requests + 1e-6);
        clock.ms += waitMs + 1e-3;
        expect(limited.admit('ann')).toBe(0);
      }
    },
  );

  test('is exact in the long run, however requests are spread', () => {
    const { limiter: limited, clock } = limiter('30/10/30');
    let letIn = 0;
    for (let i = 0; i < 10_000; i++) {
      clock.ms += (i * 7_919) % 100;
      if (limited.admit('ann') === 0) letIn++;
    }
    const elapsedS = (clock.ms - 1_000_000) / 1_000;
    expect(letIn).toBeGreaterThan(elapsedS * 3 - 2);
    expect(letIn).toBeLessThanOrEqual(30 + elapsedS * 3);
  });

  test('refusals do not count: a key that is refused often waits no longer', () => {
    const { limiter: limited, clock } = limiter('1/10');
    expect(admitted(limited, 1_000)).toBe(1);
    clock.ms += 10_000;
    expect(admitted(limited, 1)).toBe(1);
  });

  test('counts each key by itself', () => {
    const { limiter: limited } = limiter('1/10');
    expect(['ann', 'bob', 'ann', 'cleo', 'bob'].map((key) => limited.admit(key) === 0)).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
  });

  test('is one limit for all limiters that share the table and its key', () => {
    const { limiter: one, shared, policy, clock } = limiter('10/60');
    const other = new RateLimiter(policy, shared, clock.now);
    expect(admitted(one, 6) + admitted(other, 6)).toBe(10);
  });

  test('a key that was last seen before the ticks have wrapped is not refused', () => {
    const { limiter: limited, clock } = limiter('1000/1');
    admitted(limited, 1_000);
    // 2^32 ticks of a 64th of a millisecond, and 2^31: what was written then looks as if it lay far ahead.
    clock.ms += 2 ** 31 / 64 + 2_000;
    expect(admitted(limited, 2_000)).toBe(1_000);
    clock.ms += 2 ** 31 / 64 - 4_000;
    expect(admitted(limited, 2_000)).toBe(1_000);
  });
});

describe('the table', () => {
  test('has a fixed size; if it is full, it forgets a key and refuses none', () => {
    const { limiter: limited, shared } = limiter('1/60', { keys: 65_536 });
    const bytes = shared.table.byteLength;
    expect(bytes).toBe(65_536 * 8);
    const refused = Array.from({ length: MILLION }, (_, i) => limited.admit(`stranger-${i}`)).filter(
      (waitMs) => waitMs > 0,
    );
    // Two keys of one set with the same fingerprint: a million times 8 in 2^32.
    expect(refused.length).toBeLessThan(20);
    expect(shared.table.byteLength).toBe(bytes);
    expect(limited.evictions).toBeGreaterThan(MILLION - 65_536 - 20_000);
    expect(limited.evictions).toBeLessThanOrEqual(MILLION);
  });

  test('remembers as many keys as fit in', () => {
    const { limiter: limited } = limiter('1/60', { keys: 65_536 });
    const names = Array.from({ length: 6_000 }, (_, i) => `buyer-${i}`);
    for (const name of names) limited.admit(name);
    expect(limited.evictions).toBe(0);
    expect(names.every((name) => limited.admit(name) > 0)).toBe(true);
  });

  test('gives a new key the cell that is due first', () => {
    // One set of eight cells.
    const { limiter: limited, clock } = limiter('2/10', { keys: 8 });
    const names = Array.from({ length: 8 }, (_, i) => `buyer-${i}`);
    for (const name of names) {
      admitted(limited, 2, name);
      clock.ms += 10;
    }
    expect(limited.admit('newcomer')).toBe(0);
    expect(limited.evictions).toBe(1);
    expect(names.slice(1).every((name) => limited.admit(name) > 0)).toBe(true);
    expect(limited.admit('buyer-0')).toBe(0);
  });

  test('replacing a cell whose time is over is not counted', () => {
    const { limiter: limited, clock } = limiter('1/10', { keys: 8 });
    for (let i = 0; i < 8; i++) limited.admit(`buyer-${i}`);
    clock.ms += 10_000;
    expect(limited.admit('newcomer')).toBe(0);
    expect(limited.evictions).toBe(0);
  });

  test.each([
    [1, 8],
    [8, 8],
    [1_000, 1_024],
    [1_025, 2_048],
  ])('for %i keys has %i cells', (keys, cells) => {
    expect(rateTable(keys).byteLength).toBe(cells * 8);
  });
});

describe('two threads at the same time', () => {
  afterEach(() => vi.restoreAllMocks());

  /** Lets another thread do its work just before the next compare-and-swap of this one. */
  function before(work: () => void): void {
    const { compareExchange } = Atomics;
    const spy = vi.spyOn(Atomics, 'compareExchange');
    spy.mockImplementationOnce((...args: Parameters<typeof compareExchange>) => {
      spy.mockRestore();
      work();
      return compareExchange(...args);
    });
  }

  function pair(text: string, keys?: number) {
    const { limiter: one, shared, policy, clock } = limiter(text, keys === undefined ? {} : { keys });
    return { one, other: new RateLimiter(policy, shared, clock.now), clock };
  }

  test('count both requests of one key', () => {
    const { one, other } = pair('3/60');
    admitted(one, 1);
    before(() => expect(other.admit('ann')).toBe(0));
    expect(one.admit('ann')).toBe(0);
    expect([one, other].map((limited) => limited.admit('ann') > 0)).toEqual([true, true]);
  });

  test('let in one of two last requests of a burst', () => {
    const { one, other } = pair('2/60');
    admitted(one, 1);
    before(() => expect(other.admit('ann')).toBe(0));
    expect(one.admit('ann')).toBeGreaterThan(0);
  });

  test('let in two requests at an empty cell, and refuse the next one', () => {
    const { one, other } = pair('1/60');
    before(() => expect(other.admit('bob')).toBe(0));
    expect(one.admit('ann')).toBe(0);
    expect(one.admit('ann')).toBeGreaterThan(0);
  });

  test('let in two new keys at a full set, and know them afterwards', () => {
    const { one, other, clock } = pair('1/60', 8);
    for (let i = 0; i < 8; i++) {
      one.admit(`buyer-${i}`);
      clock.ms += 1_000;
    }
    before(() => expect(other.admit('bob')).toBe(0));
    expect(one.admit('ann')).toBe(0);
    expect(['ann', 'bob'].map((name) => one.admit(name) > 0)).toEqual([true, true]);
  });
});

test('the keyed hash is HalfSipHash-2-4', () => {
  const hash = new KeyedHash(KEY);
  const hex = (text: string) => {
    hash.of(text);
    const bytes = Buffer.alloc(8);
    bytes.writeInt32LE(hash.low, 0);
    bytes.writeInt32LE(hash.high, 4);
    return bytes.toString('hex');
  };
  const upTo = (length: number) => String.fromCharCode(...Array.from({ length }, (_, i) => i));
  // Vectors of the authors' reference.
  expect(hex(upTo(0))).toBe('218d1f59b9b83cc8');
  expect(hex(upTo(1))).toBe('be552412f8387315');
  expect(hex(upTo(2))).toBe('064f39ef7c50eb57');
  expect(hex(upTo(3))).toBe('ce0f1a45f7060679');
  expect(hex(upTo(4))).toBe('d5e78a175be52ea1');
  expect(hex(upTo(7))).toBe('ff202728b07bc684');
  expect(hex(upTo(8))).toBe('edfee820bce4858c');
});
