/** What tests of refused requests share. */
import { afterAll, beforeAll, expect } from 'vitest';
import { httpServerKind } from '../http/http-server.ts';
import { inTier } from '../tier.ts';
import type { Answer } from './node.ts';
import { expectSold, onEachStore, onOneStore, type Stage } from './stores.ts';

/** Units that one buyer may have in an untouched sale. */
export const LIMIT = 4;

/** Bad input is refused before a store is asked. So in `npm test`, each HTTP server is tested on one store. */
export const onStores = inTier<typeof onEachStore>({
  test: (...tests) =>
    onOneStore(({ uws: 'redis and postgres', node: 'embedded' } as const)[httpServerKind], ...tests),
  release: onEachStore,
});

export function expectProblem(answer: Answer | undefined, status: number, code: string): void {
  expect(answer).toMatchObject({ status, code, body: { status, code, title: expect.any(String) } });
  expect(answer?.headers['content-type']).toBe('application/problem+json');
  // RFC 9110, 15.5.2: each 401 has a challenge.
  if (status === 401)
    expect(answer?.headers['www-authenticate']).toMatch(/^(Bearer|X-Buyer-Id) realm="stockade"/);
}

/** A sale for a group of tests, none of which may sell any of it. */
export function untouchedSale(stage: Stage): { readonly id: string } {
  const sale = { id: '' };
  beforeAll(async () => {
    sale.id = await stage.sale({ perBuyerLimit: LIMIT });
  });
  afterAll(() => expectSold(stage.node, sale.id, 0));
  return sale;
}
