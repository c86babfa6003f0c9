/**
 * Which test files belong to which tier. `npm test` has all files but those of `IN_CI`, in a small form if they are `GROWING`.
 * docs/contributing/testing.md says what each tier is for.
 */

/** Names of test files below this folder, by the folder that they are in. */
function filesOf(folders: Readonly<Record<string, readonly string[]>>): string[] {
  return Object.entries(folders).flatMap(([folder, names]) =>
    names.map((name) => `test/${folder}/${name}.test.ts`),
  );
}

/**
 * In `npm run test:ci`, not in `npm test`: each takes several seconds of processor time, and another file has a smaller test of
 * the same kind.
 */
export const IN_CI = filesOf({
  catalogue: [
    'database',
    'database-locks',
    'lost-locks',
    'order-ids',
    'redis-locks',
    'redis-stock',
    'segments',
  ],
  'integration/cli': [
    'bundle',
    'cli',
    'cli-node',
    'cli-shutdown',
    'cli-verify',
    'closed-stdout',
    'completion',
    'confirm',
    'delete-interrupted',
    'export-terminal',
    'rehearse',
    'top',
  ],
  'integration/client': ['payment', 'shop-page', 'shop-page-queue'],
  'integration/deletion': ['deletion', 'old-copies'],
  'integration/embed': ['alone', 'killed-queue', 'places'],
  'integration/engine': ['cluster', 'cluster-changes', 'key-space'],
  'integration/events': ['event-operations', 'event-stream', 'webhook'],
  'integration/harness': ['given-postgres', 'given-redis', 'support-servers'],
  'integration/http': [
    'admission',
    'buyer-access',
    'console-page',
    'description',
    'export',
    'gateways',
    'http-deletion',
    'http-lists',
    'http-orders',
    'http-queue',
    'http-recover',
    'late-changes',
    'local-site',
    'ops-access',
    'overload',
    'pipelines',
    'queue',
    'queue-abuse',
    'queue-settings',
  ],
  'integration/node': [
    'cluster-failover',
    'eviction',
    'faults',
    'foreign-messages',
    'last-release',
    'listeners',
    'locked-worker',
    'lost-replies',
    'node-faults',
    'ops-faults',
    'other-stores',
    'ownership',
    'probe-port',
    'process-metrics',
    'resize-node',
    'scenarios',
    'shared-settings',
    'traces',
    'two-versions',
  ],
  'integration/orders': ['expiry', 'late-changes', 'late-payment', 'order-lists'],
  'integration/queue': ['draw-python', 'head/failover', 'operators'],
  'integration/rebuild': [
    'archive',
    'erase',
    'lost-data',
    'lost-orders',
    'lost-records',
    'lost-units',
    'recover',
    'resize',
    'surplus',
  ],
  'integration/sales': ['late-sale-changes'],
  'integration/sync': ['guard', 'sharing'],
  'integration/verify': ['verify', 'verify-causes', 'verify-records'],
  'unit/harness': ['mutant-finders'],
});

/** In `npm run test:release` once more, with more runs, seeds, buyers or stores (test/support/tier.ts). */
export const GROWING = [
  'test/property/**/*.test.ts',
  ...filesOf({
    'integration/cli': ['cli-node', 'doc-sessions', 'rehearse'],
    'integration/client': ['client', 'payment', 'shop-page', 'shop-page-queue'],
    'integration/embed': ['places'],
    'integration/engine': ['cluster'],
    'integration/events': ['event-operations'],
    'integration/http': [
      'admission',
      'buyer-access',
      'buyer-tokens',
      'console-page',
      'cors',
      'description',
      'fuzz',
      'http-api',
      'http-bad-input',
      'http-deletion',
      'http-lists',
      'http-orders',
      'http-recover',
      'ops-bad-input',
      'overload',
      'pipelines',
      'queue',
      'queue-abuse',
      'tls',
    ],
    'integration/node': [
      'faults',
      'listeners',
      'node-faults',
      'ops-faults',
      'other-stores',
      'probe-port',
      'process-metrics',
      'resize-node',
      'scenarios',
      'traces',
    ],
    'integration/rebuild': ['resize'],
    'integration/sync': ['apply', 'sharing'],
    'integration/verify': ['verify'],
  }),
];

/** Run a second time over `node:http`, in `npm run test:ci`: what is sent byte by byte. The rest of HTTP does before a release. */
export const OVER_NODE_HTTP = filesOf({
  'integration/http': ['buyer-tokens', 'connection-bound', 'http-bad-input', 'ops-bad-input', 'pipelines'],
});

/** These replace the clock, which what other files have left in their process would feel. */
export const WITH_FROZEN_TIME = filesOf({
  'integration/engine': ['locked-takes'],
  'integration/locks': ['lock', 'lock-faults'],
  'integration/postgres': ['worker-leases'],
  property: ['crowd', 'predicted'],
});

/** Those that take longest, in this order. If one of them began last, the other cores would be idle meanwhile. */
export const LONGEST = [
  ...filesOf({ property: ['simulation'], 'integration/http': ['http-api'], 'integration/cli': ['cli-node'] }),
  ...filesOf({ 'integration/node': ['other-stores'], 'integration/http': ['admission'] }),
  ...filesOf({ 'integration/cli': ['cli-shutdown'], 'integration/node': ['node-faults'] }),
  ...filesOf({ 'integration/http': ['http-orders', 'http-bad-input'] }),
  ...filesOf({ 'unit/queue/buyers': ['old-picture'], 'unit/http': ['live-places'] }),
];
