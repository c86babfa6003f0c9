/** More closed sales than the reconciler looks at in one pass. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { RedisKeys } from '../support/engine/redis-keys.ts';
import { until } from '../support/fixtures.ts';
import { Shop } from '../support/shop/shop.ts';

let shop: Shop;

beforeEach(async () => {
  shop = await Shop.open();
});

afterEach(() => shop[Symbol.asyncDispose]());

async function deleteRecord(saleId: string): Promise<void> {
  await using keys = new RedisKeys(shop);
  expect(await keys.redis.del(keys.sale(saleId))).toBe(1);
}

test('closed sales are all checked, a page per pass, also those after the first page', async () => {
  const count = 520;
  await shop.db.raw(
    `INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, state, metadata)
     SELECT 'closed-' || lpad(n::text, 4, '0'), 'Concert tickets', 5, 5, 1, 1, now(), 'closed', '{}'
     FROM generate_series(1, ?) AS n`,
    [count],
  );
  const open = await shop.sell({ stock: 10 });
  const sync = await shop.startSync({ backend: shop.backend });
  const began = sync.seen.sweeps;
  await sync.ready;
  const till = await shop.startEngine();
  expect((await till.buy(open.id, 'anna')).code).toBe('committed');
  const built = () => new Set(sync.seen.rebuilds.map(({ saleId }) => saleId)).size;
  await until(() => built() === count, { what: 'all closed sales are built', timeoutMs: 110_000 });
  // A pass has a bound, however many sales need a rebuild.
  expect(sync.seen.sweeps - began).toBeGreaterThanOrEqual(Math.floor(count / 100));
  expect(sync.seen.rebuilds).toHaveLength(count);
  for (const id of ['closed-0001', 'closed-0520']) {
    await deleteRecord(id);
    await until(() => sync.seen.rebuilds.filter(({ saleId }) => saleId === id).length === 2, {
      what: `${id} is built again`,
    });
    expect(await shop.service.verify(id)).toMatchObject({ ok: true });
  }
});
