import { Worker } from 'node:worker_threads';
import { expect, test, vi } from 'vitest';
import { StockadeError } from '../../../src/engine/errors.ts';
import { monotonicMs } from '../../../src/lib/monotonic.ts';
import { ReplyLost, settled, withTimeout } from '../../../src/lib/with-timeout.ts';

/** Answers what it is sent, and marks when the answer is on its way. */
const ANSWERS = `
  const { parentPort, workerData } = require('node:worker_threads');
  parentPort.on('message', () => {
    parentPort.postMessage('the answer');
    Atomics.store(workerData, 0, 1);
    Atomics.notify(workerData, 0);
  });`;

test('late work times out', async () => {
  await expect(withTimeout(1, new Promise(() => {}))).rejects.toMatchObject({ code: 'timed_out' });
});

test('work that ends in time gives its result', async () => {
  expect(await withTimeout(10_000, Promise.resolve(7))).toBe(7);
  await expect(withTimeout(10_000, Promise.reject(new Error('its own')))).rejects.toThrow('its own');
});

test('no timer is left when the work has ended', async () => {
  vi.useFakeTimers();
  try {
    await withTimeout(10_000, Promise.resolve(7));
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
});

test('an answer that arrived while the event loop was blocked still counts', async () => {
  const isSent = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(ANSWERS, { eval: true, workerData: isSent });
  try {
    const timeoutMs = 20;
    const answer = new Promise((resolve) => worker.once('message', resolve));
    worker.postMessage('a question');
    // Behind the immediates come the timers, and then what has arrived.
    await new Promise((resolve) => setImmediate(resolve));
    const asked = withTimeout(timeoutMs, answer);
    expect(Atomics.wait(isSent, 0, 0, 30_000)).not.toBe('timed-out');
    // Nothing else happens here meanwhile: the timer is due when the answer has come.
    Atomics.wait(isSent, 0, 1, 2 * timeoutMs);
    expect(await asked).toBe('the answer');
  } finally {
    await worker.terminate();
  }
});

test.each([
  ['is not answered in time', new StockadeError('timed_out', 'no answer within 50 ms')],
  ['whose connection has failed', new ReplyLost(new Error('read ECONNRESET'))],
])('a change that %s is open until its latest time', async (_, error) => {
  const latestMs = monotonicMs() + 50;
  await settled(error, latestMs);
  expect(monotonicMs()).toBeGreaterThan(latestMs);
});

test.each([
  ['was refused by the store', new Error('deadlock detected')],
  ['was not begun', new StockadeError('busy', 'too many wait')],
])('a change that %s is not open', async (_, error) => {
  const began = monotonicMs();
  await settled(error, began + 60_000);
  expect(monotonicMs()).toBeLessThan(began + 30_000);
});
