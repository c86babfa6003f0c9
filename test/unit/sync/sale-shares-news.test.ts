/** What one sync makes of the news of others, and what it tells them. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { SyncNews } from '../../../src/engine/contract.ts';
import { SaleShares } from '../../../src/sync/sale-shares.ts';
import { freezeTime } from '../../support/engine/frozen-time.ts';

let count: number;
let told: SyncNews[];
let calls: string[];
let given: (count: number) => string[];
let shares: SaleShares;

beforeEach(() => {
  freezeTime();
  [count, told, calls] = [10, [], []];
  given = (most) => Array.from({ length: most }, (_, i) => `sale-${i}`);
  const sales = {
    get count() {
      return count;
    },
    async handOver(most: number) {
      calls.push(`hand over ${most}`);
      const saleIds = given(most);
      count -= saleIds.length;
      return saleIds;
    },
    async takeReleased(saleIds: readonly string[]) {
      calls.push(`take ${saleIds}`);
      count += saleIds.length;
    },
  };
  shares = new SaleShares({ tell: (news) => void told.push(news) }, sales, () => void calls.push('due'));
});

afterEach(() => void vi.useRealTimers());

const hear = (from: string, sales: number, handedOver?: SyncNews['handedOver']) =>
  shares.hear({ from, sales, ...(handedOver && { handedOver }) });
const advance = () => shares.advance(async () => void calls.push('settled'));

/** The other sync is known for long enough to get sales. */
function meet(from: string, sales: number): void {
  hear(from, sales);
  vi.advanceTimersByTime(500);
  hear(from, sales);
}

test('a sync tells how many sales it has, once a second', async () => {
  await advance();
  vi.advanceTimersByTime(999);
  await advance();
  expect(told).toEqual([{ from: shares.name, sales: 10 }]);
  vi.advanceTimersByTime(1);
  await advance();
  expect(told).toHaveLength(2);
});

test('each sync has a name of its own', () => {
  const other = new SaleShares(undefined, { count: 0, handOver: vi.fn(), takeReleased: vi.fn() }, () => {});
  expect(shares.name).toMatch(/^[0-9a-f]{16}$/);
  expect(other.name).not.toBe(shares.name);
});

test('its own news means nothing', async () => {
  meet(shares.name, 0);
  await advance();
  expect(calls).toEqual([]);
});

test('another sync gets its share with news half a second after its first, and the hand-over is told', async () => {
  hear('other', 0);
  vi.advanceTimersByTime(499);
  hear('other', 0);
  await advance();
  expect(calls).toEqual([]);
  vi.advanceTimersByTime(1);
  hear('other', 0);
  await advance();
  await advance();
  expect(calls).toEqual(['due', 'settled', 'hand over 5']);
  const saleIds = given(5);
  expect(told.slice(1)).toEqual([{ from: shares.name, sales: 5, handedOver: { to: 'other', saleIds } }]);
});

test.each([
  ['as many', 10],
  ['one fewer', 9],
  ['more', 20],
])('a sync that has %s gets nothing', async (_, sales) => {
  meet('other', sales);
  await advance();
  expect(calls).toEqual([]);
});

test('a sync that gets no sale, because all have left meanwhile, is told nothing', async () => {
  given = () => [];
  meet('other', 0);
  await advance();
  expect(calls).toEqual(['due', 'settled', 'hand over 5']);
  expect(told).toEqual([{ from: shares.name, sales: 10 }]);
});

test('nothing is owed any more if batches have ended with the release of sales', async () => {
  meet('other', 0);
  await shares.advance(async () => {
    count = 1;
  });
  expect(calls).toEqual(['due', 'hand over 0']);
});

describe('news with too few sales', () => {
  /** Five sales are handed over, and so much later the other sync still says that it has none. */
  async function hearAfter(ms: number): Promise<void> {
    meet('other', 0);
    await advance();
    vi.advanceTimersByTime(ms);
    calls.length = 0;
    hear('other', 0);
    await advance();
  }

  test('was sent before a hand-over if it is heard within a second', async () => {
    await hearAfter(999);
    expect(calls).toEqual([]);
  });

  test('is true after a second', async () => {
    await hearAfter(1_000);
    expect(calls).toEqual(['due', 'settled', 'hand over 2']);
  });

  test('of as many sales as were handed over is no such news', async () => {
    meet('other', 0);
    await advance();
    calls.length = 0;
    count = 9;
    hear('other', 5);
    await advance();
    expect(calls).toEqual(['due', 'settled', 'hand over 2']);
  });
});

describe('released sales', () => {
  test('are taken by the sync for which they were released, which tells it', async () => {
    hear('other', 3, { to: shares.name, saleIds: ['a', 'b'] });
    expect(calls).toEqual(['due']);
    await advance();
    await advance();
    expect(calls).toEqual(['due', 'take a,b']);
    expect(told).toEqual([{ from: shares.name, sales: 12 }]);
  });

  test('count as its own before it has taken them', async () => {
    count = 0;
    meet('third', 0);
    calls.length = 0;
    hear('other', 20, { to: shares.name, saleIds: ['a', 'b', 'c', 'd'] });
    hear('third', 0);
    expect(calls).toEqual(['due', 'due']);
  });

  test('count as those of the sync that gets them, although it has not told it', async () => {
    hear('third', 0);
    hear('other', 5, { to: 'third', saleIds: ['a', 'b', 'c', 'd', 'e'] });
    vi.advanceTimersByTime(500);
    count = 6;
    hear('other', 5);
    hear('third', 0);
    await advance();
    expect(calls).toEqual([]);
  });

  test('for a sync that is not known are not counted', async () => {
    hear('other', 5, { to: 'unknown', saleIds: ['a'] });
    meet('unknown', 0);
    await advance();
    expect(calls).toContain('settled');
  });
});

test.each([
  ['has its share', 5_000, 3],
  ['has none any more', 5_001, 5],
])('a sync that was not heard %s after %i ms', async (_, ms, share) => {
  hear('silent', 0);
  vi.advanceTimersByTime(ms - 500);
  meet('other', 0);
  await advance();
  expect(calls).toEqual(['due', 'settled', `hand over ${share}`]);
});
