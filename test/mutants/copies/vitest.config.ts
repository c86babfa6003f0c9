import { defineConfig } from 'vitest/config';

/**
 * Runs the tests of one mutant, in a copy of the repository (trees.ts), on the stores that the harness keeps running. A test that
 * hangs is ended with its whole process at the time limit (suites.ts).
 */
export default defineConfig({
  cacheDir: '.cache',
  test: {
    include: ['test/**/*.test.ts'],
    ...(process.env.MUTANTS_STORES === undefined
      ? {}
      : { globalSetup: ['test/mutants/copies/global-setup.ts'] }),
    // Verdicts are kept, and a later run would take one of the release tier for its own.
    env: { TEST_TIER: 'test' },
    setupFiles: ['test/mutants/copies/record-reach.ts'],
    testTimeout: 200_000,
    hookTimeout: 200_000,
    fileParallelism: false,
    bail: 1,
    reporters: ['json'],
  },
});
