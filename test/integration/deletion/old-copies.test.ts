/** A Redis that comes back from a copy made before a sale was deleted, and a sale that is made again with the same id. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { archiveSale } from '../../../src/rebuild/archive.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { BY } from '../../support/author.ts';
import { intercept, part, stallAt } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { allowDeleting } from '../../support/postgres/least-rights.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';

let shop: Shop;
let keys: RedisKeys;

beforeEach(async () => {
  shop = await Shop.open();
  await allowDeleting(shop.databaseUrl);
  keys = new RedisKeys(shop);
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

const ID = 'tickets';

async function keysOf(saleId: string): Promise<string[]> {
  const found = await keys.redis.keys(`${shop.keyPrefix}*${saleId}*`);
  return found.filter((key) => !key.includes(':lock')).sort();
}

async function deleteSale(orders: number, { isFinished = false } = {}): Promise<void> {
  const archive = () => shop.service.change(ID, { action: 'archive' }, BY);
  await shop.service.change(ID, { action: 'close' }, BY);
  await until(() => archive().then(Boolean, () => false), { what: 'the sale is archived' });
  if (isFinished) await until(() => shop.isUnlocked(ID), { what: 'sync has finished with the sale' });
  await shop.service.delete(ID, orders, BY);
  await until(async () => (await shop.service.deletion(ID)).state === 'deleted', { what: 'it is deleted' });
}

/** A sale that has sold to four buyers and was deleted, and a copy of Redis from the time when it sold. */
async function deletedSale() {
  await shop.service.create({ id: ID, stock: 20, segments: 3 }, BY.actor);
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  await till.buyAll(ID, buyers(4));
  await sync.stop();
  // Two orders are in the logs of the copy, and in Postgres later.
  await till.buyAll(ID, buyers(2, 'in-log'), { awaitCommit: false });
  const copied = await keysOf(ID);
  const copy = await keys.dump(copied);
  const drain = await shop.startSync();
  await deleteSale(6);
  await drain.stop();
  return { restore: () => keys.restore(copied, copy) };
}

test('a copy that sells a deleted sale is removed, and what it has sold is counted as lost', async () => {
  const { restore } = await deletedSale();
  // Ids have whole seconds. What was bought before the copy was made must not look like bought after the deletion.
  await shop.db.raw("UPDATE deleted_sales SET begun_at = now() + interval '2 seconds'");
  const isOver = () => rows(shop.db, 'SELECT 1 FROM deleted_sales WHERE begun_at < now()');
  await until(async () => (await isOver()).length > 0, { what: 'that time is over' });
  await restore();
  const sold = await (await shop.startEngine()).buyAll(ID, buyers(3, 'later'), { awaitCommit: false });
  expect(sold.map(({ code }) => code)).toEqual(Array(3).fill('accepted'));
  const sync = await shop.startSync();
  await until(async () => (await shop.backend.sales.read(ID)) === undefined, { what: 'the copy is removed' });
  await until(() => sync.seen.losses.length > 0, { what: 'sync has said so' });
  expect(sync.seen.losses.reduce((sum, { orders }) => sum + orders, 0)).toBe(3);
  expect(await keysOf(ID)).toEqual([keys.sale(ID)]);
  expect(await rows(shop.db, 'SELECT 1 FROM orders')).toEqual([]);
  expect((await (await shop.startEngine()).buy(ID, 'anna')).code).toBe('unknown_sale');
  const { sweeps } = sync.seen;
  await until(() => sync.seen.sweeps > sweeps + 2, { what: 'two more sweeps' });
  expect(sync.seen).toMatchObject({ rebuilds: [], failures: [], crashes: [] });
});

test.each<[string, () => Promise<unknown>]>([
  ['record', () => keys.redis.hset(keys.sale(ID), 'definition', 'no JSON')],
  ['log', () => keys.redis.xadd(keys.of(ID, 1).log, '1-1000', 'o', 'no order')],
])(
  'a copy whose %s can’t be read is reported, and the orders of other sales are committed',
  async (_, damage) => {
    const { restore } = await deletedSale();
    await restore();
    await damage();
    await shop.service.create({ id: 'other', stock: 4, segments: 1 }, BY.actor);
    const sync = await shop.startSync();
    await sync.ready;
    const sold = await (await shop.startEngine()).buyAll('other', buyers(2));
    expect(sold.map(({ code }) => code)).toEqual(Array(2).fill('committed'));
    const { sweeps } = sync.seen;
    await until(() => sync.seen.sweeps > sweeps + 2, { what: 'two more sweeps' });
    // It is tried each time, and reported once.
    expect(sync.seen).toMatchObject({ failures: [{ saleId: ID }], rebuilds: [], crashes: [], losses: [] });
    expect(await shop.backend.sales.versions([ID])).not.toEqual([undefined]);
    await restore();
    await until(async () => (await shop.backend.sales.read(ID)) === undefined, {
      what: 'the copy is removed',
    });
  },
);

test('a sale that is made again begins after all generations of the deleted one', async () => {
  await deletedSale();
  const made = await shop.service.create({ id: ID, stock: 5, segments: 2 }, BY.actor);
  // 1 sold, 2 was archived, 3 was deleted.
  expect(made.generation).toBe(4);
  await until(async () => made.generation === (await shop.backend.sales.read(ID))?.generation, {
    what: 'its record',
  });
});

test.each([true, false])(
  'it is sold by processes that knew the deleted one (their sync had finished with it: %s)',
  async (isFinished) => {
    await shop.service.create({ id: ID, stock: 20, segments: 3 }, BY.actor);
    const sync = await shop.startSync();
    const till = await shop.startEngine();
    await till.buyAll(ID, buyers(4));
    await deleteSale(4, { isFinished });
    await until(async () => (await till.buy(ID, 'buyer-0')).code === 'unknown_sale', {
      what: 'its end is known',
    });
    const { sweeps } = sync.seen;
    await until(() => sync.seen.sweeps > sweeps + 2, { what: 'two more sweeps' });
    await shop.service.create({ id: ID, stock: 3, segments: 2 }, BY.actor);
    const sold = await till.buyAll(ID, buyers(3));
    expect(sold.map(({ code }) => code)).toEqual(Array(3).fill('committed'));
    expect((await till.buy(ID, 'late')).code).toBe('sold_out');
    expect(await shop.service.verify(ID)).toMatchObject({ ok: true, committedOrders: 3 });
    expect(sync.seen).toMatchObject({ losses: [], failures: [], crashes: [] });
  },
);

test('a copy does not bring back orders or buyers of the deleted sale into the new one', async () => {
  const { restore } = await deletedSale();
  await shop.service.create({ id: ID, stock: 5, segments: 2 }, BY.actor);
  const first = await shop.startSync();
  const till = await shop.startEngine();
  await till.buyAll(ID, ['anna', 'bert']);
  await first.stop();
  await restore();
  const sync = await shop.startSync();
  await until(async () => (await shop.backend.sales.read(ID))?.generation === 5, {
    what: 'the sale is rebuilt',
  });
  await until(async () => (await shop.service.show(ID)).generation === 5, { what: 'Postgres says so' });
  const sold = await (await shop.startEngine()).buyAll(ID, ['buyer-0', 'in-log-0', 'anna']);
  expect(sold.map(({ code }) => code)).toEqual(['committed', 'committed', 'limit_reached']);
  expect(await shop.service.show(ID)).toMatchObject({ committedOrders: 4, remaining: 1 });
  expect(await shop.service.verify(ID)).toMatchObject({ ok: true, differences: [] });
  expect(sync.seen).toMatchObject({ losses: [], rejections: [], failures: [], crashes: [] });
});

test('a sync that removes a copy leaves a sale alone that is made again meanwhile', async () => {
  const { restore } = await deletedSale();
  await restore();
  const { stalled, goOn, before } = stallAt('sales.archive');
  const sync = await shop.startSync({ backend: intercept(shop.backend, before) });
  await stalled;
  const made = await shop.service.create({ id: ID, stock: 5, segments: 2 }, BY.actor);
  goOn();
  const { sweeps } = sync.seen;
  await until(() => sync.seen.sweeps > sweeps + 2, { what: 'two more sweeps' });
  expect((await shop.backend.sales.read(ID))?.generation).toBe(made.generation);
  const till = await shop.startEngine();
  expect((await till.buyAll(ID, buyers(2))).map(({ code }) => code)).toEqual(['committed', 'committed']);
  expect(sync.seen).toMatchObject({ rebuilds: [], failures: [], crashes: [] });
});

test('a rebuild of the deleted sale that stalls until then publishes nothing', async () => {
  await shop.service.create({ id: ID, stock: 20, segments: 3 }, BY.actor);
  const { stalled, goOn, before } = stallAt('sales.publish');
  const late = rebuildSale(shop.db, intercept(shop.backend, before), ID).catch((error) => error);
  await stalled;
  await rebuildSale(shop.db, shop.backend, ID);
  await deleteSale(0);
  const made = await shop.service.create({ id: ID, stock: 5, segments: 2 }, BY.actor);
  goOn();
  expect((await late).code).toBe('stale_generation');
  expect((await shop.backend.sales.read(ID))?.generation).toBe(made.generation);
  expect(await shop.service.verify(ID)).toMatchObject({ ok: true });
});

test('a request to archive the deleted sale once more that stalls until then leaves the new one alone', async () => {
  await shop.service.create({ id: ID, stock: 20, segments: 3 }, BY.actor);
  await shop.service.change(ID, { action: 'close' }, BY);
  await shop.service.change(ID, { action: 'archive' }, BY);
  const { stalled, goOn, before } = stallAt('locks.tryLock');
  const stores = { db: shop.db, backend: shop.backend, locks: part(shop.locks, 'locks', before) };
  const late = archiveSale(stores, ID, BY).catch((error) => error);
  await stalled;
  await shop.service.delete(ID, 0, BY);
  await until(async () => (await shop.service.deletion(ID)).state === 'deleted', { what: 'it is deleted' });
  const { generation } = await shop.service.create({ id: ID, stock: 5, segments: 2 }, BY.actor);
  goOn();
  expect((await late)?.code).toBe('stale_generation');
  expect(await shop.service.show(ID)).toMatchObject({ state: 'open', generation, archivedAt: undefined });
  expect((await (await shop.startEngine()).buy(ID, 'anna', { awaitCommit: false })).code).toBe('accepted');
});
