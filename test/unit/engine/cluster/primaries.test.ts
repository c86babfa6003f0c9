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

/** A map in which the server at `address` has slot 5. */
function mapping(address: string, nodes: { host: string; port: number }[] = []) {
  const map = {
    slots: { 5: [address, '10.0.0.9:1'] } as Record<number, string[]>,
    nodes: (role: string) => (role === 'master' ? nodes.map((options) => ({ options })) : []),
  };
  return new Primaries(map as unknown as Cluster, 'rediss://me:secret@one:6379/0?tls=1');
}

test('the url of a slot is that of its server, with the user, password and parameters of the first', () => {
  const primaries = mapping('10.0.0.2:7002');
  expect(primaries.of(5)).toBe('rediss://me:secret@10.0.0.2:7002/0?tls=1');
  expect(primaries.of(6)).toBeUndefined();
});

test('all servers that take writes have a url', () => {
  const nodes = [
    { host: '10.0.0.2', port: 7002 },
    { host: '2001:db8::3', port: 7003 },
  ];
  expect(mapping('', nodes).all()).toEqual([
    'rediss://me:secret@10.0.0.2:7002/0?tls=1',
    'rediss://me:secret@[2001:db8::3]:7003/0?tls=1',
  ]);
});

test.each([
  ['2001:db8::2:7002', undefined, '[2001:db8::2]:7002'],
  [':7002', 'rediss://ten:1', 'ten:7002'],
  [':7002', 'rediss://[2001:db8::10]:1', '[2001:db8::10]:7002'],
  [':7002', undefined, 'one:7002'],
  ['two:7002', 'rediss://ten:1', 'two:7002'],
])('the address %j, told by %j, is at %s', (address, asked, host) => {
  expect(mapping('').urlOf(address, asked)).toBe(`rediss://me:secret@${host}/0?tls=1`);
});
