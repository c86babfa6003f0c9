/** What a node knows of Postgres' clock: its error is on the early side. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { ServerClock } from '../../../src/postgres/changes/server-clock.ts';

/** The server's clock counts from another moment. */
const AHEAD_MS = 1_700_000_000_000;
const server = () => monotonicMs() + AHEAD_MS;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('nothing is known before the first reply, and a minute after the last one', () => {
  const clock = new ServerClock();
  expect(clock.isKnown).toBe(false);
  clock.learn(server());
  vi.advanceTimersByTime(60_000);
  expect(clock.isKnown).toBe(true);
  vi.advanceTimersByTime(1);
  expect(clock.isKnown).toBe(false);
  clock.learn(server());
  clock.forget();
  expect(clock.isKnown).toBe(false);
});

test('a time on the server’s clock is early by the time that the reply took, and never late', () => {
  const clock = new ServerClock();
  const shown = server();
  vi.advanceTimersByTime(40);
  clock.learn(shown);
  const early = monotonicMs() + 2_000 + AHEAD_MS - clock.timeBefore(monotonicMs() + 2_000);
  expect(early).toBeGreaterThanOrEqual(40);
  expect(early).toBeLessThan(50);
});

test('the older the reply, the more the clocks may have moved apart', () => {
  const clock = new ServerClock();
  clock.learn(server());
  const early = (ms: number) => server() + ms - clock.timeBefore(monotonicMs() + ms);
  const before = early(2_000);
  vi.advanceTimersByTime(50_000);
  // Half a thousandth for each clock.
  expect(early(2_000) - before).toBeCloseTo(50, 3);
});

test('the newest reply counts: the server’s clock may have been set back', () => {
  const clock = new ServerClock();
  clock.learn(server());
  clock.learn(server() - 10_000);
  expect(clock.timeBefore(monotonicMs())).toBeLessThan(server() - 10_000);
});
