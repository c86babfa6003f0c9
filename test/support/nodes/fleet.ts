/** A shop whose nodes have two versions: a release to upgrade from, and this one. All use the same stores. */
import { expect } from 'vitest';
import { emptyDatabase, freshPrefix, redisAdminUrl, until } from '../fixtures.ts';
import { type Answer, startTestNode, type TestNode } from './node.ts';
import { buildRelease, OLDER_RELEASE, type Release, whyNotBuildable } from './releases.ts';

/** Why there can be no such shop here; `''` if there can. */
export const NO_RELEASE = whyNotBuildable(OLDER_RELEASE) ?? '';
/** For the name of a test, so that a run shows why it was skipped. */
export const unlessPossible = NO_RELEASE && ` (skipped: ${NO_RELEASE})`;

/** What nodes of both versions accept. */
const ENV = { WORKERS: '1', REQUEST_DEADLINE_MS: '20000', TAKE_TIMEOUT_MS: '5000' };

export class Fleet {
  readonly #stores: { redisUrl: string; databaseUrl: string; keyPrefix: string };
  readonly #program: string;

  private constructor(stores: Fleet['stores'], program: string) {
    this.#stores = stores;
    this.#program = program;
  }

  /** With an empty database, and without rights: the older release has no roles yet. */
  static async open(release: Release = OLDER_RELEASE): Promise<Fleet> {
    const stores = {
      redisUrl: redisAdminUrl(),
      databaseUrl: await emptyDatabase(),
      keyPrefix: freshPrefix(),
    };
    return new Fleet(stores, await buildRelease(release));
  }

  get stores() {
    return this.#stores;
  }

  /** A node of the release to upgrade from. */
  startOld(env: Record<string, string> = {}): Promise<TestNode> {
    return startTestNode({ ...this.#stores, program: this.#program, env: { ...ENV, ...env } });
  }

  /** A node of this version. */
  startNew(env: Record<string, string> = {}): Promise<TestNode> {
    return startTestNode({ ...this.#stores, env: { ...ENV, ...env } });
  }
}

/** Creates a sale in a way that both versions understand. */
export async function createSale(node: TestNode, sale: object): Promise<void> {
  const answer = await node.opsRequest('/v1/sales', { method: 'POST', body: JSON.stringify(sale) });
  expect(answer, JSON.stringify(answer.body)).toMatchObject({ status: 201 });
}

export function changeSale(node: TestNode, saleId: string, change: object): Promise<Answer> {
  return node.opsRequest(`/v1/sales/${saleId}`, { method: 'PATCH', body: JSON.stringify(change) });
}

/** Each node sells to buyers of its own, and every order is committed. */
export async function sellAtEach(
  nodes: Record<string, TestNode>,
  saleId: string,
  { buyers, each }: { buyers: string; each: number },
): Promise<void> {
  for (const [name, node] of Object.entries(nodes)) {
    const crowd = Array.from({ length: each }, (_, n) => `${buyers}-${name}-${n}`);
    const answers = await Promise.all(crowd.map((buyer) => node.buy(saleId, buyer)));
    expect(
      answers.map(({ code }) => code),
      `${saleId}, sold by the ${name} node`,
    ).toEqual(crowd.map(() => 'committed'));
  }
}

/** Sells all that is left. */
export async function sellOut(node: TestNode, saleId: string): Promise<void> {
  const codes: string[] = [];
  while (codes.at(-1) !== 'sold_out') codes.push((await node.buy(saleId, `last-${codes.length}`)).code);
  expect(codes.slice(0, -1)).toEqual(codes.slice(0, -1).map(() => 'committed'));
}

/** A node of this version has taken over, and verify finds every unit. */
export async function expectSound(node: TestNode, saleId: string, soldUnits: number): Promise<void> {
  await until(async () => (await node.ops.verify(saleId)).ok, {
    what: `${saleId} is sound`,
    timeoutMs: 30_000,
  });
  expect(await node.ops.verify(saleId)).toMatchObject({ rejectedOrders: 0, lostOrders: 0 });
  expect(await node.ops.show(saleId)).toMatchObject({ committedUnits: soldUnits });
}
