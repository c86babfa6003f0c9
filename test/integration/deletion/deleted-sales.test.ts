/** The records of deletions: of several with the same id, each reader takes the one that it names. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  closeDeletion,
  type DeletedSale,
  readDeletedGeneration,
  readDeletion,
  readGoneSales,
  readOpenDeletion,
  readOpenDeletions,
  writeDeletion,
} from '../../../src/sales/deleted-sales.ts';
import { BY } from '../../support/author.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
});

afterAll(() => shop[Symbol.asyncDispose]());

const of = (saleId: string, generation: number): DeletedSale => ({ saleId, generation });

/** @param age minutes since it began */
async function begin(sale: DeletedSale, age: number, orders = 5): Promise<void> {
  await shop.db.transaction((trx) => writeDeletion(trx, sale, orders, BY));
  await shop.db.raw(
    'UPDATE deleted_sales SET begun_at = now() - make_interval(mins => ?), done = 2 WHERE id = ? AND generation = ?',
    [age, sale.saleId, sale.generation],
  );
}

const end = (sale: DeletedSale) => shop.db.transaction((trx) => closeDeletion(trx, sale));

test('a deletion is shown while it goes on and afterwards; the newest of its id is', async () => {
  expect(await readDeletion(shop.db, 'jazz')).toEqual({ saleId: 'jazz', state: 'none' });
  expect(await readDeletion(shop.db, 'no id\0')).toEqual({ saleId: 'no id\0', state: 'none' });
  expect(await readDeletedGeneration(shop.db, 'jazz')).toBe(0);
  expect(await readOpenDeletion(shop.db, 'jazz')).toBeUndefined();

  await begin(of('jazz', 4), 30);
  await begin(of('rock', 9), 20, 70);
  const first = { saleId: 'jazz', orders: 5, done: 2, ...BY, begunAt: expect.any(String) };
  expect(await readDeletion(shop.db, 'jazz')).toEqual({ ...first, state: 'deleting' });
  await end(of('jazz', 4));
  const deleted = { ...first, state: 'deleted', deletedAt: expect.any(String) };
  expect(await readDeletion(shop.db, 'jazz')).toEqual(deleted);
  expect(await readDeletion(shop.db, 'rock')).toMatchObject({ state: 'deleting', orders: 70 });

  await begin(of('jazz', 6), 10, 8);
  expect(await readDeletion(shop.db, 'jazz')).toEqual({ ...first, state: 'deleting', orders: 8 });
  expect(await readDeletedGeneration(shop.db, 'jazz')).toBe(6);
  expect(await readDeletedGeneration(shop.db, 'rock')).toBe(9);
});

test('open deletions are those that have not ended, the oldest first', async () => {
  expect(await readOpenDeletion(shop.db, 'jazz')).toEqual(of('jazz', 6));
  expect(await readOpenDeletions(shop.db)).toEqual([of('rock', 9), of('jazz', 6)]);
  await end(of('rock', 9));
  expect(await readOpenDeletion(shop.db, 'rock')).toBeUndefined();
  expect(await readOpenDeletions(shop.db)).toEqual([of('jazz', 6)]);
  await end(of('jazz', 6));
  expect(await readOpenDeletions(shop.db)).toEqual([]);
});

test('gone sales are read page by page, each in the newest generation, without those that were made again', async () => {
  await begin(of('again', 3), 5);
  await begin(of('leaving', 3), 5);
  for (const id of ['again', 'leaving']) await shop.sell({ id, stock: 1 });
  await shop.db.raw("UPDATE sales SET deleting_since = now() WHERE id = 'leaving'");
  const gone = async (after: string, limit: number) =>
    (await readGoneSales(shop.db, after, limit)).map(({ saleId, generation }) => ({ saleId, generation }));
  expect(await gone('', 10)).toEqual([of('jazz', 6), of('leaving', 3), of('rock', 9)]);
  expect(await gone('', 2)).toEqual([of('jazz', 6), of('leaving', 3)]);
  expect(await gone('leaving', 2)).toEqual([of('rock', 9)]);
  const [first] = await readGoneSales(shop.db, '', 1);
  expect(Math.abs(Date.now() - first!.begunAt.getTime() - 10 * 60_000)).toBeLessThan(5 * 60_000);
});
