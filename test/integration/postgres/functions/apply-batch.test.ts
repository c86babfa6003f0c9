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

  describe('of many sales', () => {
    const names = Array.from({ length: 20 }, (_, i) => `sale ${(i * 7) % 20}`);
    const sales = [...SALES, ...names.map((id) => ({ id, live_orders: 0, stock: 3, draft_since: 5 }))];
    const unitsOf = (i: number) => i % 4;
    const batchOf = (most: number): Batch => ({
      sales: names.slice(0, most).map((name, i) => [name, unitsOf(i)] as const),
      orders: names
        .slice(0, most)
        .flatMap((_, i) =>
          Array.from({ length: unitsOf(i) }, (_, n): Order => [100 * i + n + 1, i + 1, `buyer ${n}`, 1]),
        ),
    });
    const PLANS = [[], ['sort'], ['hashagg'], ['hashjoin', 'nestloop'], ['hashjoin', 'mergejoin']];

    // Seven sales are changed one after the other, eight or more in one statement.
    it.each([
      [7, 7],
      [8, 1],
      [20, 1],
    ])('counts the orders of each of %i sales, which %i statements change', async (most, statements) => {
      for (const without of PLANS) {
        const { written, salesInTurn, salesStatements } = await apply(
          client,
          batchOf(most),
          { sales },
          without,
        );
        expect(salesStatements).toBe(statements);
        if (statements > 1) expect(salesInTurn).toEqual(names.slice(0, most));
        expect(written.sales).toEqual(
          Object.fromEntries(
            names.slice(0, most).map((name, i) => [
              name,
              {
                draft_since: 0,
                ...(unitsOf(i) > 0 && { stock: 3 - unitsOf(i), live_orders: unitsOf(i) }),
              },
            ]),
          ),
        );
      }
    });

    it('names the first that has too few units', async () => {
      const short = batchOf(20).sales.map(
        ([id, units], i) => [id, i === 12 ? 5 : i === 9 ? 4 : units] as const,
      );
      const { code, message } = await apply(client, { sales: short }, { sales });
      expect([code, message]).toEqual(['SK002', 'sale sale 3 has fewer than 4 units']);
    });

    it('applies the limit of each', async () => {
      const BUY: readonly Order[] = [
        [11, 2, 'anna', 2],
        [12, 9, 'anna', 2],
      ];
      const limited = (limit: number) =>
        sales.map((sale) => ({ ...sale, per_buyer_limit: 'id' in sale && sale.id === names[8] ? limit : 2 }));
      const batch = { sales: batchOf(20).sales.map(([id]) => [id, 2] as const), orders: BUY };
      expect((await apply(client, batch, { sales: limited(2) })).code).toBeUndefined();
      const held = { order_id: 5, sale_id: names[8], buyer_id: 'anna', one_per_buyer: false, status: 'paid' };
      const over = await apply(client, batch, { sales: limited(3), orders: [{ ...held, quantity: 2 }] });
      expect(over.code).toBe('SK003');
    });
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
      'more units than some of its sales have',
      {
        sales: [
          ['c', 2],
          ['b', 21],
          ['a', 11],
        ],
      },
      'SK002',
      /^sale b has fewer than 21 units$/,
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
