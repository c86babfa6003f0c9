/** Redis loses units that Postgres has given, or a withdrawal, and no take: sync notices, and the sale is rebuilt. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BY } from '../../support/author.ts';
import { intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';

const SEGMENTS = 2;
/** Sync rests a hundred times as long as it has counted: a slow machine waits for the next count. */
const COUNTED = { timeoutMs: 150_000 };

let shop: Shop;
let keys: RedisKeys;

beforeEach(async () => {
  shop = await Shop.open();
  keys = new RedisKeys(shop);
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

/**
 * Six of twenty units are sold, all orders are in Postgres, and the logs are trimmed. Then `change` runs, and Redis forgets what it
 * did there.
 */
async function afterLossOf(change: (saleId: string, orderId: string) => Promise<unknown>) {
  const { id } = await shop.sell({ stock: 20, segments: SEGMENTS });
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  const outcomes = await till.buyAll(id, buyers(6));
  const [first] = outcomes;
  if (first?.code !== 'committed') throw new Error(`the first purchase ended as ${first?.code}`);
  await until(async () => (await keys.entries(id, SEGMENTS)).length === 0, { what: 'the logs are trimmed' });
  const names = [0, 1].flatMap((segment) => Object.values(keys.of(id, segment)));
  const copy = await keys.dump(names);
  await change(id, first.orderId);
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, differences: [] });
  await keys.restore(names, copy);
  const rebuilt = () =>
    until(() => sync.seen.rebuilds.length > 0 && sync.seen.rebuilds, {
      what: 'the sale is rebuilt',
      ...COUNTED,
    });
  return { id, sync, till, rebuilt };
}

async function cancel(orderId: string): Promise<void> {
  const orders = shop.orders(async () => {
    throw new Error('no order of this test is paid late');
  });
  expect(await orders.changeOrder(orderId, { kind: 'cancel' }, 'buyer-0')).toMatchObject({ code: 'done' });
}

test('the segments of a sale are counted only if something could be lost there', async () => {
  const [quiet, changed] = [await shop.sell({ stock: 2 }), await shop.sell({ stock: 2 })];
  await shop.service.change(changed.id, { action: 'top-up', units: 1 }, BY);
  const counted: unknown[] = [];
  const backend = intercept(shop.backend, (call, [saleId]) => {
    if (call === 'audits.audit') counted.push(saleId);
  });
  await shop.startSync({ backend });
  await until(() => counted.length >= 2, { what: 'two rounds over both sales', ...COUNTED });
  expect(counted).not.toContain(quiet.id);
});

test('a lost return of a cancelled order is noticed', async () => {
  const { id, till, rebuilt } = await afterLossOf((_, orderId) => cancel(orderId));
  expect(await rebuilt()).toMatchObject([
    { saleId: id, why: 'the segments have lost 1 unit that came back', again: true },
  ]);
  expect((await till.buy(id, 'buyer-0')).code, 'the buyer whose order ended buys again').toBe('committed');
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 6 });
});

test('a lost top-up is noticed', async () => {
  const { id, till, rebuilt } = await afterLossOf((saleId) =>
    shop.service.change(saleId, { action: 'top-up', units: 10 }, BY),
  );
  expect(await rebuilt()).toMatchObject([{ why: 'the segments have lost 10 units that were added' }]);
  await till.buyAll(id, buyers(40));
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 30 });
});

test('a lost withdrawal is noticed, which has put units on sale again', async () => {
  const { id, till, rebuilt } = await afterLossOf((saleId) =>
    shop.service.change(saleId, { action: 'withdraw', units: 10 }, BY),
  );
  expect(await rebuilt()).toMatchObject([{ why: 'the segments have lost the withdrawal of 10 units' }]);
  await till.buyAll(id, buyers(40));
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 10, rejectedOrders: 0 });
});

test('a lost return of a closed sale is noticed', async () => {
  const { id, rebuilt } = await afterLossOf(async (saleId, orderId) => {
    await shop.service.change(saleId, { action: 'close' }, BY);
    await until(() => shop.isUnlocked(saleId), { what: 'the closed sale is released' });
    await cancel(orderId);
  });
  await rebuilt();
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 5 });
});

/**
 * Sells from a sale whose segments are on several servers, as far as sync knows.
 * @returns `audits`: how often sync has added up its units
 */
async function sellSpread() {
  const { backend } = shop;
  Object.assign(backend, { isSpread: true });
  let audits = 0;
  const audit = backend.audits.audit.bind(backend.audits);
  backend.audits.audit = (...which) => {
    audits++;
    return audit(...which);
  };
  const { id } = await shop.sell({ stock: 20, segments: SEGMENTS });
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  await till.buyAll(id, buyers(6));
  return { id, sync, till, audits: () => audits };
}

test.each([
  [-3, 'the segments have lost 3 units that moved between them'],
  [3, 'the segments have 3 units twice, which moved between them'],
])(
  'a transfer between two servers is noticed if one of them loses its part (%i units)',
  async (units, why) => {
    const { id, sync, till } = await sellSpread();
    const { segment } = keys.of(id, 0);
    await keys.redis.multi().hincrby(segment, 'left', units).hincrby(segment, 'supplied', units).exec();
    await until(() => sync.seen.rebuilds.length > 0, { what: 'the sale is rebuilt', ...COUNTED });
    expect(sync.seen.rebuilds).toMatchObject([{ saleId: id, why, again: true }]);
    await till.buyAll(id, buyers(40));
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 20, rejectedOrders: 0 });
  },
);

test('a stock that was changed in Postgres by hand causes no rebuild: the operator decides', async () => {
  const { id, sync, audits } = await sellSpread();
  await shop.db.raw('UPDATE sales SET stock = stock + 3 WHERE id = ?', [id]);
  const before = audits();
  await until(() => audits() > before + 1, { what: 'sync has added up the units twice', ...COUNTED });
  expect(sync.seen.rebuilds).toEqual([]);
  expect(await shop.service.verify(id)).toMatchObject({ ok: false });
});
