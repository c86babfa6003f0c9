import type { Cluster } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Primaries } from '../../../../src/engine/cluster/primaries.ts';

const HOUR_MS = 3_600_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A map of slots that counts how often it is refreshed. */
function counting() {
  const map = {
    refreshes: 0,
    refreshSlotsCache(done: () => void) {
      this.refreshes++;
      done();
    },
  };
  return { map, primaries: new Primaries(map as unknown as Cluster, 'redis://one:6379') };
}

test('the map is refreshed at once, and then once in a while, however many takes fail', async () => {
  const { map, primaries } = counting();
  for (let fails = 0; fails < 20; fails++) await primaries.refresh();
  expect(map.refreshes).toBe(1);
  vi.advanceTimersByTime(99);
  await primaries.refresh();
  expect(map.refreshes).toBe(1);
  vi.advanceTimersByTime(1);
  await primaries.refresh();
  expect(map.refreshes).toBe(2);
});

test('it is refreshed even if the clock is set back', async () => {
  const { map, primaries } = counting();
  await primaries.refresh();
  vi.setSystemTime(Date.now() - HOUR_MS);
  vi.advanceTimersByTime(100);
  await primaries.refresh();
  expect(map.refreshes).toBe(2);
});
