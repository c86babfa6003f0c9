import { expect, test } from 'vitest';
import { countAnswer, Summary, type Tally, windowAt } from '../../../bench/support/crowd/tally.ts';

test('a span has the answers of its windows, and percentiles within the width of a bucket', () => {
  const tally: Tally = {};
  for (let ms = 0; ms < 3_000; ms++) {
    windowAt(tally, ms).asked++;
    countAnswer(windowAt(tally, ms), ms < 2_000 ? 'accepted' : 'busy', ms < 1_000 ? 1 : (ms % 1_000) + 1);
  }
  const second = new Summary(tally, { fromMs: 1_000, toMs: 2_000 });
  expect(second.askedPerSecond).toBe(1_000);
  expect(second.codes).toEqual(['accepted']);
  expect(second.perSecond('accepted')).toBe(1_000);
  expect(second.percentileMs('accepted', 0.5)! / 500).toBeCloseTo(1.025, 1);
  expect(second.percentileMs('accepted', 0.99)! / 990).toBeCloseTo(1.025, 1);
  expect(second.percentileMs('busy', 0.5)).toBeUndefined();
  const half = new Summary(tally, { fromMs: 1_500, toMs: 2_500 });
  expect([half.answers('accepted'), half.answers('busy')]).toEqual([500, 500]);
  expect(new Summary(tally, { fromMs: 0, toMs: 500 }).percentileMs('accepted', 0.99)).toBeCloseTo(1, 5);
});
