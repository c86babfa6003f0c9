/** The line of a queue, as the head reads it. */
import { expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { draw } from '../../../src/queue/draw/drawn-order.ts';
import { DrawnLine, FifoLine } from '../../../src/queue/line.ts';
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

test('the rank behind any number of waiting places is right in a drawn line, also behind those that were drawn', async () => {
  await using shop = await Shop.open({ backend: 'memory' });
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  // More than are read together.
  const [entries, places] = [70_000, 70_040];
  await rows(
    shop.db,
    `INSERT INTO places (sale_id, number, buyer_id, quantity, state)
     SELECT ?, n, 'b' || n, 1, CASE WHEN (n * 7) % 5 = 0 THEN 'left' ELSE 'waiting' END FROM generate_series(1, ?::integer) AS n`,
    [id, places],
  );
  const order = draw({ seed: Buffer.alloc(32, 7), entriesHash: 'ab'.repeat(32), entries });
  const line = new DrawnLine(id, order);
  const waiting = Array.from({ length: places }, (_, i) => i + 1).filter(
    (rank) => (line.numberAt(rank) * 7) % 5 !== 0,
  );
  for (const afterRank of [0, 1, 35_000, 69_990, 70_000, 70_010])
    for (const ahead of [0, 1, 9, 1_024, 2_500, 3_500, 3_501, 28_000, 55_999, 56_000, 56_031, 56_032])
      expect(await line.rankBehind(shop.db, afterRank, ahead), `${ahead} behind rank ${afterRank}`).toBe(
        waiting.filter((rank) => rank > afterRank)[ahead],
      );
});
