/**
 * Redis goes back to an earlier state around a rebuild, with the whole sale: to before the freeze while the rebuild is under
 * way, or to before the publication when the sale has sold since. No order that Redis has is thrown away, and nothing is
 * for sale twice.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/engine/contract.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { BY } from '../../support/author.ts';
import { intercept } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { until } from '../../support/fixtures.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { ordersOf } from '../../support/shop/truth.ts';

const SEGMENTS = 2;

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

/** All keys of the sale. */
const keysOf = (saleId: string) => [
  keys.sale(saleId),
  ...Array.from({ length: SEGMENTS }, (_, n) => Object.values(keys.of(saleId, n))).flat(),
];

const idOf = (outcome: Outcome) => ('orderId' in outcome ? outcome.orderId : '');

describe('to before the publication of its generation, after which it', () => {
  /** A sale in generation 2, and how Redis had it just before that was published. */
  async function rebuilt() {
    const { id } = await shop.sell({ stock: 10, segments: SEGMENTS, perBuyerLimit: 2 });
    const till = await shop.startEngine();
    let sync = await shop.startSync();
    const [first] = await till.buyAll(id, ['anna']);
    await sync.stop();
    let before = await keys.dump([]);
    const watched = intercept(shop.backend, async (call) => {
      if (call === 'sales.publish') before = await keys.dump(keysOf(id));
    });
    expect(await rebuildSale(shop.db, watched, id)).toMatchObject({ generation: 2 });
    sync = await shop.startSync();
    return { id, till, sync, annas: idOf(first!), goBack: () => keys.restore(keysOf(id), before) };
  }

  async function expectRebuiltAnew(id: string): Promise<void> {
    expect(await rebuildSale(shop.db, shop.backend, id)).toMatchObject({ generation: 3 });
    expect(await keys.left(id, SEGMENTS)).toBe((await shop.service.show(id)).remaining);
    expect((await shop.service.verify(id)).findings).toEqual([]);
  }

  test('has sold: the units are not for sale again', async () => {
    const { id, till, sync, goBack } = await rebuilt();
    const sold = async () => (await till.buyAll(id, buyers(3))).every(({ code }) => code === 'committed');
    await until(sold, { what: 'three are committed' });
    await sync.stop();
    await goBack();
    await expectRebuiltAnew(id);
  });

  test('has sold, and a rebuild that died has saved the orders: the units are not for sale again', async () => {
    const { id, till, sync, goBack } = await rebuilt();
    await sync.stop();
    const ofFirst = buyers(20).filter((buyer) => homeSegment(buyer, SEGMENTS) === 0);
    await till.buyAll(id, ofFirst.slice(0, 3), { awaitCommit: false });
    const dying = intercept(shop.backend, (call, args) => {
      const [positions] = args as [{ segment: number }[]];
      if (call === 'log.readLog' && positions[0]!.segment === 1) throw new Error('dead');
    });
    await expect(rebuildSale(shop.db, dying, id)).rejects.toThrow('dead');
    expect(await shop.service.show(id)).toMatchObject({ remaining: 6 });
    await goBack();
    await expectRebuiltAnew(id);
  });

  test('has taken an order back: its buyer holds it no more', async () => {
    const { id, till, sync, annas, goBack } = await rebuilt();
    await shop.orders(till.take).changeOrder(annas, { kind: 'cancel' }, BY);
    await until(async () => (await keys.left(id, SEGMENTS)) === 10, { what: 'the unit is back' });
    await sync.stop();
    await goBack();
    await expectRebuiltAnew(id);
  });

  test('has got units: they are there', async () => {
    const { id, sync, goBack } = await rebuilt();
    await shop.service.change(id, { action: 'top-up', units: 5 }, BY);
    expect(await keys.left(id, SEGMENTS)).toBe(14);
    await sync.stop();
    await goBack();
    await expectRebuiltAnew(id);
  });
});

/** Expects that the order of a purchase in the middle of a rebuild was accepted, and gets into Postgres once sync runs. */
async function expectSaved(saleId: string, late: Outcome | undefined): Promise<void> {
  expect(late?.code).toBe('accepted');
  const sync = await shop.startSync();
  await sync.ready;
  await until(async () => (await ordersOf(shop.databaseUrl, saleId)).has(idOf(late!)), {
    what: 'the order is in Postgres',
    timeoutMs: 10_000,
  });
  expect(sync.seen.losses).toEqual([]);
  expect((await shop.service.verify(saleId)).findings).toEqual([]);
}

describe('to before the freeze, while it is rebuilt', () => {
  test.each(['sales.loadSegment', 'sales.loadHoldings', 'sales.publish'])(
    'before %s: an order that is taken then is not lost',
    async (step) => {
      const { id } = await shop.sell({ stock: 10, segments: SEGMENTS });
      const till = await shop.startEngine();
      const copy = await keys.dump(keysOf(id));
      const goBackAndSell = async () => {
        await keys.restore(keysOf(id), copy);
        return till.buy(id, 'anna', { awaitCommit: false });
      };
      // Segments are loaded at the same time. All of them wait.
      let selling: Promise<Outcome> | undefined;
      const backend = intercept(shop.backend, async (call) => {
        if (call !== step) return;
        selling ??= goBackAndSell();
        await selling;
      });
      await rebuildSale(shop.db, backend, id).catch(() => {});
      await expectSaved(id, await selling);
    },
  );
});

describe('to an older generation that sells, while it is rebuilt', () => {
  test.each([
    { when: 'before anything is frozen', isOlderAtFirst: false },
    { when: 'after the older generation was salvaged', isOlderAtFirst: true },
  ])('$when: an order that is taken then is not lost', async ({ isOlderAtFirst }) => {
    const { id } = await shop.sell({ stock: 10, segments: SEGMENTS });
    const copy = await keys.dump(keysOf(id));
    expect(await rebuildSale(shop.db, shop.backend, id)).toMatchObject({ generation: 2 });
    if (isOlderAtFirst) await keys.restore(keysOf(id), copy);
    let late: Outcome | undefined;
    const backend = intercept(shop.backend, async (call, [, , generation]) => {
      if (call !== 'sales.freeze' || generation !== 2 || late) return;
      await keys.restore(keysOf(id), copy);
      late = await (await shop.startEngine()).buy(id, 'anna', { awaitCommit: false });
    });
    await rebuildSale(shop.db, backend, id).catch(() => {});
    await expectSaved(id, late);
  });

  test('with one segment alone, so that the record names the newer one: an order there is not lost', async () => {
    const { id } = await shop.sell({ stock: 10, segments: SEGMENTS });
    const till = await shop.startEngine();
    const ofSegment = Object.values(keys.of(id, homeSegment('anna', SEGMENTS)));
    const before = await keys.dump(ofSegment);
    const late = await till.buy(id, 'anna', { awaitCommit: false });
    const sold = await keys.dump(ofSegment);
    await keys.restore(ofSegment, before);
    expect(await rebuildSale(shop.db, shop.backend, id)).toMatchObject({ generation: 2, salvagedOrders: 0 });
    await keys.restore(ofSegment, sold);
    await expectSaved(id, late);
  });
});
