/**
 * Redis goes back to an earlier state in the middle of a rebuild: buyers' records that were written are gone, and what follows
 * is written as if they were there. The sale is never published without them.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Backend } from '../../../src/engine/contract.ts';
import { StaleGeneration } from '../../../src/engine/errors.ts';
import { writeDraft } from '../../../src/rebuild/draft.ts';
import { type RebuildReport, rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { makeChange } from '../../../src/sales/sale-changes.ts';
import { readKnownSale } from '../../../src/sales/sale-rows.ts';
import { BY } from '../../support/author.ts';
import { intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { sellInPostgres } from '../../support/shop/sell-in-postgres.ts';
import { Shop } from '../../support/shop/shop.ts';

/** Two pages of records. */
const HOLDERS = 15_000;
const MAX_ATTEMPTS = 3;

let shop: Shop;
let keys: RedisKeys;

beforeEach(async () => {
  shop = await Shop.open();
  keys = new RedisKeys(shop);
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

/** A sale of two segments in which these have bought, as Postgres knows it. */
async function sold(holders: number): Promise<string> {
  const { id } = await shop.sell({ stock: holders + 10, segments: 2 });
  await sellInPostgres(shop.db, id, holders);
  return id;
}

type Moment = readonly [call: string, nth: number];

/** At the second moment segment 1, alone, has the state again that it had at the first one. */
function goingBack(saleId: string, to: Moment, at: Moment): { backend: Backend; went: () => number } {
  const names = Object.values(keys.of(saleId, 1));
  const seen = new Map<string, number>();
  let copy: Awaited<ReturnType<RedisKeys['dump']>> | undefined;
  let went = 0;
  const backend = intercept(shop.backend, async (call, [ref]) => {
    const { segment = 1 } = ref as { segment?: number };
    if (segment !== 1) return;
    const nth = (seen.get(call) ?? 0) + 1;
    seen.set(call, nth);
    if (call === to[0] && nth === to[1]) copy = await keys.dump(names);
    if (call !== at[0] || nth !== at[1]) return;
    await keys.restore(names, copy!);
    went++;
  });
  return { backend, went: () => went };
}

/** Rebuilds as a sync does: again, if a rebuild breaks off. @returns how often */
async function rebuild(attempt: (nth: number) => Promise<RebuildReport | undefined>): Promise<number> {
  for (let attempts = 1; ; attempts++) {
    try {
      await attempt(attempts);
      return attempts;
    } catch (error) {
      if (!(error instanceof StaleGeneration) || attempts === MAX_ATTEMPTS) throw error;
    }
  }
}

async function expectAllRecords(id: string, segments: number, holders: number): Promise<void> {
  let records = 0;
  for (let n = 0; n < segments; n++) records += await keys.redis.hlen(keys.of(id, n).buyers);
  expect(records).toBe(holders);
  expect((await shop.service.verify(id)).findings).toEqual([]);
}

test.each<{ what: string; holders: number; to: Moment; at: Moment }>([
  { what: 'all records', holders: 20, to: ['sales.loadHoldings', 1], at: ['sales.publish', 1] },
  { what: 'no record', holders: 0, to: ['sales.loadHoldings', 1], at: ['sales.publish', 1] },
  { what: 'the first page', holders: HOLDERS, to: ['sales.loadHoldings', 1], at: ['sales.loadHoldings', 2] },
  { what: 'the last page', holders: HOLDERS, to: ['sales.loadHoldings', 2], at: ['sales.publish', 1] },
])('a segment that loses $what before its publication gets them again', async ({ holders, to, at }) => {
  const id = await sold(holders);
  const { backend, went } = goingBack(id, to, at);
  expect(await rebuild(() => rebuildSale(shop.db, backend, id))).toBe(2);
  expect(went()).toBe(1);
  await expectAllRecords(id, 2, holders);
});

test.each<{ what: string; to: Moment; at: Moment }>([
  { what: 'its first page', to: ['sales.draftHoldings', 1], at: ['sales.draftHoldings', 2] },
  { what: 'its last page', to: ['sales.draftHoldings', 2], at: ['sales.loadSegment', 1] },
])('a draft that loses $what is not loaded', async ({ to, at }) => {
  const id = await sold(HOLDERS);
  const { backend, went } = goingBack(id, to, at);
  await makeChange(shop.db, id, { action: 'resize', segments: 3 }, BY);
  const row = await readKnownSale(shop.db, id);
  const draft = await writeDraft(shop.db, backend, row, 3).catch(() => undefined);
  await rebuild((nth) => rebuildSale(shop.db, backend, id, undefined, nth === 1 ? { draft } : {}));
  expect(went()).toBe(1);
  await expectAllRecords(id, 3, HOLDERS);
});
