import { readdirSync, readFileSync, statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { GROWING, IN_CI, LONGEST, OVER_NODE_HTTP, WITH_FROZEN_TIME } from './test/tiers.ts';

/**
 * Three tiers: `npm test` has the projects without a tier in their names, `npm run test:ci` those named `…-ci`, and
 * `npm run test:release` those named `release…`. docs/contributing/testing.md says which tests are where, and why.
 */

/**
 * A run creates 600 databases. On a disk each costs 0.2 s of processor time, in memory 0.02 s. A run needs about 2 GiB; the rest
 * is for the machine. `TMPDIR=/tmp npm test` keeps all files on the disk.
 */
const MEMORY_FILES = '/dev/shm';
const MEMORY_FILES_BYTES = 8 * 1024 ** 3;
if (process.env.TMPDIR === undefined && freeBytes(MEMORY_FILES) >= MEMORY_FILES_BYTES)
  process.env.TMPDIR = MEMORY_FILES;

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}

/** What needs servers gets those that the run starts for itself (test/support/global-setup.ts). */
const withServers = {
  globalSetup: ['test/support/global-setup.ts'],
  setupFiles: ['test/support/after-each-file.ts'],
  // Longer than a command line may take (test/support/cli/cli.ts).
  testTimeout: 200_000,
  hookTimeout: 200_000,
};

/** These replace a module for their whole file, so each needs a process of its own. */
const WITH_MOCKS = readdirSync('test/unit', { recursive: true, encoding: 'utf8' })
  .map((name) => `test/unit/${name}`)
  .filter((file) => file.endsWith('.test.ts') && readFileSync(file, 'utf8').includes('vi.mock('));

/**
 * All files of a tier run in one group: while some of them wait for servers and deadlines, others compute. Of those of
 * `npm test` few wait, and each process loads the program: with four for each core, a run took an eighth more processor time. One more
 * than two, because the test of the simulation only waits for its processes.
 */
const atTheDesk = { maxWorkers: 2 * availableParallelism() + 1, sequence: { groupOrder: 0 } };
const inCi = { maxWorkers: 4 * availableParallelism(), sequence: { groupOrder: 1 } };

/**
 * In this order: the short files come last, so that no core is idle at the end. Files of one project come one after another, because
 * a process ends when the next file is of another project.
 */
const PROJECTS = ['servers', 'servers-frozen-time', 'unit-mocks', 'unit', 'servers-ci', 'http-node-ci'];

/**
 * Of each project, `LONGEST` comes first. The others follow in the order of vitest: by their last duration if it is known, otherwise
 * by their size.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const place = ({ moduleId, project }: TestSpecification) => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}`));
      return [PROJECTS.indexOf(project.name), at < 0 ? LONGEST.length : at] as const;
    };
    return sorted
      .map((file) => ({ file, place: place(file) }))
      .sort((one, other) => one.place[0] - other.place[0] || one.place[1] - other.place[1])
      .map(({ file }) => file);
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        // Needs nothing.
        test: {
          ...atTheDesk,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: [...WITH_MOCKS, ...IN_CI],
          isolate: false,
          testTimeout: 30_000,
        },
      },
      {
        test: { ...atTheDesk, name: 'unit-mocks', include: WITH_MOCKS },
      },
      {
        test: {
          ...withServers,
          ...atTheDesk,
          name: 'servers',
          include: ['test/{contract,property,integration,catalogue}/**/*.test.ts'],
          exclude: [...WITH_FROZEN_TIME, ...IN_CI],
          isolate: false,
        },
      },
      {
        test: {
          ...withServers,
          ...atTheDesk,
          name: 'servers-frozen-time',
          include: WITH_FROZEN_TIME,
        },
      },
      {
        test: { ...withServers, ...inCi, name: 'servers-ci', include: IN_CI, isolate: false },
      },
      {
        // The other server of HTTP, on Nodes that have both.
        test: {
          ...withServers,
          ...inCi,
          name: 'http-node-ci',
          include: OVER_NODE_HTTP,
          env: { HTTP_SERVER: 'node' },
          isolate: false,
        },
      },
      {
        // One file at a time: what else runs on the machine would be measured too, or starved.
        test: {
          ...withServers,
          name: 'release',
          include: ['test/release/**/*.test.ts', ...GROWING],
          env: { TEST_TIER: 'release' },
          // Longer than a bench may take.
          testTimeout: 320_000,
          hookTimeout: 320_000,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...withServers,
          name: 'release-http-node',
          include: ['test/integration/http/**/*.test.ts'],
          env: { HTTP_SERVER: 'node', TEST_TIER: 'release' },
          maxWorkers: 2,
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
