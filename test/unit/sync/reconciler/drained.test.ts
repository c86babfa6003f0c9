import { expect, test } from 'vitest';
import { isToBeDrained } from '../../../../src/sync/reconciler/drained.ts';

test.each([
  ['short logs are not awaited', 2_000, 0, false],
  ['longer ones are', 2_001, 0, true],
  ['for twenty seconds', 2_001, 19.9, true],
  ['and not longer, because buyers may take more than sync can apply', 2_001, 20, false],
])('%s', (_, backlog, ageS, isAwaited) => {
  expect(isToBeDrained({ backlog }, ageS)).toBe(isAwaited);
});
