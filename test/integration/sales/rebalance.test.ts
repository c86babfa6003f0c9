/** A rebalance by an operator and by the timer, on each backend: fewer refills, and never a unit more or less. */
import { describe, expect, test } from 'vitest';
import { NO_ENTRY } from '../../../src/engine/contract.ts';
import { homeSegment } from '../../../src/engine/sale/home-segment.ts';
import { rebalanceSale } from '../../../src/sales/rebalance.ts';
import { BY } from '../../support/author.ts';
import { deathAt, intercept } from '../../support/engine/intercept.ts';
import { until } from '../../support/fixtures.ts';
import { kinds } from '../../support/shop/sales.ts';
import { Shop } from '../../support/shop/shop.ts';

const SEGMENTS = 4;

/** Buyers whose home is this segment. */
function crowdOf(segment: number, count: number): string[] {
  const found: string[] = [];
  for (let i = 0; found.length < count; i++) {
    if (homeSegment(`buyer-${i}`, SEGMENTS) === segment) found.push(`buyer-${i}`);
  }
  return found;
}

const leftsIn = async (shop: Shop, saleId: string) =>
  (await shop.backend.sales.snapshot(saleId, SEGMENTS, 1)).map(({ counters }) => counters?.left);

describe.each(['redis', 'memory'] as const)('%s', (kind) => {
  test('an operator evens out segments after purchases from one of them', async () => {
    await using shop = await Shop.open({ backend: kind });
    const unevenSale = await sold(shop, 20);
    const { id } = unevenSale;
    expect(await leftsIn(shop, id)).toEqual([5, 25, 25, 25]);

    const planned = await rebalanceSale(shop.db, shop.backend, id, { dryRun: true });
    expect(planned).toMatchObject({ dryRun: true, before: [5, 25, 25, 25], after: [20, 20, 20, 20] });
    expect(planned.moves).toHaveLength(3);
    expect(await leftsIn(shop, id)).toEqual([5, 25, 25, 25]);

    const made = await rebalanceSale(shop.db, shop.backend, id, { dryRun: false });
    expect(made).toEqual({ ...planned, dryRun: false });
    expect(await leftsIn(shop, id)).toEqual([20, 20, 20, 20]);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true });
  });

  test('one that dies between two moves leaves no move half done', async () => {
    await using shop = await Shop.open({ backend: kind });
    const unevenSale = await sold(shop, 20);
    let transfers = 0;
    const { before, death } = deathAt((call) => call === 'transfers.transfer' && ++transfers === 2);
    void rebalanceSale(shop.db, intercept(shop.backend, before), unevenSale.id, { dryRun: false });
    await death;
    expect(await leftsIn(shop, unevenSale.id)).toEqual([10, 20, 25, 25]);
    expect(await shop.service.verify(unevenSale.id)).toMatchObject({ ok: true });
  });

  test('the timer evens out a sale that sells, and does nothing when it is even', async () => {
    await using shop = await Shop.open({ backend: kind });
    const unevenSale = await sold(shop, 20);
    const { seen } = await shop.startSync({ rebalanceEveryMs: 5 });
    await until(() => seen.transfers.length > 0, { what: 'a rebalance' });
    expect(seen.transfers[0]).toEqual({ saleId: unevenSale.id, why: 'uneven', moves: 3, units: 15 });
    expect(await leftsIn(shop, unevenSale.id)).toEqual([20, 20, 20, 20]);
    await unevenSale.buy(1, 20);
    await until(() => seen.orders === 21, { what: 'the last order in Postgres' });
    expect(seen.transfers).toHaveLength(1);
    expect(await shop.service.verify(unevenSale.id)).toMatchObject({ ok: true });
    expect(seen.failures).toEqual([]);
  });

  test('a paused sale is not rebalanced', async () => {
    await using shop = await Shop.open({ backend: kind });
    const unevenSale = await sold(shop, 20);
    const { id } = unevenSale;
    await shop.service.change(id, { action: 'pause' }, BY);
    const { seen } = await shop.startSync({ rebalanceEveryMs: 1 });
    await until(() => seen.sweeps > 1, { what: 'two sweeps' });
    expect(seen.transfers).toEqual([]);
    expect(await leftsIn(shop, id)).toEqual([5, 25, 25, 25]);
  });
});

/** A sale of 100 units in four segments, of which buyers at segment 0 have bought some. */
async function sold(shop: Shop, units: number) {
  const { id } = await shop.sell({ stock: 100, segments: SEGMENTS });
  let [lane, order] = [0, 1000];
  const buy = async (count: number, after = 0) => {
    const orders = crowdOf(0, after + count)
      .slice(after)
      .map((buyerId) => ({ orderId: String(++order), buyerId, quantity: 1, key: '' }));
    const batch = { saleId: id, segment: 0, generation: 1, ticket: 1, answeredTicket: 0, newest: NO_ENTRY };
    const reply = await shop.backend.takes.take({ ...batch, lane: ++lane, orders });
    expect(kinds(reply).every((kind) => kind === 'taken')).toBe(true);
    shop.backend.takes.hint({ saleId: id, segments: [0], awaited: true });
  };
  await buy(units);
  return { id, buy };
}
