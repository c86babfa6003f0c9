import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Database } from '../../../../src/postgres/database.ts';
import { PlaceReads } from '../../../../src/queue/buyers/place-reads.ts';

const LIMIT_MS = 1_000;
const never = new Promise<never>(() => {});

/** The numbers of each read, as Postgres gets them. */
let asked: unknown[];

beforeEach(() => {
  asked = [];
  vi.useFakeTimers();
});
afterEach(() => void vi.useRealTimers());

/** @param hangs how many queries are never answered before all others are */
function readsOf(hangs: number): PlaceReads {
  const raw = async (_: string, [numbers]: readonly string[]) => {
    asked.push(numbers);
    if (asked.length <= hangs) return never;
    const found = numbers!.slice(1, -1).split(',');
    return { rows: found.map((number) => ({ number, quantity: 1, state: 'offered' })) };
  };
  return new PlaceReads({ raw } as unknown as Database, 'web', LIMIT_MS);
}

test('a query that is never answered fails those who wait for it, and the next ones are read', async () => {
  const reads = readsOf(1);
  const first = expect(reads.read(1)).rejects.toMatchObject({ code: 'timed_out' });
  const later = [reads.read(2), reads.read(1), reads.read(3)];
  await vi.advanceTimersByTimeAsync(LIMIT_MS - 1);
  expect(asked).toEqual(['{1}']);
  await vi.advanceTimersByTimeAsync(2);
  await first;
  expect(await Promise.all(later)).toMatchObject([{ number: 2 }, { number: 1 }, { number: 3 }]);
  expect(asked).toEqual(['{1}', '{2,1,3}']);
  expect(vi.getTimerCount()).toBe(0);
});

test('however often a place is asked for during a read, it is one of those that the next one reads', async () => {
  const reads = readsOf(2);
  const numbers = [1, ...Array<number>(2_000).fill(7), 8];
  const ends = numbers.map((number) => reads.read(number).catch(({ code }) => code));
  await vi.advanceTimersByTimeAsync(LIMIT_MS + 1);
  expect(asked).toEqual(['{1}', '{7,8}']);
  await vi.advanceTimersByTimeAsync(LIMIT_MS + 1);
  expect(new Set(await Promise.all(ends))).toEqual(new Set(['timed_out']));
  expect(await reads.read(7)).toMatchObject({ number: 7 });
});
