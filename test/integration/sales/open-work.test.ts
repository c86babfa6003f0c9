/** Postgres tells the reconciler which kinds of rarely needed work wait. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { readOpenWork } from '../../../src/sales/open-work.ts';
import { insertSale } from '../../../src/sales/sale-rows.ts';
import { BY } from '../../support/author.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { aSale } from '../../support/shop/sales.ts';
import { Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

const NONE = { returns: false, movements: false, erasures: false, deletions: false };

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
  await insertSale(shop.db, aSale({ id: 'sale' }), BY);
});

afterAll(() => shop[Symbol.asyncDispose]());

const admin = (sql: string) => query(asAdmin(shop.databaseUrl), sql);

beforeEach(() => admin('TRUNCATE stock_returns, stock_movements, erasures, deleted_sales'));

describe('a return', () => {
  const give = (appliedAt: string) =>
    admin(`INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, applied_at)
      VALUES (1, 'sale', 'buyer', 1, 'cancelled', ${appliedAt})`);

  test('waits until it is applied', async () => {
    await give('NULL');
    expect(await readOpenWork(shop.db)).toEqual({ ...NONE, returns: true });
  });

  test('that is applied does not wait', async () => {
    await give('now()');
    expect(await readOpenWork(shop.db)).toEqual(NONE);
  });
});

describe('a change by an operator', () => {
  const change = (action: string, appliedAt: string) =>
    admin(`INSERT INTO stock_movements (sale_id, units, reason, actor, action, applied_at)
      VALUES ('sale', 0, '', 'somebody', '${action}', ${appliedAt})`);

  test.each(['top-up', 'resize', 'withdraw', 'archive'])('waits until it is applied: %s', async (action) => {
    await change(action, 'NULL');
    expect(await readOpenWork(shop.db)).toEqual({ ...NONE, movements: true });
  });

  test('that is applied does not wait', async () => {
    await change('top-up', 'now()');
    expect(await readOpenWork(shop.db)).toEqual(NONE);
  });
});

test('an erasure waits, also before it is due', async () => {
  await admin(`INSERT INTO erasures (sale_id, buyer_id, pseudonym, while_selling, actor, reason)
    VALUES ('sale', 'buyer', 'erased-1', false, 'somebody', '')`);
  expect(await readOpenWork(shop.db)).toEqual({ ...NONE, erasures: true });
});

test('a deleted sale is reported for ever', async () => {
  await admin(`INSERT INTO deleted_sales (id, generation, orders, actor, reason, deleted_at)
    VALUES ('sale', 1, 0, 'somebody', '', now())`);
  expect(await readOpenWork(shop.db)).toEqual({ ...NONE, deletions: true });
});
