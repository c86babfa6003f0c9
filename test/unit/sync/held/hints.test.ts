import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Hints, type WakingHints } from '../../../../src/sync/held/hints.ts';
import { freezeTime } from '../../../support/engine/frozen-time.ts';

const FOR_EVER_MS = 2 ** 30;

/** Whether the hint ends a sleep that only some hints end. A second hint or `wake` then ends it for sure. */
async function endsSleep(waking: WakingHints, awaited: boolean): Promise<boolean> {
  const hints = new Hints();
  let hasEnded = false;
  const sleep = hints.sleep(FOR_EVER_MS, waking).then(() => {
    hasEnded = true;
  });
  hints.add('sale', [0], awaited);
  await Promise.resolve();
  await Promise.resolve();
  const ended = hasEnded;
  hints.wake();
  await sleep;
  return ended;
}

describe('a hint ends the sleep', () => {
  test.each([
    ['all', true, true],
    ['all', false, true],
    ['awaited', true, true],
    ['awaited', false, false],
    ['none', true, false],
    ['none', false, false],
  ] as const)('that hears %s, if it is awaited: %s: %s', async (waking, awaited, ends) => {
    expect(await endsSleep(waking, awaited)).toBe(ends);
  });
});

describe('a notification ends the sleep', () => {
  test.each([
    ['all', true],
    ['awaited', true],
    ['none', false],
  ] as const)('that hears %s: %s', async (waking, ends) => {
    const hints = new Hints();
    let hasEnded = false;
    const sleep = hints.sleep(FOR_EVER_MS, waking).then(() => {
      hasEnded = true;
    });
    hints.notify();
    await Promise.resolve();
    await Promise.resolve();
    expect(hasEnded).toBe(ends);
    hints.wake();
    await sleep;
  });
});

test('a sleep hears all hints if nothing else is said, and of a hint that a buyer waits', async () => {
  const hints = new Hints();
  const all = hints.sleep(FOR_EVER_MS);
  hints.add('sale', [], false);
  await all;
  const awaited = hints.sleep(FOR_EVER_MS, 'awaited');
  hints.add('sale');
  await awaited;
});

test('a sleep ends by itself, and nothing is left of one that was ended', async () => {
  freezeTime();
  onTestFinished(() => void vi.useRealTimers());
  const hints = new Hints();
  const sleep = hints.sleep(100);
  vi.advanceTimersByTime(100);
  await sleep;
  const ended = hints.sleep(100);
  hints.wake();
  await ended;
  expect(vi.getTimerCount()).toBe(0);
});

test('nobody sleeps: hints are kept, and nothing else happens', () => {
  const hints = new Hints();
  hints.add('sale', [1]);
  hints.notify();
  hints.wake();
  hints.close();
  expect([...hints.takeAll().keys()]).toEqual(['sale']);
});

test('all hints of a sale are taken together, once', () => {
  const hints = new Hints();
  expect(hints.isEmpty).toBe(true);
  hints.add('one', [2]);
  hints.add('one', [0, 2]);
  hints.add('two');
  expect(hints.isEmpty).toBe(false);
  expect([...hints.takeAll()].map(([id, segments]) => [id, [...segments]])).toEqual([
    ['one', [2, 0]],
    ['two', []],
  ]);
  expect(hints.isEmpty).toBe(true);
});

test('closing ends the sleep, and the next one does not begin', async () => {
  const hints = new Hints();
  const sleep = hints.sleep(FOR_EVER_MS, 'none');
  hints.close();
  await sleep;
  await hints.sleep(FOR_EVER_MS);
});

test.each([0, -1])('a sleep of %i ms returns at once, without a timer', async (ms) => {
  freezeTime();
  onTestFinished(() => void vi.useRealTimers());
  await new Hints().sleep(ms);
});
