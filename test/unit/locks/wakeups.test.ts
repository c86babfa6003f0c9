import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { HEARTBEAT_MS, LINGER_MS } from '../../../src/locks/lock-limits.ts';
import { Wakeups } from '../../../src/locks/wakeups.ts';

/** A connection whose subscriptions become active when the test says so. */
class FakeRedis extends EventEmitter {
  readonly subscriptions: (() => void)[] = [];
  readonly subscribe = vi.fn(() => new Promise<void>((active) => this.subscriptions.push(active)));
  readonly unsubscribe = vi.fn(async (_channel: string) => {});
  readonly ping = vi.fn(async () => 'PONG');
  readonly disconnect = vi.fn();
}

let redis: FakeRedis;
let wakeups: Wakeups;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
  redis = new FakeRedis();
  wakeups = new Wakeups(redis as unknown as Redis);
});
afterEach(() => {
  wakeups.close();
  vi.useRealTimers();
});

async function subscribed(): Promise<void> {
  redis.subscriptions.shift()!();
  await Promise.resolve();
}

test('a channel hears once its subscription is active, and wakes its waiter then', async () => {
  const heard = vi.fn();
  wakeups.join('till', heard);
  expect([wakeups.hears('till'), heard.mock.calls.length]).toEqual([false, 0]);
  await subscribed();
  expect([wakeups.hears('till'), heard.mock.calls.length]).toEqual([true, 1]);
  redis.emit('message', 'till');
  redis.emit('message', 'another');
  expect(heard).toHaveBeenCalledTimes(2);
});

test('who joins a channel that lingers is woken at once: it may have missed a message', async () => {
  const [first, second] = [vi.fn(), vi.fn()];
  wakeups.join('till', first);
  await subscribed();
  wakeups.leave('till');
  redis.emit('message', 'till');
  wakeups.join('till', second);
  expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 1]);
  expect(redis.subscriptions).toEqual([]);
});

test('who joins a channel before its subscription is active is woken when it is', async () => {
  const [first, second] = [vi.fn(), vi.fn()];
  wakeups.join('till', first);
  wakeups.leave('till');
  wakeups.join('till', second);
  expect(second).not.toHaveBeenCalled();
  await subscribed();
  expect([first.mock.calls.length, second.mock.calls.length]).toEqual([0, 1]);
});

test('nobody hears a channel that was never joined, and to leave it does nothing', () => {
  expect(wakeups.hears('till')).toBe(false);
  wakeups.leave('till');
  vi.advanceTimersByTime(LINGER_MS);
  expect(redis.unsubscribe).not.toHaveBeenCalled();
});

test('all listeners are woken when the connection is back: they may have missed messages', () => {
  const [one, other, gone] = [vi.fn(), vi.fn(), vi.fn()];
  wakeups.join('till', one);
  wakeups.join('safe', other);
  wakeups.join('shelf', gone);
  wakeups.leave('shelf');
  redis.emit('ready');
  expect([one, other, gone].map((heard) => heard.mock.calls.length)).toEqual([1, 1, 0]);
});

test('a channel that nobody has joined for a while is given up, and can be joined again', async () => {
  wakeups.join('till', vi.fn());
  await subscribed();
  wakeups.leave('till');
  vi.advanceTimersByTime(LINGER_MS - 1);
  expect([wakeups.hears('till'), redis.unsubscribe.mock.calls]).toEqual([true, []]);
  vi.advanceTimersByTime(1);
  expect([wakeups.hears('till'), redis.unsubscribe.mock.calls]).toEqual([false, [['till']]]);
  const heard = vi.fn();
  wakeups.join('till', heard);
  await subscribed();
  expect([wakeups.hears('till'), heard.mock.calls.length]).toEqual([true, 1]);
});

test('a channel that is joined again in time is kept', async () => {
  wakeups.join('till', vi.fn());
  await subscribed();
  wakeups.leave('till');
  wakeups.join('till', vi.fn());
  vi.advanceTimersByTime(2 * LINGER_MS);
  expect([wakeups.hears('till'), redis.unsubscribe.mock.calls]).toEqual([true, []]);
});

test('a failed heartbeat, subscription or its end concerns nobody: the connection comes back, or is closed', async () => {
  const fail = () => Promise.reject(new Error('connection is closed'));
  redis.ping.mockImplementation(fail);
  redis.unsubscribe.mockImplementation(fail);
  vi.advanceTimersByTime(HEARTBEAT_MS);
  wakeups.join('till', vi.fn());
  wakeups.leave('till');
  vi.advanceTimersByTime(LINGER_MS);
  redis.subscribe.mockImplementation(fail);
  wakeups.join('till', vi.fn());
  // An unhandled rejection would fail the run.
  await new Promise((resolve) => setImmediate(resolve));
  expect(wakeups.hears('till')).toBe(false);
});

test('a heartbeat is sent again and again, until the locks are closed', () => {
  vi.advanceTimersByTime(HEARTBEAT_MS - 1);
  expect(redis.ping).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1 + 2 * HEARTBEAT_MS);
  expect(redis.ping).toHaveBeenCalledTimes(3);
  wakeups.join('till', vi.fn());
  wakeups.leave('till');
  wakeups.close();
  expect([vi.getTimerCount(), redis.disconnect.mock.calls.length]).toEqual([0, 1]);
});

test('timers keep no process alive', () => {
  vi.useRealTimers();
  const timers = [vi.spyOn(globalThis, 'setInterval'), vi.spyOn(globalThis, 'setTimeout')];
  const other = new Wakeups(redis as unknown as Redis);
  other.join('till', vi.fn());
  other.leave('till');
  const started = timers.flatMap(({ mock }) => mock.results.map(({ value }) => value as NodeJS.Timeout));
  expect(started.map((timer) => timer.hasRef())).toEqual([false, false]);
  other.close();
  for (const spy of timers) spy.mockRestore();
});
