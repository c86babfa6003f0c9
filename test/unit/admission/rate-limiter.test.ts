import { afterEach, describe, expect, test, vi } from 'vitest';
import { KeyedHash } from '../../../src/admission/keyed-hash.ts';
import { RateLimiter, rateTable } from '../../../src/admission/rate-limiter.ts';
import { parseRatePolicy } from '../../../src/admission/rate-policy.ts';

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

  test('has an empty cell for a new key also when the ticks are about to wrap to 0, which empty cells hold', () => {
    const { limiter: limited, clock } = limiter('1000/1/50', { keys: 8 });
    clock.ms = (2 ** 32 - 200) / 64;
    for (const name of ['ann', 'bob', 'cleo']) expect(limited.admit(name)).toBe(0);
    expect(['ann', 'bob', 'cleo'].map((name) => limited.counting(name))).toEqual([1, 1, 1]);
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

describe('a key that the table does not have', () => {
  /** A limiter that has one key, in the first cell, at a time that is near what the cell holds as a fingerprint. */
  function withAnn() {
    const made = limiter('1000/1/50', { keys: 8 });
    const hash = new KeyedHash(KEY);
    hash.of('ann');
    made.clock.ms = (hash.low - 100) / 64;
    expect(made.limiter.admit('ann')).toBe(0);
    return made.limiter;
  }

  test('counts nothing', () => {
    expect(withAnn().counting('bob')).toBe(0);
  });

  test('has nothing to give back, and takes nothing from others', () => {
    const limited = withAnn();
    limited.giveBack('bob');
    expect([limited.counting('ann'), limited.counting('bob')]).toEqual([1, 0]);
  });
});

describe('a request that a thread with a faster clock has let in', () => {
  /** How many requests of a whole burst still count for a thread whose clock is behind by so many milliseconds. */
  function countingBehind(text: string, behindMs: number): number {
    const { limiter: ahead, shared, policy, clock } = limiter(text);
    admitted(ahead, policy.burst);
    return new RateLimiter(policy, shared, () => clock.ms - behindMs).counting('ann');
  }

  test('counts while the clocks differ by a second at most', () => {
    expect(countingBehind('10/60/3', 900)).toBeGreaterThan(3);
    // Further ahead than any clock may be: it was written before the ticks have wrapped.
    expect(countingBehind('10/60/3', 1_200)).toBe(0);
  });

  test('counts while they differ by the time of a burst at most, if that is shorter', () => {
    expect(countingBehind('1000/1/50', 50)).toBe(100);
    expect(countingBehind('1000/1/50', 51)).toBe(0);
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

  test('let in a new key without a cell, if others have taken one at each of eight attempts', () => {
    const { one, other } = pair('1/60', 8);
    const others = Array.from({ length: 8 }, (_, i) => `buyer-${i}`);
    const { compareExchange } = Atomics;
    const waiting = [...others];
    vi.spyOn(Atomics, 'compareExchange').mockImplementation((...args: Parameters<typeof compareExchange>) => {
      const name = waiting.shift();
      if (name !== undefined) {
        const spied = Atomics.compareExchange;
        Atomics.compareExchange = compareExchange;
        expect(other.admit(name)).toBe(0);
        Atomics.compareExchange = spied;
      }
      return compareExchange(...args);
    });
    expect(one.admit('ann')).toBe(0);
    expect(waiting).toEqual([]);
    expect([one.counting('ann'), one.evictions, other.evictions]).toEqual([0, 0, 0]);
    expect(others.map((name) => other.counting(name))).toEqual(others.map(() => 1));
  });
});
