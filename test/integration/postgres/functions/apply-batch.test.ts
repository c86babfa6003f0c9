/** What stockade_apply_batch writes: orders, units, cursors and events. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apply, type Batch, FROM_A, newOrder, type Order, SALES } from '../../../support/postgres/batches.ts';
import { openFunctions, type Row } from '../../../support/postgres/run-function.ts';

let client: pg.Client;
beforeAll(async () => {
  client = await openFunctions();
});
afterAll(() => client.end());

describe('a batch', () => {
  it('inserts its orders by the rules of their sales, takes their units and moves the cursors', async () => {
    const batch: Batch = {
      sales: [
        ['b', 5],
        ['c', 0],
        ['a', 2],
      ],
      cursors: [FROM_A, ['b', 0, 4, 6, 7, '1007', 24, 5]],
      orders: [
        [13, 3, 'anna', 1, 'k1', { reference: 'ref 1' }],
        [11, 1, 'anna', 2],
        [12, 3, 'ben', 1, undefined, { metadata: { x: 1 } }],
        [14, 1, 'ben', 3],
      ],
    };
    const expected = {
      sales: {
        b: { stock: 15, live_orders: 10 },
        c: { draft_since: 0 },
        a: { stock: 8, live_orders: 9, draft_since: 0 },
      },
      segment_cursors: {
        'a 1': { position: 8, tail: '1008', orders: 27, units: 32 },
        'b 0': { position: 7, tail: '1007', units: 35 },
      },
      orders: {
        13: newOrder(13, 'a', 'anna', 60, { idempotency_key: 'k1', reference: 'ref 1' }),
        11: newOrder(11, 'b', 'anna', 90, { quantity: 2 }),
        12: newOrder(12, 'a', 'ben', 60, { metadata: { x: 1 } }),
        14: newOrder(14, 'b', 'ben', 90, { quantity: 3 }),
      },
    };
    // However Postgres joins and groups the rows.
    for (const without of [[], ['hashjoin', 'nestloop'], ['mergejoin', 'nestloop'], ['sort']]) {
      const { code, written, events } = await apply(client, batch, {}, without);
      expect(code).toBeUndefined();
      expect(written).toEqual(expected);
      expect(events).toEqual(['committed 13 11 12 14']);
    }
  });

  it('counts the orders of each of many sales, and changes the sales in the given order', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `sale ${(i * 7) % 20}`);
    const orders = names.flatMap((_, i) =>
      Array.from({ length: i % 4 }, (_, n): Order => [100 * i + n + 1, i + 1, `buyer ${n}`, 1]),
    );
    const batch: Batch = { sales: names.map((name, i) => [name, i % 4] as const), orders };
    const sales = names.map((id) => ({ id, live_orders: 0, stock: 3 }));
    for (const without of [[], ['sort'], ['hashagg']]) {
      const { written, salesInTurn } = await apply(client, batch, { sales: [...SALES, ...sales] }, without);
      expect(salesInTurn).toEqual(names);
      expect(written.sales).toEqual(
        Object.fromEntries(
          names.map((name, i) => [
            name,
            { draft_since: 0, ...(i % 4 > 0 && { stock: 3 - (i % 4), live_orders: i % 4 }) },
          ]),
        ),
      );
    }
  });

  it.each([true, false])('of one order is applied (without a list of notes: %s)', async (withoutNotes) => {
    const { written, events } = await apply(client, {
      sales: [['a', 10]],
      orders: [[11, 1, 'anna', 10]],
      withoutNotes,
    });
    expect(written).toEqual({
      sales: { a: { stock: 0, live_orders: 8, draft_since: 0 } },
      orders: { 11: newOrder(11, 'a', 'anna', 60, { quantity: 10 }) },
    });
    expect(events).toEqual(['committed 11']);
  });

  it('without orders moves a cursor, and makes no event', async () => {
    const { written, events } = await apply(client, { sales: [], cursors: [FROM_A] });
    expect(written).toEqual({
      segment_cursors: { 'a 1': { position: 8, tail: '1008', orders: 27, units: 32 } },
    });
    expect(events).toEqual([]);
  });

  it.each<[string, Batch, string, RegExp]>([
    ['more units than the sale has', { sales: [['a', 11]] }, 'SK002', /a has fewer than 11/],
    [
      'a sale that does not exist, beside orders of another',
      {
        sales: [
          ['x', 0],
          ['a', 1],
        ],
        orders: [[11, 2, 'anna', 1]],
      },
      'SK002',
      /sale x/,
    ],
    [
      'one cursor that is elsewhere, of two',
      { sales: [], cursors: [FROM_A, ['b', 0, 4, 5, 7, '1007', 26, 1]] },
      'SK001',
      /^1 of 2 /,
    ],
    [
      'a cursor of an older generation',
      { sales: [], cursors: [['a', 1, 3, 6, 8, '8', 27, 2]] },
      'SK001',
      /./,
    ],
    ['a cursor of another segment', { sales: [], cursors: [['a', 2, 4, 6, 8, '8', 27, 2]] }, 'SK001', /./],
    ['a cursor of another sale', { sales: [], cursors: [['x', 1, 4, 6, 8, '8', 27, 2]] }, 'SK001', /./],
  ])('is refused with %s', async (_, batch, code, message) => {
    const refused = await apply(client, batch);
    expect(refused).toMatchObject({ code, message: expect.stringMatching(message) });
  });
});

describe('the limit of a buyer', () => {
  const held = (order_id: number, more: Row): Row => ({
    ...{ order_id, sale_id: 'b', buyer_id: 'anna', status: 'unpaid', one_per_buyer: false, ...more },
  });
  /** What does not count. */
  const OTHERS = [true, false].flatMap((one_per_buyer, i) => [
    held(1 + 10 * i, { sale_id: 'c', quantity: 3, one_per_buyer }),
    held(2 + 10 * i, { buyer_id: 'ben', quantity: 3, one_per_buyer }),
    held(3 + 10 * i, { status: 'cancelled', quantity: 3, one_per_buyer }),
  ]);
  const BUY: Batch = { sales: [['b', 1]], orders: [[50, 1, 'anna', 1]] };
  const BUY_IN_TWO: Batch = {
    sales: [
      ['c', 1],
      ['b', 1],
    ],
    orders: [
      [49, 1, 'dora', 1],
      [50, 2, 'anna', 1],
    ],
  };
  const LIMIT_2 = { ...SALES[2], per_buyer_limit: 2 };

  it.each<[string, Batch, readonly Row[], string | undefined]>([
    ['is reached with older orders', BUY, [held(40, { quantity: 2 })], undefined],
    [
      'is reached with an order from when it was 1',
      BUY,
      [held(40, { quantity: 2, one_per_buyer: true })],
      undefined,
    ],
    ['is passed with older orders', BUY, [held(40, { quantity: 3 })], 'SK003'],
    ['is passed with paid orders', BUY, [held(40, { quantity: 3, status: 'paid' })], 'SK003'],
    [
      'is passed with a redeemed order from when it was 1',
      BUY,
      [held(40, { quantity: 3, one_per_buyer: true, status: 'redeemed' })],
      'SK003',
    ],
    [
      'is passed with both kinds of orders',
      BUY,
      [held(40, { one_per_buyer: true }), held(41, { quantity: 2 })],
      'SK003',
    ],
    ['is passed beside orders of another sale', BUY_IN_TWO, [held(40, { quantity: 3 })], 'SK003'],
    ['is reached beside orders of another sale', BUY_IN_TWO, [held(40, { quantity: 2 })], undefined],
    [
      'is reached by two orders of a batch',
      {
        sales: [['b', 3]],
        orders: [
          [50, 1, 'anna', 1],
          [51, 1, 'anna', 2],
        ],
      },
      [],
      undefined,
    ],
    [
      'is passed by two orders of a batch',
      {
        sales: [['b', 4]],
        orders: [
          [50, 1, 'anna', 2],
          [51, 1, 'anna', 2],
        ],
      },
      [],
      'SK003',
    ],
  ])('%s', async (_, batch, orders, code) => {
    expect((await apply(client, batch, { orders: [...OTHERS, ...orders] })).code).toBe(code);
  });

  it('is 2: passed by three units', async () => {
    const sales = [...SALES.slice(0, 2), LIMIT_2];
    expect((await apply(client, BUY, { sales, orders: [held(40, { quantity: 2 })] })).code).toBe('SK003');
    expect((await apply(client, BUY, { sales, orders: [held(40, {})] })).code).toBeUndefined();
    const only = await apply(client, BUY_IN_TWO, { sales, orders: [held(40, { quantity: 2 })] });
    expect(only.code).toBe('SK003');
  });

  it('is 1: the buyer’s second order is refused', async () => {
    const second: Batch = { sales: [['a', 1]], orders: [[50, 1, 'anna', 1]] };
    const first = (more: Row) => held(40, { sale_id: 'a', one_per_buyer: true, ...more });
    expect((await apply(client, second, { orders: [first({})] })).code).toBe('23505');
    expect((await apply(client, second, { orders: [first({ status: 'expired' })] })).code).toBeUndefined();
  });
});
