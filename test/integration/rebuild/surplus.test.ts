/**
 * A sale gets fewer segments. While it is rebuilt, surplus segments go back to before they were frozen, and sell: alone, as on a
 * server of a cluster that has no other segments of the sale, or together with the whole sale.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/engine/contract.ts';
import { StaleGeneration } from '../../../src/engine/errors.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { archiveSale } from '../../../src/rebuild/archive.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { makeChange } from '../../../src/sales/sale-changes.ts';
import { BY } from '../../support/author.ts';
import { type Before, breaker, intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { allowDeleting } from '../../support/postgres/least-rights.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { ordersOf } from '../../support/shop/truth.ts';

const STOCK = 40;
const SEGMENTS = 4;
const FEWER = 2;
/** One of the segments beyond the new number. */
const SURPLUS = 3;

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

/** Buyers whose home segment is this one, before the resize. */
const ofSegment = (segment: number, name: string) =>
  buyers(100, name).filter((buyer) => homeSegment(buyer, SEGMENTS) === segment);
const LATE = ofSegment(SURPLUS, 'late')[0]!;

const WHAT = { 'a surplus segment alone': [SURPLUS], 'the whole sale': [0, 1, 2, 3] };

interface Resized {
  readonly id: string;
  /** The segments go back to before the freeze, and a buyer gets an order there. */
  goBackAndSell(): Promise<void>;
  /** The order of that buyer; `undefined` if nothing went back. */
  late(): Outcome | undefined;
}

/** A sale that sells, with orders in Postgres and orders in its logs. An operator wants it to have fewer segments. */
async function resized(what: keyof typeof WHAT): Promise<Resized> {
  const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
  const till = await shop.startEngine();
  const sync = await shop.startSync();
  await till.buyAll(id, buyers(6, 'early'));
  await sync.stop();
  const inLogs = await till.buyAll(id, buyers(6, 'in-log'), { awaitCommit: false });
  expect(inLogs.map(({ code }) => code)).toEqual(Array(6).fill('accepted'));
  const ofSale = what === 'the whole sale' ? [keys.sale(id)] : [];
  const gone = [...WHAT[what].flatMap((segment) => Object.values(keys.of(id, segment))), ...ofSale];
  const copy = await keys.dump(gone);
  await makeChange(shop.db, id, { action: 'resize', segments: FEWER }, BY);
  let late: Outcome | undefined;
  let done: Promise<void> | undefined;
  const goBackAndSell = () =>
    (done ??= (async () => {
      await keys.restore(gone, copy);
      late = await till.buy(id, LATE, { awaitCommit: false });
      expect(late.code).toBe('accepted');
    })());
  return { id, goBackAndSell, late: () => late };
}

/** Expects that all orders are in Postgres, once a sync runs, and that the units add up. */
async function expectSaved({ id, late }: Resized): Promise<void> {
  expect(late()?.code).toBe('accepted');
  const sync = await shop.startSync();
  await sync.ready;
  const lateId = 'orderId' in late()! ? (late() as { orderId: string }).orderId : '';
  await until(async () => (await ordersOf(shop.databaseUrl, id)).has(lateId), {
    what: 'the order is in Postgres',
    timeoutMs: 10_000,
  });
  await until(async () => (await shop.service.verify(id)).ok, { what: 'the sale adds up' });
  expect(sync.seen).toMatchObject({ losses: [], rejections: [], crashes: [] });
  expect(await shop.service.show(id)).toMatchObject({
    segments: FEWER,
    committedOrders: 13,
    remaining: STOCK - 13,
  });
  expect(await keys.left(id, SEGMENTS)).toBe(STOCK - 13);
  expect(await shop.backend.sales.olderSegments({ saleId: id, generation: 1_000 }, FEWER)).toEqual([]);
}

/** Does something once, before the first such call. Calls that are made at the same time wait for it, too. */
function before(step: string, work: () => Promise<unknown>): Before {
  let done: Promise<unknown> | undefined;
  return (call) => {
    if (call === step) done ??= work();
    return call === step ? done : undefined;
  };
}

/** Does something before a rebuild looks for surplus segments. The last time that it does so is right before its publication. */
const beforeSearch =
  (work: () => Promise<unknown>): Before =>
  (call, args) =>
    call === 'sales.olderSegments' && args[1] === FEWER ? work() : undefined;

describe.each(Object.keys(WHAT) as (keyof typeof WHAT)[])('%s goes back to before the freeze', (what) => {
  test.each(['sales.removeSegments', 'sales.loadSegment', 'sales.loadHoldings'])(
    'before %s: an order that is taken there then is not lost',
    async (step) => {
      const sale = await resized(what);
      const backend = intercept(shop.backend, before(step, sale.goBackAndSell));
      await expect(rebuildSale(shop.db, backend, sale.id)).rejects.toThrow(StaleGeneration);
      await expectSaved(sale);
    },
  );

  test('before the publication: an order that is taken there then is not lost', async () => {
    const sale = await resized(what);
    const backend = intercept(shop.backend, beforeSearch(sale.goBackAndSell));
    await expect(rebuildSale(shop.db, backend, sale.id)).rejects.toThrow(StaleGeneration);
    await expectSaved(sale);
  });
});

describe('a surplus segment that has gone back, while the rebuild dies', () => {
  const deaths = ['sales.removeSegments', 'sales.loadSegment', 'sales.loadHoldings', 'sales.publish'];

  test.each(deaths)('before %s: an order that is taken there then is not lost', async (step) => {
    const sale = await resized('a surplus segment alone');
    const { before: dies } = breaker(step);
    await expect(rebuildSale(shop.db, intercept(shop.backend, dies), sale.id)).rejects.toThrow(step);
    await sale.goBackAndSell();
    await expectSaved(sale);
  });

  test.each(['sales.freeze', 'log.readLog', ...deaths])(
    'and the next one dies, too, before %s: the order is not lost',
    async (step) => {
      const sale = await resized('a surplus segment alone');
      const first = breaker('sales.publish');
      await expect(rebuildSale(shop.db, intercept(shop.backend, first.before), sale.id)).rejects.toThrow();
      await sale.goBackAndSell();
      const second = breaker(step);
      await expect(rebuildSale(shop.db, intercept(shop.backend, second.before), sale.id)).rejects.toThrow(
        step,
      );
      await expectSaved(sale);
    },
  );

  test('and the sale’s record is lost, too: the order is not lost', async () => {
    const sale = await resized('a surplus segment alone');
    const { before: dies } = breaker('sales.publish');
    await expect(rebuildSale(shop.db, intercept(shop.backend, dies), sale.id)).rejects.toThrow();
    await sale.goBackAndSell();
    await keys.redis.del(keys.sale(sale.id));
    await expectSaved(sale);
  });

  test('again and again: no order is lost, and the rebuild ends once nothing goes back', async () => {
    const sale = await resized('a surplus segment alone');
    const gone = Object.values(keys.of(sale.id, SURPLUS));
    let copy: Awaited<ReturnType<typeof keys.dump>> | undefined;
    for (const step of ['sales.loadSegment', 'sales.removeSegments', 'sales.loadHoldings']) {
      const goBack = async () => {
        await sale.goBackAndSell();
        copy ??= await keys.dump(gone);
        await keys.restore(gone, copy);
      };
      const backend = intercept(shop.backend, before(step, goBack));
      await expect(rebuildSale(shop.db, backend, sale.id)).rejects.toThrow(StaleGeneration);
    }
    await expectSaved(sale);
  });
});

test('a segment that sells in an older generation, although the record names the newer one, is salvaged', async () => {
  const sale = await resized('a surplus segment alone');
  const { before: dies } = breaker('sales.publish');
  await expect(rebuildSale(shop.db, intercept(shop.backend, dies), sale.id)).rejects.toThrow();
  await sale.goBackAndSell();
  const gone = Object.values(keys.of(sale.id, SURPLUS));
  const copy = await keys.dump(gone);
  await keys.redis.del(gone);
  expect(await rebuildSale(shop.db, shop.backend, sale.id)).toMatchObject({ generation: 2 });
  await keys.restore(gone, copy);
  expect(await rebuildSale(shop.db, shop.backend, sale.id)).toMatchObject({ salvagedOrders: 1 });
  await expectSaved(sale);
});

describe('a surplus segment of a deleted sale with the same id', () => {
  test('does not hinder a rebuild, and its orders do not get into the new sale', async () => {
    await allowDeleting(shop.databaseUrl);
    const id = 'again';
    await shop.service.create({ id, stock: 20, segments: SEGMENTS }, BY.actor);
    const till = await shop.startEngine();
    await till.buy(id, LATE, { awaitCommit: false });
    const copied = Object.values(keys.of(id, SURPLUS));
    const copy = await keys.dump(copied);
    const drain = await shop.startSync();
    await shop.service.change(id, { action: 'close' }, BY);
    const archive = () => shop.service.change(id, { action: 'archive' }, BY);
    await until(() => archive().then(Boolean, () => false), { what: 'the sale is archived' });
    await shop.service.delete(id, 1, BY);
    await until(async () => (await shop.service.deletion(id)).state === 'deleted', { what: 'it is deleted' });
    await drain.stop();
    const { generation } = await shop.service.create({ id, stock: 5, segments: FEWER }, BY.actor);
    await keys.restore(copied, copy);
    const report = await rebuildSale(shop.db, shop.backend, id);
    expect(report).toMatchObject({ generation: generation + 1, salvagedOrders: 0 });
    expect(await keys.redis.exists(copied)).toBe(0);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, committedOrders: 0 });
  });
});

describe('a sale that is archived', () => {
  test('and goes back to before it was closed, between the salvage and its removal, keeps its orders', async () => {
    const { id } = await shop.sell({ stock: STOCK, segments: SEGMENTS });
    const all = [0, 1, 2, 3].flatMap((segment) => Object.values(keys.of(id, segment)));
    const copy = await keys.dump([keys.sale(id), ...all]);
    await shop.service.change(id, { action: 'close' }, BY);
    let late: Outcome | undefined;
    const goBackAndSell = async () => {
      await keys.restore([keys.sale(id), ...all], copy);
      const open = await shop.startEngine();
      late = await open.buy(id, LATE, { awaitCommit: false });
    };
    const backend = intercept(shop.backend, before('sales.archive', goBackAndSell));
    const stores = { db: shop.db, backend, locks: shop.locks };
    await expect(archiveSale(stores, id, BY)).rejects.toThrow(StaleGeneration);
    expect(late?.code).toBe('accepted');
    const sync = await shop.startSync();
    await until(async () => (await ordersOf(shop.databaseUrl, id)).size === 1, {
      what: 'the order is saved',
    });
    await until(async () => (await shop.backend.sales.read(id)) === undefined, { what: 'the sale has left' });
    expect(await keys.redis.exists(all)).toBe(0);
    expect(sync.seen).toMatchObject({ losses: [], crashes: [] });
    expect(await shop.service.verify(id)).toMatchObject({ ok: true });
  });
});
