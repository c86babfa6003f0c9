import { readdirSync, readFileSync, statfsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Two tiers: `npm test` runs all projects but those named `release…`, `npm run test:release` runs those.
 * docs/contributing/testing.md says which tests are where, and why.
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

/** In both tiers, with more runs, seeds, buyers or stores before a release (test/support/tier.ts). */
const GROWING = [
  'test/property/**/*.test.ts',
  ...[
    'cli/cli-node',
    'cli/doc-sessions',
    'cli/rehearse',
    'client/client',
    'client/payment',
    'client/shop-page',
    'client/shop-page-queue',
    'embed/places',
    'engine/cluster',
    'events/event-operations',
    'http/admission',
    'http/buyer-access',
    'http/console-page',
    'http/cors',
    'http/description',
    'http/fuzz',
    'http/http-api',
    'http/http-bad-input',
    'http/http-deletion',
    'http/http-lists',
    'http/http-orders',
    'http/http-recover',
    'http/overload',
    'http/pipelines',
    'http/queue',
    'http/queue-abuse',
    'http/tls',
    'node/faults',
    'node/listeners',
    'node/node-faults',
    'node/ops-faults',
    'node/other-stores',
    'node/probe-port',
    'node/process-metrics',
    'node/resize-node',
    'node/scenarios',
    'node/traces',
    'rebuild/resize',
    'sync/apply',
    'sync/sharing',
    'verify/verify',
  ].map((name) => `test/integration/${name}.test.ts`),
];

/** Run a second time over `node:http`: what is sent byte by byte. The rest of HTTP does before a release. */
const OVER_NODE_HTTP = ['connection-bound', 'http-bad-input', 'pipelines'].map(
  (name) => `test/integration/http/${name}.test.ts`,
);

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

/** These replace the clock, which what other files have left in their process would feel. */
const WITH_FROZEN_TIME = [
  'integration/engine/locked-takes',
  'integration/locks/lock',
  'integration/locks/lock-faults',
  'integration/postgres/worker-leases',
  'property/crowd',
  'property/predicted',
].map((name) => `test/${name}.test.ts`);

/**
 * All files of `npm test` run in one group: while some of them wait for servers and deadlines, others compute. With three for
 * each core, the cores were idle for a sixth of the time. Five took no less time than four.
 */
const inOneGroup = { maxWorkers: 4 * availableParallelism(), sequence: { groupOrder: 0 } };

/**
 * In this order: the short files come last, so that no core is idle at the end. Files of one project come one after another, because
 * a process ends when the next file is of another project.
 */
const PROJECTS = ['servers', 'servers-frozen-time', 'http-node', 'unit-mocks', 'unit'];

/** Those that take longest, in this order. If one of them began last, the other cores would be idle meanwhile. */
const LONGEST = [
  ...['property/simulation', 'integration/http/http-api', 'integration/cli/cli-node'],
  ...['integration/node/other-stores', 'integration/http/admission', 'integration/cli/cli-shutdown'],
  ...['integration/node/node-faults', 'integration/http/http-orders', 'integration/http/http-bad-input'],
  ...['unit/queue/buyers/old-picture', 'unit/http/live-places'],
].map((name) => `/test/${name}.test.ts`);

/** The others follow in the order of vitest: by their last duration if it is known, otherwise by their size. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const place = ({ moduleId, project }: TestSpecification) => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(name));
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
          ...inOneGroup,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: WITH_MOCKS,
          isolate: false,
          testTimeout: 30_000,
        },
      },
      {
        test: { ...inOneGroup, name: 'unit-mocks', include: WITH_MOCKS },
      },
      {
        test: {
          ...withServers,
          ...inOneGroup,
          name: 'servers',
          include: ['test/{contract,property,integration,catalogue}/**/*.test.ts'],
          exclude: WITH_FROZEN_TIME,
          isolate: false,
        },
      },
      {
        test: {
          ...withServers,
          ...inOneGroup,
          name: 'servers-frozen-time',
          include: WITH_FROZEN_TIME,
        },
      },
      {
        // The other server of HTTP, on Nodes that have both.
        test: {
          ...withServers,
          ...inOneGroup,
          name: 'http-node',
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
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...withServers,
          name: 'release-http-node',
          include: ['test/integration/http/**/*.test.ts'],
          env: { HTTP_SERVER: 'node', TEST_TIER: 'release' },
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
