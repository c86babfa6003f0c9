import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Wakeups } from '../../../src/locks/wakeups.ts';

/** A connection whose subscriptions become active when the test says so. */
class FakeRedis extends EventEmitter {
  readonly subscriptions: (() => void)[] = [];
  readonly subscribe = () => new Promise<void>((active) => this.subscriptions.push(active));
  readonly unsubscribe = async () => {};
  readonly ping = async () => 'PONG';
  readonly disconnect = () => {};
}

let redis: FakeRedis;
let wakeups: Wakeups;

beforeEach(() => {
  redis = new FakeRedis();
  wakeups = new Wakeups(redis as unknown as Redis);
});
afterEach(() => wakeups.close());

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
