/** Rows of sales: what is written is read again, and each list has its sales in their order, and no others. */

import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Sale } from '../../../src/engine/contract.ts';
import { SaleArchived, UnknownSale } from '../../../src/operations/sale-operations.ts';
import { rows } from '../../../src/postgres/database.ts';
import { makeChange } from '../../../src/sales/sale-changes.ts';
import { readSalePage, readSummedSale } from '../../../src/sales/sale-pages.ts';
import {
  insertSale,
  readKnownSale,
  readPresentSale,
  readSale,
  readSales,
} from '../../../src/sales/sale-rows.ts';
import { readClosedSales, SalesAtWork } from '../../../src/sales/sales-at-work.ts';
import { BY } from '../../support/author.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { afterStatement } from '../../support/postgres/watched-statements.ts';
import { aSale } from '../../support/shop/sales.ts';
import { Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
});

afterAll(() => shop[Symbol.asyncDispose]());

const FULL: Partial<Sale> = {
  ...{ title: 'Tickets', stock: 50, segments: 3, endsAt: Date.UTC(2098, 0), perBuyerLimit: 4 },
  ...{ requireToken: true, payWithinSeconds: 900, priceMinor: 1_999, faceValueMinor: 2_500, currency: 'EUR' },
  ...{ shopId: 'shop', metadata: { gate: [1, { row: null }] } },
};

describe('a sale', () => {
  test.each([
    ['with every field', aSale(FULL)],
    ['with those that it must have', aSale({})],
  ])('%s is read as it was written', async (_, sale) => {
    expect(await insertSale(shop.db, sale, BY)).toBe(true);
    const row = await readKnownSale(shop.db, sale.id);
    expect(row).toEqual({
      ...{
        sale,
        state: 'open',
        generation: 0,
        revision: 0,
        stock: sale.stock,
        liveOrders: expect.anything(),
      },
      ...{ createdAt: expect.any(Date), archivedAt: undefined },
    });
    const movements = 'SELECT action, units, actor, reason, applied_at IS NULL AS open FROM stock_movements';
    expect(await rows(shop.db, `${movements} WHERE sale_id = ?`, [sale.id])).toEqual([
      { action: 'create', units: '0', ...BY, open: false },
    ]);
    expect(await insertSale(shop.db, { ...sale, stock: 9 }, BY)).toBe(false);
    expect(await readSale(shop.db, sale.id)).toEqual(row);
    expect(await rows(shop.db, `${movements} WHERE sale_id = ?`, [sale.id])).toHaveLength(1);
  });

  test('has the times that it was given, also where clocks once were not whole minutes off', async () => {
    vi.stubEnv('TZ', 'Europe/Amsterdam');
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const [startsAt, endsAt] = [Date.parse('0001-01-01T00:00:00Z'), Date.parse('9999-12-31T23:59:59.999Z')];
    const sale = aSale({ startsAt, endsAt });
    await insertSale(shop.db, sale, BY);
    expect((await readKnownSale(shop.db, sale.id)).sale).toEqual(sale);
  });

  test('of an older version, that ends after the year 9999, can be given another start', async () => {
    const sale = aSale({});
    await insertSale(shop.db, sale, BY);
    await shop.db.raw("UPDATE sales SET ends_at = '10000-01-01 00:59:59+00' WHERE id = ?", [sale.id]);
    const startsAt = Date.parse('2030-01-01T00:00:00Z');
    await makeChange(shop.db, sale.id, { action: 'window', startsAt }, BY);
    const { sale: changed } = await readKnownSale(shop.db, sale.id);
    expect(changed).toMatchObject({ startsAt, endsAt: Date.parse('+010000-01-01T00:59:59Z') });
  });

  test('is not found without a row, under an id that no sale can have, and while it is deleted', async () => {
    const sale = aSale();
    await insertSale(shop.db, sale, BY);
    expect(await readSale(shop.db, 'mistyped')).toBeUndefined();
    expect(await readSale(shop.db, 'a\0')).toBeUndefined();
    await expect(readSummedSale(shop.db, 'a\0')).rejects.toThrow(UnknownSale);
    await shop.db.raw('UPDATE sales SET deleting_since = now() WHERE id = ?', [sale.id]);
    expect(await readSale(shop.db, sale.id)).toBeUndefined();
    for (const read of [readKnownSale, readPresentSale, readSummedSale])
      await expect(read(shop.db, sale.id)).rejects.toThrow(UnknownSale);
  });

  test('that is archived is known, and not present', async () => {
    const sale = aSale();
    await insertSale(shop.db, sale, BY);
    expect((await readPresentSale(shop.db, sale.id)).sale).toEqual(sale);
    await shop.db.raw("UPDATE sales SET state = 'closed', archived_at = now() WHERE id = ?", [sale.id]);
    expect((await readKnownSale(shop.db, sale.id)).archivedAt).toEqual(expect.any(Date));
    await expect(readPresentSale(shop.db, sale.id)).rejects.toThrow(SaleArchived);
  });

  test('shows the units of its own movements', async () => {
    const [sale, other] = [aSale({ stock: 10 }), aSale({ stock: 10 })];
    for (const one of [sale, other]) await insertSale(shop.db, one, BY);
    const move = (saleId: string, units: number) =>
      shop.db.raw(
        "INSERT INTO stock_movements (sale_id, units, reason, actor, action) VALUES (?, ?, '', '', 'top-up')",
        [saleId, units],
      );
    expect((await readSummedSale(shop.db, sale.id)).movedUnits).toBe(0);
    await move(sale.id, 7);
    await move(sale.id, -3);
    await move(other.id, 100);
    expect(await readSummedSale(shop.db, sale.id)).toMatchObject({ sale, movedUnits: 4 });
    const { sales } = await readSalePage(shop.db, { limit: 1_000 });
    expect(new Map(sales.map(({ sale: { id }, movedUnits }) => [id, movedUnits])).get(sale.id)).toBe(4);
  });
});

describe('a list of sales', () => {
  beforeEach(async () => {
    await query(asAdmin(shop.databaseUrl), 'TRUNCATE sales CASCADE');
    await insert('open-b', 5);
    await insert('open-a', 5);
    await insert('paused', 1, { state: 'paused', generation: 7, per_buyer_limit: 3 });
    await insert('unbuilt', 3, { generation: 0 });
    await insert('closed-b', 2, { state: 'closed' });
    await insert('closed-a', 4, { state: 'closed' });
    await insert('archived', 6, { state: 'closed', archived_at: new Date() });
    await insert('leaving', 0, { state: 'closed', deleting_since: new Date() });
  });

  /** @param age hours since it was created */
  async function insert(id: string, age: number, columns: Record<string, unknown> = {}): Promise<void> {
    await insertSale(shop.db, aSale({ id }), BY);
    const at = new Date(Date.UTC(2026, 10, 27) - age * 3_600_000);
    await shop
      .db('sales')
      .where({ id })
      .update({ generation: 1, created_at: at, ...columns });
  }

  const ids = (found: readonly { readonly id: string }[]) => found.map(({ id }) => id);
  const idsOf = (found: readonly { readonly sale: { readonly id: string } }[]) =>
    found.map(({ sale }) => sale.id);
  const NEWEST_FIRST = ['paused', 'closed-b', 'unbuilt', 'closed-a', 'open-a', 'open-b', 'archived'];

  test('of all that are not being deleted, the newest first', async () => {
    expect(idsOf(await readSales(shop.db))).toEqual(NEWEST_FIRST);
    expect(idsOf(await readSales(shop.db, { limit: 2 }))).toEqual(['paused', 'closed-b']);
    const built = NEWEST_FIRST.filter((id) => id !== 'unbuilt' && id !== 'archived');
    expect(idsOf(await readSales(shop.db, { built: true }))).toEqual(built);
  });

  test('at work: those that are not closed, the newest first, and then those that are held', async () => {
    const found = await new SalesAtWork(shop.db).read(['closed-a', 'archived', 'paused', 'mistyped']);
    expect(ids(found).slice(0, 4)).toEqual(['paused', 'unbuilt', 'open-a', 'open-b']);
    expect(ids(found).slice(4).sort()).toEqual(['archived', 'closed-a']);
    expect(found[0]).toEqual({
      ...{ id: 'paused', generation: 7, state: 'paused', isArchived: false },
      rules: expect.stringContaining('3'),
    });
    expect(found.find(({ id }) => id === 'archived')!.isArchived).toBe(true);
    expect(found[0]!.rules).not.toBe(found[1]!.rules);
  });

  test('at work: a change of any sale shows at the next read', async () => {
    const atWork = new SalesAtWork(shop.db);
    let last = await atWork.read([]);
    expect(await atWork.read([])).toEqual(last);
    const changes: Record<string, unknown>[] = [
      { generation: 8 },
      { state: 'open' },
      { require_token: true },
      { per_buyer_limit: 5 },
      { starts_at: new Date(0) },
      { ends_at: new Date(Date.UTC(2030, 0)) },
      { ends_at: null },
      { state: 'closed' },
    ];
    for (const change of changes) {
      await shop.db('sales').where({ id: 'paused' }).update(change);
      const now = await atWork.read([]);
      expect(now, JSON.stringify(change)).not.toEqual(last);
      expect(now).toEqual(await new SalesAtWork(shop.db).read([]));
      last = now;
    }
    await insert('another', 2);
    expect(await atWork.read([])).toHaveLength(last.length + 1);
  });

  test('at work: two sales that swap a value are read again', async () => {
    const atWork = new SalesAtWork(shop.db);
    for (let pair = 0; pair < 10; pair++) {
      const [one, other] = [`one-${pair}`, `other-${pair}`];
      await insert(one, 1, { state: 'open' });
      await insert(other, 1, { state: 'paused' });
      await atWork.read([]);
      await query(
        asAdmin(shop.databaseUrl),
        `UPDATE sales SET state = CASE state WHEN 'open' THEN 'paused' ELSE 'open' END
         WHERE id IN ('${one}', '${other}')`,
      );
      expect(await atWork.read([])).toEqual(await new SalesAtWork(shop.db).read([]));
    }
  });

  test('at work: a sale that changes while it is read, and then changes back, is read again', async () => {
    let meanwhile = async () => {};
    const db = afterStatement(shop.db, /^SELECT sum/, () => meanwhile());
    const atWork = new SalesAtWork(db);
    const before = await atWork.read([]);
    await insert('another', 2);
    const set = async (state: string) => {
      await shop.db('sales').where({ id: 'paused' }).update({ state });
    };
    meanwhile = () => set('open');
    expect((await atWork.read([]))[0]).toMatchObject({ id: 'paused', state: 'open' });
    meanwhile = async () => {};
    await set('paused');
    expect((await atWork.read([]))[0]).toEqual(before[0]);
  });

  test('at work: if the rows could not be read, the next call reads them', async () => {
    let isDown = false;
    const db = afterStatement(shop.db, /^SELECT sum/, async () => {
      if (isDown) throw new Error('Postgres is away');
    });
    const atWork = new SalesAtWork(db);
    const { length } = await atWork.read([]);
    await insert('another', 2);
    isDown = true;
    await expect(atWork.read([])).rejects.toThrow('Postgres is away');
    isDown = false;
    expect(await atWork.read([])).toHaveLength(length + 1);
  });

  test('at work: none', async () => {
    const atWork = new SalesAtWork(shop.db);
    expect(await atWork.read([])).not.toEqual([]);
    await shop.db('sales').update({ state: 'closed' });
    expect(await atWork.read([])).toEqual([]);
    expect(ids(await atWork.read(['paused']))).toEqual(['paused']);
  });

  test('that are closed, by their ids', async () => {
    expect(ids(await readClosedSales(shop.db, '', 10))).toEqual(['archived', 'closed-a', 'closed-b']);
    expect(ids(await readClosedSales(shop.db, '', 2))).toEqual(['archived', 'closed-a']);
    expect(ids(await readClosedSales(shop.db, 'closed-a', 10))).toEqual(['closed-b']);
  });

  test('page by page, with a state or without, with archived ones or them alone', async () => {
    const page = async (spec: Omit<Parameters<typeof readSalePage>[1], 'limit'>, limit = 10) =>
      idsOf((await readSalePage(shop.db, { ...spec, limit })).sales);
    const present = NEWEST_FIRST.filter((id) => id !== 'archived');
    expect(await page({})).toEqual(present);
    expect(await page({ archived: 'include' })).toEqual(NEWEST_FIRST);
    expect(await page({ archived: 'only' })).toEqual(['archived']);
    expect(await page({ state: 'closed' })).toEqual(['closed-b', 'closed-a']);
    const all: string[] = [];
    for (let after: string | undefined; ; ) {
      const { sales, next } = await readSalePage(shop.db, { limit: 2, after });
      all.push(...idsOf(sales));
      if (next === undefined) break;
      after = next;
    }
    expect(all).toEqual(present);
    expect((await readSalePage(shop.db, { limit: present.length })).next).toBeUndefined();
  });
});
