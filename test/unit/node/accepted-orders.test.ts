import { describe, expect, it } from 'vitest';
import type { SaleView } from '../../../src/engine/board/directory.ts';
import { OrderIds } from '../../../src/engine/order-id.ts';
import { AcceptedOrders, type AcceptedOrdersParts } from '../../../src/node/worker/accepted-orders.ts';
import type { Database } from '../../../src/postgres/database.ts';

const VIEW = {} as SaleView;
const FOUND = { saleId: 'well', quantity: 2 };
const recent = new OrderIds({ key: new Uint8Array(32), worker: 1 }).next();
const HOUR_MS = 3_600_000;
const ofAge = (ms: number) =>
  new OrderIds({ key: new Uint8Array(32), worker: 1, now: () => Date.now() - ms }).next();

/** @param sick sales that can't be looked at */
function withSales(found: typeof FOUND | undefined, sick: readonly string[] = [], saleMs = 10_000) {
  const looks: string[] = [];
  const parts: AcceptedOrdersParts = {
    db: { raw: async () => ({ rows: [{ id: sick[0] ?? 'sick' }, { id: 'well' }] }) } as unknown as Database,
    engine: {
      view: async (saleId) => {
        if (saleId === 'silent') return new Promise(() => {});
        if (saleId === 'unseen') return undefined;
        if (sick.includes(saleId)) throw new Error(`${saleId} is away`);
        return VIEW;
      },
      findOrder: async (buyerId, orderId) => {
        looks.push(`${buyerId} ${orderId}`);
        return found;
      },
    },
    guarded: (work) => work(),
    saleMs,
  };
  return { accepted: new AcceptedOrders(parts), looks };
}

describe('an accepted order', () => {
  it('is found although another sale can’t be read', async () => {
    const { accepted } = withSales(FOUND, ['sick']);
    expect(await accepted.find('ann', recent)).toEqual(FOUND);
  });

  it('is found although another sale does not answer', async () => {
    const { accepted } = withSales(FOUND, ['silent'], 10);
    expect(await accepted.find('ann', recent)).toEqual(FOUND);
  });

  it('is not called unknown while a sale that may have it can’t be read', async () => {
    const { accepted, looks } = withSales(undefined, ['sick']);
    for (let i = 0; i < 2; i++) await expect(accepted.find('ann', recent)).rejects.toThrow('sick is away');
    expect(looks).toHaveLength(2);
  });

  it('is not called unknown while this node does not know a sale of Postgres', async () => {
    const { accepted } = withSales(undefined, ['unseen']);
    await expect(accepted.find('ann', recent)).rejects.toThrow('sale unseen is not known here yet');
  });

  it('that is in no record is not searched for again at once, except for another buyer', async () => {
    const { accepted, looks } = withSales(undefined);
    for (const buyer of ['ann', 'ann', 'ben']) expect(await accepted.find(buyer, recent)).toBeUndefined();
    expect(looks).toEqual([`ann ${recent}`, `ben ${recent}`]);
  });

  it('is found although its id comes from a clock that is hours ahead', async () => {
    expect(await withSales(FOUND).accepted.find('ann', ofAge(-HOUR_MS * 5))).toEqual(FOUND);
  });

  it.each([
    ['a day and more ago', 25 * HOUR_MS],
    ['two days from now', -48 * HOUR_MS],
  ])('is not searched for if the time in its id is %s', async (_, ageMs) => {
    const { accepted, looks } = withSales(FOUND);
    expect(await accepted.find('ann', ofAge(ageMs))).toBeUndefined();
    expect(looks).toEqual([]);
  });
});
