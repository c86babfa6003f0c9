/**
 * Two forms of a test. If its number of runs, seeds, buyers or stores can vary, it has few in `npm test` and `npm run test:ci`, and
 * many in `npm run test:release` (test/tiers.ts).
 */
export const isRelease = process.env.TEST_TIER === 'release';

export function inTier<T>({ test, release }: { test: T; release: T }): T {
  return isRelease ? release : test;
}
