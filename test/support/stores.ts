/**
 * One suite, every way to run a node: what is written with `onEachStore` runs on the embedded default and on Redis with
 * Postgres. Each has one node for all tests of the suite, which must end in good order and without delay: a request that
 * the node still counts as under way when it is over would hold it up.
 */
import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject } from 'vitest';
import type { SaleStatus } from '../../src/operations/sale-operations.ts';
import { BY } from './author.ts';
import { freshDatabase, freshPrefix, redisUrl } from './fixtures.ts';
import { startTestNode, type TestNode, type TestNodeOptions } from './node.ts';

/** With nothing under way; whoever is held up is held up for the whole grace. */
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

/** Data as a new node leaves it, made by the first who asks: to create it takes longer than all else in a start. */
async function embedded(): Promise<TestNodeOptions> {
  const scratch = inject('scratch');
  if (scratch === undefined) return {};
  const dataFrom = join(scratch, 'embedded');
  if (!existsSync(dataFrom)) {
    await using node = await startTestNode();
    await node.stop();
    // Another process may have been faster.
    await rename(node.dataDir, dataFrom).catch(() => {});
  }
  return { dataFrom };
}

/** A new database and key prefix on the run's servers. */
export async function redisAndPostgres(): Promise<
  Required<Pick<TestNodeOptions, 'redisUrl' | 'databaseUrl' | 'keyPrefix'>>
> {
  return { redisUrl: redisUrl(), databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
}

export function onEachStore(tests: (stage: Stage) => void, env: Record<string, string> = {}): void {
  describe.each(stores)('$name', (store) => {
    const stage = new Stage(store.name === 'embedded');
    beforeAll(async () =>
      stage.begin(await startTestNode({ ...(await store.options()), env: { ...GRACE, ...env } })),
    );
    afterAll(() => stage.end());
    tests(stage);
  });
}

let salesMade = 0;

export class Stage {
  /** The order log dies with the process: nothing is ever answered `accepted`. */
  readonly isEmbedded: boolean;
  #node: TestNode | undefined;

  constructor(isEmbedded: boolean) {
    this.isEmbedded = isEmbedded;
  }

  get node(): TestNode {
    if (!this.#node) throw new Error('no suite is running');
    return this.#node;
  }

  /** A new sale on the node; its id. */
  async sale(spec: Record<string, unknown> = {}): Promise<string> {
    return makeSale(this.node, spec);
  }

  begin(node: TestNode): void {
    this.#node = node;
  }

  async end(): Promise<void> {
    await using node = this.#node;
    const began = Date.now();
    await node?.stop();
    expect(Date.now() - began, 'milliseconds from SIGTERM to the end').toBeLessThan(END_LIMIT_MS);
  }
}

/** A new sale of ten units in two segments, unless the spec says otherwise; its id. */
export async function makeSale(node: TestNode, spec: Record<string, unknown> = {}): Promise<string> {
  const { id } = await node.ops.create(
    { id: `sale-${++salesMade}`, stock: 10, segments: 2, ...spec },
    BY.actor,
  );
  return id;
}

/** The books balance, and `sold` units are gone: no more, no fewer. */
export async function expectSold(node: TestNode, saleId: string, sold: number): Promise<SaleStatus> {
  const status = await node.ops.show(saleId);
  expect(status).toMatchObject({ remaining: status.stock - sold, committedUnits: sold });
  await expectBalanced(node, saleId);
  return status;
}

export async function expectBalanced(node: TestNode, saleId: string): Promise<void> {
  expect(await node.ops.verify(saleId)).toMatchObject({ ok: true, findings: [], rejectedOrders: 0 });
}
