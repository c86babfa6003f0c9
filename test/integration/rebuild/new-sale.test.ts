/** A new sale is in Postgres and in the backend, whatever happens between the steps of its creation. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StaleGeneration } from '../../../src/engine/errors.ts';
import { SaleExists } from '../../../src/operations/sale-operations.ts';
import { rows } from '../../../src/postgres/database.ts';
import { LocalLocks } from '../../../src/postgres/sale-locks.ts';
import { buildNewSale, insertNewSale } from '../../../src/rebuild/new-sale.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { SaleService } from '../../../src/shop/sale-service.ts';
import { BY } from '../../support/author.ts';
import { deathAt, intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { allowDeleting } from '../../support/postgres/least-rights.ts';
import { aSale } from '../../support/shop/sales.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { ordersOf, unitsSold } from '../../support/shop/truth.ts';

let shop: Shop;

beforeEach(async () => {
  shop = await Shop.open();
});

afterEach(() => shop[Symbol.asyncDispose]());

const serviceOn = (backend = shop.backend, locks = shop.locks) => new SaleService(shop.db, backend, locks);
const generationsOf = (saleId: string) =>
  rows(shop.db, 'SELECT segment, generation FROM segment_cursors WHERE sale_id = ? ORDER BY segment', [
    saleId,
  ]);

test('a new sale begins after the generations of a deleted one, with a cursor for each segment', async () => {
  const sale = aSale({ segments: 2 });
  const deletion =
    "INSERT INTO deleted_sales (id, generation, orders, actor, reason) VALUES (?, ?, 0, '', '')";
  for (const generation of [4, 7]) await shop.db.raw(deletion, [sale.id, generation]);
  await shop.db.raw(deletion, ['another', 9]);
  const row = await insertNewSale(shop.db, sale, BY);
  expect(row).toMatchObject({ sale, generation: 8, stock: sale.stock });
  expect(await generationsOf(sale.id)).toEqual([
    { segment: 0, generation: 8 },
    { segment: 1, generation: 8 },
  ]);
  expect(await insertNewSale(shop.db, { ...sale, stock: 99, segments: 3 }, BY)).toBeUndefined();
  expect(await generationsOf(sale.id)).toHaveLength(2);
});

test('a sale whose insert waits for a deletion begins after the generations of the deleted one', async () => {
  const { id } = await shop.sell({ stock: 1, segments: 1 });
  await allowDeleting(shop.databaseUrl);
  const deletion = await shop.db.transaction();
  await deletion.raw('DELETE FROM segment_cursors WHERE sale_id = ?', [id]);
  await deletion.raw('DELETE FROM stock_movements WHERE sale_id = ?', [id]);
  await deletion.raw('DELETE FROM sales WHERE id = ?', [id]);
  const inserted = insertNewSale(shop.db, aSale({ id }), BY);
  await until(() => shop.isBlocked(), { what: 'the insert waits for the deletion' });
  await deletion.raw(
    "INSERT INTO deleted_sales (id, generation, orders, actor, reason) VALUES (?, 5, 0, '', '')",
    [id],
  );
  await deletion.commit();
  expect(await inserted).toMatchObject({ generation: 6 });
});

test.each(['sales.loadSegment', 'sales.publish'])(
  'if a process dies at %s, sync builds the sale, and it is sold to the last unit',
  async (step) => {
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    const { before, death } = deathAt((call) => call === step);
    const locks = new LocalLocks();
    void serviceOn(intercept(shop.backend, before), locks)
      .create({ id: step, stock: 5, segments: 3 }, BY.actor)
      .catch(() => {});
    await death;
    await until(async () => (await shop.backend.sales.read(step)) !== undefined, { what: 'sync builds it' });
    const outcomes = await till.buyAll(step, buyers(6));
    expect(outcomes.map(({ code }) => code).sort()).toEqual([...Array(5).fill('committed'), 'sold_out']);
    await sync.stop();
    expect(unitsSold(await ordersOf(shop.databaseUrl, step))).toBe(5);
  },
);

test('while another process has the lock of the sale, it is inserted, and built by that process', async () => {
  expect(await shop.locks.tryLock('locked')).toBe(true);
  const created = shop.service.create({ id: 'locked', stock: 3 }, BY.actor);
  await until(async () => (await rows(shop.db, "SELECT 1 FROM sales WHERE id = 'locked'")).length === 1, {
    what: 'the sale is inserted',
  });
  await expect(shop.service.create({ id: 'locked', stock: 3 }, BY.actor)).rejects.toThrow(SaleExists);
  await rebuildSale(shop.db, shop.backend, 'locked');
  expect(await created).toMatchObject({ remaining: 3, generation: 1 });
  expect(await shop.locks.tryLock('locked')).toBe(false);
});

test('if the sale is rebuilt between its insert and its load, that build counts', async () => {
  const row = await insertNewSale(shop.db, aSale({ stock: 4 }), BY);
  await rebuildSale(shop.db, shop.backend, row!.sale.id);
  await expect(buildNewSale(shop.db, shop.backend, row!)).rejects.toThrow(StaleGeneration);

  let isRebuilt = false;
  const rebuildFirst = async (call: string) => {
    if (call !== 'sales.loadSegment' || isRebuilt) return;
    isRebuilt = true;
    await rebuildSale(shop.db, shop.backend, 'raced');
  };
  const created = await serviceOn(intercept(shop.backend, rebuildFirst)).create(
    { id: 'raced', stock: 4 },
    'x',
  );
  expect(created).toMatchObject({ remaining: 4, generation: 2 });
  expect(await shop.isUnlocked('raced')).toBe(true);
});

test('if the sale is deleted before its publication, the backend keeps nothing of it', async () => {
  const row = (await insertNewSale(shop.db, aSale({ segments: 2 }), BY))!;
  const { id } = row.sale;
  await allowDeleting(shop.databaseUrl);
  for (const table of ['segment_cursors', 'stock_movements'])
    await shop.db.raw('DELETE FROM ?? WHERE sale_id = ?', [table, id]);
  await shop.db.raw('DELETE FROM sales WHERE id = ?', [id]);
  await expect(buildNewSale(shop.db, shop.backend, row)).rejects.toThrow(StaleGeneration);
  expect(await shop.backend.sales.read(id)).toBeUndefined();
  const segments = await shop.backend.sales.snapshot(id, 2, row.generation);
  expect(segments.map(({ counters }) => counters)).toEqual([undefined, undefined]);
});

test('a sale that exists is not changed by a second creation, and its lock is free again', async () => {
  const { id } = await shop.sell({ stock: 7 });
  await expect(shop.service.create({ id, stock: 1 }, BY.actor)).rejects.toThrow(SaleExists);
  expect(await shop.service.show(id)).toMatchObject({ stock: 7, remaining: 7, generation: 1 });
  expect(await shop.isUnlocked(id)).toBe(true);
});
