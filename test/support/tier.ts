/**
 * The two tiers of tests (CONTRIBUTING.md). Most tests are in `npm test` alone. Those that grow with their runs, seeds or
 * buyers are in both: few here, many in `npm run test:release`.
 */
const isRelease = process.env.TEST_TIER === 'release';

export function inTier<T>({ test, release }: { test: T; release: T }): T {
  return isRelease ? release : test;
}
