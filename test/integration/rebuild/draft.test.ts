/**
 * A draft of the buyers' records: a buyer who buys while its pages are read is read again, whatever the pages had.
 */
import { afterEach, expect, test } from 'vitest';
import type { Database } from '../../../src/postgres/database.ts';
import { finishDraft, writeDraft } from '../../../src/rebuild/draft.ts';
import { readKnownSale } from '../../../src/sales/sale-rows.ts';
import { intercept } from '../../support/engine/intercept.ts';
import { Shop } from '../../support/shop.ts';

/** By the clock of Postgres, which the test turns. */
const LONG_AGO = '2026-01-01T00:00:00Z';
const BEGAN = '2026-01-01T00:00:10Z';
const BOUGHT = '2026-01-01T00:00:20Z';
const PAGES_READ = '2026-01-01T00:00:30Z';

let shop: Shop;

afterEach(() => shop[Symbol.asyncDispose]());

/** An order that only Postgres has. */
async function committed(saleId: string, orderId: number, buyerId: string, at: string): Promise<void> {
  await shop.db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, committed_at)
     VALUES (?, ?, ?, 1, true, ?)`,
    [orderId, saleId, buyerId, at],
  );
}

/** The database, which calls its oldest transaction as old as the test says. */
function whoseOldestBegan(at: () => string): Database {
  return new Proxy(shop.db, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (name !== 'raw') return typeof value === 'function' ? value.bind(target) : value;
      return async (sql: string, ...rest: unknown[]) =>
        sql.includes('pg_stat_activity') ? { rows: [{ since: at() }] } : value.call(target, sql, ...rest);
    },
  });
}

test('a draft contains a buyer who buys after the buyer’s page was read, because its start time is stored first', async () => {
  shop = await Shop.open({ backend: 'memory' });
  const { id } = await shop.sell({ stock: 10, segments: 1 });
  await committed(id, 1001, 'mia', LONG_AGO);
  let now = BEGAN;
  const db = whoseOldestBegan(() => now);
  const backend = intercept(shop.backend, async (call) => {
    if (call !== 'sales.draftHoldings' || now !== BEGAN) return;
    // Mia's page is read and on its way. Anna, who sorts before Mia, is on no later page.
    now = PAGES_READ;
    await committed(id, 1002, 'anna', BOUGHT);
  });
  const draft = await writeDraft(db, backend, await readKnownSale(db, id), 2);
  expect(now).toBe(PAGES_READ);

  await db.raw('UPDATE sales SET generation = generation + 1, segments = 2 WHERE id = ?', [id]);
  const row = await readKnownSale(db, id);
  await finishDraft(db, shop.backend, row, draft);
  const ref = (segment: number) => ({ saleId: id, segment, generation: row.generation });
  for (const segment of [0, 1]) {
    await shop.backend.sales.loadSegment({ ...ref(segment), left: 4, perBuyerLimit: 1, draft: draft.id });
  }
  await shop.backend.sales.publish(row);
  const held: string[] = [];
  for (const segment of [0, 1]) {
    const { holdings } = await shop.backend.sales.recall(ref(segment), ['anna', 'mia']);
    held.push(...holdings.filter(({ orders }) => orders.length > 0).map(({ buyerId }) => buyerId));
  }
  expect(held.sort()).toEqual(['anna', 'mia']);
});
