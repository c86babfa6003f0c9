/** A draft of the buyers' records: whatever changes while its pages are read is read again, wherever the clock of Postgres is set. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/engine/contract.ts';
import { finishDraft, writeDraft } from '../../../src/rebuild/draft.ts';
import { readKnownSale } from '../../../src/sales/sale-rows.ts';
import { BY } from '../../support/author.ts';
import { intercept } from '../../support/engine/intercept.ts';
import { freshDatabase } from '../../support/fixtures.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { type PostgresClock, settablePostgresClock } from '../../support/postgres/settable-postgres-clock.ts';
import { Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

let shop: Shop;

afterEach(() => shop[Symbol.asyncDispose]());

/** A shop on a Postgres whose clock the test sets. */
async function openWithClock(): Promise<PostgresClock> {
  const database = await freshDatabase();
  const clock = await settablePostgresClock(database);
  // Defaults are bound to Postgres' own clock.
  await query(
    asAdmin(database),
    `ALTER TABLE orders ALTER committed_at SET DEFAULT test_clock.now();
     ALTER TABLE stock_returns ALTER created_at SET DEFAULT test_clock.now()`,
  );
  shop = await Shop.open({ database });
  return clock;
}

const idOf = (outcome: Outcome) => ('orderId' in outcome ? outcome.orderId : '');

describe.each([
  { what: 'is set back', ahead: -3_600 },
  { what: 'goes on', ahead: 0 },
  { what: 'is set ahead', ahead: 3_600 },
])('while the clock of Postgres $what', ({ ahead }) => {
  test('a buyer who buys, and one who cancels, after their page was read are in the resized sale as they are then', async () => {
    const clock = await openWithClock();
    const { id } = await shop.sell({ stock: 10, segments: 1 });
    const till = await shop.startEngine();
    const orders = shop.orders(till.take);
    let isRead = false;
    // The page is read, and not written yet. Anna, who sorts before Mia, is on no later page.
    const changed = intercept(shop.backend, async (call) => {
      if (call !== 'sales.draftHoldings' || isRead) return;
      isRead = true;
      await clock.set(ahead);
      expect((await till.buy(id, 'anna')).code).toBe('committed');
      await orders.changeOrder(mias, { kind: 'cancel' }, BY);
      await clock.set(0);
    });
    const sync = await shop.startSync({ backend: changed });
    await sync.ready;
    const mias = idOf(await till.buy(id, 'mia'));
    await shop.service.change(id, { action: 'resize', segments: 3 }, BY);
    expect(isRead).toBe(true);
    expect((await till.buy(id, 'anna')).code).toBe('limit_reached');
    expect((await till.buy(id, 'mia')).code).toBe('committed');
    expect((await shop.service.verify(id)).findings).toEqual([]);
    expect(sync.seen.rejections).toEqual([]);
  });
});

test('a draft is not loaded if another one began after it', async () => {
  shop = await Shop.open({ backend: 'memory' });
  const { id } = await shop.sell({ stock: 10, segments: 1 });
  const row = await readKnownSale(shop.db, id);
  const draft = await writeDraft(shop.db, shop.backend, row, 2);
  const later = await writeDraft(shop.db, shop.backend, row, 2);
  expect(await finishDraft(shop.db, shop.backend, row, draft)).toBeUndefined();
  expect(await finishDraft(shop.db, shop.backend, row, later)).toEqual(later);
});

test('no draft begins in a generation that has ended', async () => {
  shop = await Shop.open({ backend: 'memory' });
  const { id } = await shop.sell({ stock: 10, segments: 1 });
  const row = await readKnownSale(shop.db, id);
  const old = { ...row, generation: row.generation - 1 };
  await expect(writeDraft(shop.db, shop.backend, old, 2)).rejects.toThrow('generation');
});
