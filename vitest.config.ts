import { defineConfig } from 'vitest/config';

/** Where what else runs on the machine would be measured too, or would be starved: these files run one at a time, last. */
const ALONE = [
  'bench/bench',
  'bench/bench-catalogue',
  'rebuild/resize',
  'node/resize-node',
  'verify/verify-busy',
].map((name) => `test/integration/${name}.test.ts`);

/** What needs servers gets those that the run starts for itself (test/support/global-setup.ts). */
const withServers = {
  globalSetup: ['test/support/global-setup.ts'],
  // Longer than a command line may take (test/support/cli.ts).
  testTimeout: 200_000,
  hookTimeout: 200_000,
};

/** Unit tests need nothing and come first. */
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 10_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...withServers,
          name: 'servers',
          include: ['test/{contract,property,integration,catalogue}/**/*.test.ts'],
          exclude: ALONE,
          // They wait for servers and for each other's deadlines more than they compute.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...withServers,
          name: 'alone',
          // Longer than a bench may take.
          testTimeout: 320_000,
          hookTimeout: 320_000,
          include: ALONE,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
