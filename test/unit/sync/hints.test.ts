import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Hints, type WakingHints } from '../../../src/sync/hints.ts';
import { freezeTime } from '../../support/engine/frozen-time.ts';

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
