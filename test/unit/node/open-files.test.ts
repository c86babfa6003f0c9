import { expect, test } from 'vitest';
import { ANSWERED_ABOVE_SHARE } from '../../../src/http/server/connections.ts';
import { connectionsWithin, limitIn, openFilesLimit } from '../../../src/node/process/open-files.ts';

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units
Max processes             96000                96000                processes
Max open files            1024                 20000                files
`;

test('the limit is the soft one, or infinite if the system reports none', () => {
  expect(limitIn(LIMITS)).toBe(1_024);
  expect(limitIn(LIMITS.replace('1024 ', 'unlimited'))).toBe(Number.POSITIVE_INFINITY);
  expect(limitIn('')).toBe(Number.POSITIVE_INFINITY);
  expect(openFilesLimit()).toBeGreaterThan(0);
});

test('the allowed connections, and those that are refused, leave enough files for everything else', () => {
  for (const limit of [1_024, 20_000, 1_048_576]) {
    const most = connectionsWithin(limit);
    expect(most + Math.ceil(most * ANSWERED_ABOVE_SHARE)).toBeLessThanOrEqual(limit - 255);
    expect(most).toBeGreaterThan(limit / 2);
  }
  expect(connectionsWithin(100)).toBe(1);
  expect(connectionsWithin(Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY);
});
