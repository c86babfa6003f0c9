import { defineConfig } from 'vitest/config';

/** Unit tests need nothing; everything else gets servers that the run starts for itself (test/support/global-setup.ts). */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 10_000,
        },
      },
      {
        test: {
          name: 'servers',
          include: ['test/{contract,property,integration,catalogue}/**/*.test.ts'],
          globalSetup: ['test/support/global-setup.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
