/**
 * The two tiers of tests (docs/contributing/testing.md). Most tests are in `npm test` alone. Tests whose number of runs, seeds,
 * buyers or stores can vary are in both: with few here, with many in `npm run test:release`.
 */
export const isRelease = process.env.TEST_TIER === 'release';

export function inTier<T>({ test, release }: { test: T; release: T }): T {
  return isRelease ? release : test;
}
