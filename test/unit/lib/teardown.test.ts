import { afterEach, expect, test, vi } from 'vitest';
import { Teardown } from '../../../src/lib/teardown.ts';
import { elapse, freezeTime } from '../../support/engine/frozen-time.ts';

const never = new Promise<never>(() => {});

afterEach(() => void vi.useRealTimers());

function teardown(limitMs?: number) {
  const errors: unknown[] = [];
  const order: string[] = [];
  const all = new Teardown((error) => errors.push(error), limitMs);
  const add = (name: string, end: () => unknown = () => {}, graceMs = 0) =>
    all.add(() => {
      order.push(name);
      return end();
    }, graceMs);
  return { all, add, errors, order };
}

test('the last step runs first, each once, however often it is called', async () => {
  const { all, add, errors, order } = teardown();
  for (const name of ['stores', 'sync', 'port']) add(name);
  await Promise.all([all.release(), all.release()]);
  expect(order).toEqual(['port', 'sync', 'stores']);
  expect(errors).toEqual([]);
});

test('a failed step is reported, and the next ones run', async () => {
  const { all, add, errors, order } = teardown();
  const failure = new Error('no');
  add('stores', () => Promise.reject(failure));
  add('sync', () => {
    throw failure;
  });
  await all.release();
  expect(order).toEqual(['sync', 'stores']);
  expect(errors).toEqual([failure, failure]);
});

test('the limit is for all together: a step that never ends uses it up, and the others are started', async () => {
  const { all, add, errors, order } = teardown(50);
  add('stores', () => never);
  add('sync', () => never);
  const began = performance.now();
  await all.release();
  expect(performance.now() - began).toBeLessThan(9_000);
  expect(order).toEqual(['sync', 'stores']);
  expect(errors).toMatchObject([
    { message: 'no answer within 50 ms' },
    { message: 'the shutdown was not complete within 50 ms' },
  ]);
});

test('a grace time does not count towards the limit', async () => {
  freezeTime();
  const { all, add, errors } = teardown(200);
  add('sync', () => new Promise((resolve) => setTimeout(resolve, 150)));
  add('port', () => new Promise((resolve) => setTimeout(resolve, 300)), 300);
  const released = all.release();
  await elapse(300);
  await elapse(150);
  await released;
  expect(errors).toEqual([]);
});
