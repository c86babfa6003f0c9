/** The line of a queue, as the head reads it. */
import { expect, test } from 'vitest';
import { FifoLine } from '../../../src/queue/line.ts';
import { QUEUE, queued } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

test('ranks are compared as numbers: the tenth place does not stand before the second', async () => {
  await using shop = await Shop.open({ backend: 'memory' });
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  await queued(
    shop,
    id,
    Array.from({ length: 12 }, (_, i) => `b${i}`),
  );
  const line = new FifoLine(id);
  expect(await line.rankBehind(shop.db, 1, 0)).toBe(2);
  expect(await line.rankBehind(shop.db, 0, 9)).toBe(10);
  expect((await line.waiting(shop.db, 8, 5)).map(({ number }) => number)).toEqual([9, 10, 11, 12]);
});
