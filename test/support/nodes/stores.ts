/**
 * Runs a suite on every kind of node: with `onEachStore`, on Redis with Postgres and, before a release, also on the embedded
 * default. Each has one node for all tests of the suite. The node must stop normally and quickly: a request that it wrongly counts as under way
 * would delay its end.
 */
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { SaleStatus } from '../../../src/operations/sale-operations.ts';
import { BY } from '../author.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../fixtures.ts';
import { inTier } from '../tier.ts';
import { embeddedData } from './embedded-data.ts';
import { startTestNode, type TestNode, type TestNodeOptions } from './node.ts';

/** A node with nothing under way must end well before the grace is over. */
const END_LIMIT_MS = 30_000;
const GRACE = { SHUTDOWN_GRACE_MS: '60000' };

interface Store {
  readonly name: 'embedded' | 'redis and postgres';
  options(): Promise<TestNodeOptions>;
}

const stores: readonly Store[] = [
  { name: 'embedded', options: embedded },
  { name: 'redis and postgres', options: redisAndPostgres },
];

/** A data folder of its own. */
export async function embedded(): Promise<TestNodeOptions> {
  const dataFrom = await embeddedData();
  return dataFrom === undefined ? {} : { dataFrom };
}

/** A new database and key prefix on the run's servers. */
export async function redisAndPostgres(): Promise<
  Required<Pick<TestNodeOptions, 'redisUrl' | 'databaseUrl' | 'keyPrefix'>>
> {
  return { redisUrl: redisUrl(), databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
}

/** For tests that no store makes a difference to. A node on PGlite takes twice the processor time of one on Redis and Postgres. */
export function anyStore(): Promise<TestNodeOptions> {
  return inTier<() => Promise<TestNodeOptions>>({ test: redisAndPostgres, release: embedded })();
}

export function onEachStore(tests: (stage: Stage) => void, env: Record<string, string> = {}): void {
  const chosen = inTier({
    test: stores.filter(({ name }) => name === 'redis and postgres'),
    release: stores,
  });
  onStores(chosen, tests, env);
}

export function onOneStore(
  name: Store['name'],
  tests: (stage: Stage) => void,
  env: Record<string, string> = {},
): void {
  onStores(
    stores.filter((store) => store.name === name),
    tests,
    env,
  );
}

function onStores(
  chosen: readonly Store[],
  tests: (stage: Stage) => void,
  env: Record<string, string>,
): void {
  describe.each(chosen)('$name', (store) => {
    const stage = new Stage(store.name === 'embedded');
    beforeAll(async () => {
      const options = await store.options();
      const workers = stage.isEmbedded ? '1' : '2';
      const node = await startTestNode({ ...options, env: { ...GRACE, WORKERS: workers, ...env } });
      stage.begin(node, options.databaseUrl);
    });
    afterAll(() => stage.end());
    tests(stage);
  });
}

let salesMade = 0;

export class Stage {
  /** Whether the order log dies with the process: then nothing is ever answered `accepted`. */
  readonly isEmbedded: boolean;
  /** Missing: PGlite. */
  databaseUrl: string | undefined;
  #node: TestNode | undefined;

  constructor(isEmbedded: boolean) {
    this.isEmbedded = isEmbedded;
  }

  get node(): TestNode {
    if (!this.#node) throw new Error('no suite is running');
    return this.#node;
  }

  /** Creates a sale on the node. @returns its id */
  async sale(spec: Record<string, unknown> = {}): Promise<string> {
    return makeSale(this.node, spec);
  }

  begin(node: TestNode, databaseUrl: string | undefined): void {
    this.databaseUrl = databaseUrl;
    this.#node = node;
  }

  async end(): Promise<void> {
    await using node = this.#node;
    const began = Date.now();
    await node?.stop();
    expect(Date.now() - began, 'milliseconds from SIGTERM to the end').toBeLessThan(END_LIMIT_MS);
  }
}

/** Creates a sale of ten units in two segments, unless the spec says otherwise. @returns its id */
export async function makeSale(node: TestNode, spec: Record<string, unknown> = {}): Promise<string> {
  const { id } = await node.ops.create(
    { id: `sale-${++salesMade}`, stock: 10, segments: 2, ...spec },
    BY.actor,
  );
  return id;
}

/**
 * Expects that the books balance and exactly `sold` units are sold. The answer to the end of an order waits half a second at most
 * for the return of its units, so they may come back a moment later.
 */
export async function expectSold(node: TestNode, saleId: string, sold: number): Promise<SaleStatus> {
  const { stock, remaining, committedUnits } = await node.ops.show(saleId);
  expect(committedUnits).toBe(sold);
  expect(remaining).toBeLessThanOrEqual(stock - sold);
  const status = await until(
    async () => {
      const shown = await node.ops.show(saleId);
      return shown.remaining === stock - sold && shown;
    },
    { what: `${stock - sold} units of ${saleId} are left` },
  );
  await expectBalanced(node, saleId);
  return status as SaleStatus;
}

export async function expectBalanced(node: TestNode, saleId: string): Promise<void> {
  expect(await node.ops.verify(saleId)).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
}
