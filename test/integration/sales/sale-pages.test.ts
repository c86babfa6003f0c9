/** The list of sales, page by page. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseSaleQuery, type SaleQuery, salePages } from '../../../src/operations/sale-list.ts';
import { BY } from '../../support/author.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;

beforeEach(async () => {
  shop = await Shop.open();
  // All at one instant, so that ids decide, but for the last two.
  for (const id of ['b', 'd', 'a', 'c', 'new', 'old']) await shop.sell({ id, stock: 5 });
  await shop.db.raw("UPDATE sales SET created_at = '2026-01-02 00:00:00.123457Z'");
  await shop.db.raw("UPDATE sales SET created_at = '2026-01-02 00:00:00.123458Z' WHERE id = 'new'");
  await shop.db.raw("UPDATE sales SET created_at = '2026-01-02 00:00:00.123456Z' WHERE id = 'old'");
});

afterEach(() => shop[Symbol.asyncDispose]());

async function pages(query: SaleQuery): Promise<string[][]> {
  const found: string[][] = [];
  for await (const { sales } of salePages((wanted) => shop.service.list(wanted), query))
    found.push(sales.map(({ id }) => id));
  return found;
}

test('each sale is on one page, the newest first, whatever the size of a page', async () => {
  const all = ['new', 'a', 'b', 'c', 'd', 'old'];
  expect(await pages({})).toEqual([all]);
  for (let limit = 1; limit <= all.length + 1; limit++) {
    const found = await pages({ limit });
    expect(found.flat()).toEqual(all);
    expect(found).toHaveLength(Math.ceil(all.length / limit));
  }
});

test('only sales in the given state, or none', async () => {
  await shop.service.change('b', { action: 'close' }, BY);
  await shop.service.change('d', { action: 'pause' }, BY);
  expect(await pages({ state: 'closed' })).toEqual([['b']]);
  expect(await pages({ state: 'paused', limit: 1 })).toEqual([['d']]);
  expect((await pages({ state: 'open', limit: 2 })).flat()).toEqual(['new', 'a', 'c', 'old']);
});

test('only sales whose window begins in the given time', async () => {
  await shop.db.raw("UPDATE sales SET starts_at = '2026-03-01T00:00:00Z'");
  await shop.db.raw("UPDATE sales SET starts_at = '2026-03-01T00:00:00.001Z' WHERE id IN ('c', 'new')");
  await shop.db.raw("UPDATE sales SET starts_at = '2026-03-02T00:00:00Z' WHERE id = 'old'");
  const [first, second] = ['2026-03-01T01:00:00.001+01:00', '2026-03-02T00:00:00Z'];
  expect(await pages(parseSaleQuery({ since: first }))).toEqual([['new', 'c', 'old']]);
  expect(await pages(parseSaleQuery({ until: first }))).toEqual([['a', 'b', 'd']]);
  expect(await pages(parseSaleQuery({ since: first, until: second, limit: 1 }))).toEqual([['new'], ['c']]);
  // As in the address of a request that did not escape the plus.
  expect(await pages(parseSaleQuery({ since: first.replace('+', ' '), state: 'open' }))).toHaveLength(1);
});

test('a sale that is created meanwhile is on no later page', async () => {
  const first = await shop.service.list({ limit: 3 });
  await shop.sell({ id: 'newest', stock: 1 });
  expect((await pages({ after: first.next })).flat()).toEqual(['c', 'd', 'old']);
});

test('a sale without state in the backend is listed', async () => {
  await shop.db.raw('UPDATE sales SET generation = 9');
  expect((await shop.service.list()).sales.map(({ remaining }) => remaining)).toEqual(
    Array(6).fill(undefined),
  );
});

test.each([
  [{ limit: '0' }, 'limit'],
  [{ limit: '1001' }, 'limit'],
  [{ limit: '1.5' }, 'limit'],
  [{ limit: '' }, 'limit'],
  [{ state: 'ended' }, 'state'],
  [{ since: '2026-03-01' }, 'since'],
  [{ until: '2026-03-01T00:00:00' }, 'until'],
  [{ after: 'tickets' }, 'after'],
  [{ after: '1.x y' }, 'after'],
  [{ page: '2' }, 'page'],
])('%j is refused', (query, field) => {
  expect(() => parseSaleQuery(query)).toThrow(
    expect.objectContaining({ faults: [expect.objectContaining({ field })] }),
  );
});
