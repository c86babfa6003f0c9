/** What stockade_give_back and the functions of the expiry write: ended orders, their units, their places and events. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openFunctions, type Row, type Rows, run } from '../../../support/postgres/run-function.ts';

let client: pg.Client;
beforeAll(async () => {
  client = await openFunctions();
});
afterAll(() => client.end());

const SALES: readonly Row[] = [
  { id: 'b', stock: 20, live_orders: 8, generation: 5, draft_since: -5, archived_at: -100 },
  { id: 'a', stock: 10, live_orders: 7, generation: 4 },
  { id: 'c', stock: 30, live_orders: 9, generation: 6 },
];
const order = (
  order_id: number,
  sale_id: string,
  buyer_id: string,
  quantity: number,
  more: Row = {},
): Row => ({
  ...{ order_id, sale_id, buyer_id, quantity, ...more },
});
const ORDERS = [
  order(11, 'a', 'anna', 2),
  order(12, 'b', 'ben', 1),
  order(13, 'a', 'cleo', 1),
  order(14, 'a', 'dora', 4),
];
const back = (order_id: number, sale_id: string, buyer_id: string, units: number, reason: string): Row => ({
  ...{ order_id, sale_id, buyer_id, units, reason, created_at: 0, units_before: 0 },
  ...(sale_id === 'b' ? { generation: 5, applied_at: 0 } : { generation: 4 }),
});

const giveBack = (given: Rows, ids: readonly number[], became: string, without: readonly string[] = []) =>
  run(client, { given, sql: 'SELECT stockade_give_back($1, $2)', bindings: [ids, became], without });

describe('orders that end', () => {
  it.each(['cancelled', 'expired', 'refunded'])(
    'are %s, and their units come back to their sales',
    async (became) => {
      const { written, events, salesInTurn } = await giveBack(
        { sales: SALES, orders: ORDERS },
        [13, 12, 11],
        became,
      );
      const ended = { status: became, [`${became}_at`]: 0 };
      expect(written).toEqual({
        orders: { 11: ended, 12: ended, 13: ended },
        sales: {
          a: { stock: 13, live_orders: 5, draft_since: 0 },
          b: { stock: 21, live_orders: 7 },
        },
        stock_returns: {
          11: back(11, 'a', 'anna', 2, became),
          12: back(12, 'b', 'ben', 1, became),
          13: back(13, 'a', 'cleo', 1, became),
        },
      });
      expect(events).toEqual([`${became} 13 12 11`]);
      expect(salesInTurn).toEqual(['a', 'b']);
    },
  );

  it('keep the times of what they were before', async () => {
    const before = { cancelled_at: -3, expired_at: -4, refunded_at: -5 };
    for (const became of ['cancelled', 'expired', 'refunded']) {
      const { written } = await giveBack(
        { sales: SALES, orders: [order(11, 'a', 'anna', 2, before)] },
        [11],
        became,
      );
      expect(written.orders).toEqual({ 11: { status: became, [`${became}_at`]: 0 } });
    }
  });

  it('replace the return of a rejected order with the same id', async () => {
    const stock_returns = [
      {
        ...{ order_id: 11, sale_id: 'c', buyer_id: 'x', units: 9, reason: 'rejected: x', generation: 1 },
        ...{ created_at: -50, applied_at: -40, units_before: 3 },
      },
      { order_id: 10, sale_id: 'c', buyer_id: 'x', units: 9, reason: 'rejected: x', generation: 1 },
    ];
    const { written } = await giveBack({ sales: SALES, orders: ORDERS, stock_returns }, [11], 'cancelled');
    expect(written.stock_returns).toEqual({
      11: {
        ...{ sale_id: 'a', buyer_id: 'anna', units: 2, reason: 'cancelled', generation: 4 },
        ...{ created_at: 0, applied_at: null },
      },
    });
  });

  it('of many sales change these in the order of their ids, whatever the order of the orders', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `sale ${10 + ((i * 7) % 20)}`);
    const given = {
      sales: names.map((id) => ({ id, live_orders: 1 })),
      orders: names.map((name, i) => order(i + 1, name, 'anna', 1)),
    };
    for (const without of [[], ['sort']]) {
      const { salesInTurn } = await giveBack(
        given,
        names.map((_, i) => i + 1),
        'expired',
        without,
      );
      expect(salesInTurn).toEqual([...names].sort());
    }
  });
});

describe('offers that end', () => {
  const offered = (sale_id: string, number: number, buyer_id: string, more: Row = {}): Row => ({
    ...{ sale_id, number, buyer_id, state: 'offered', ...more },
  });
  const OFFERS = [
    order(11, 'a', 'anna', 2, { offer_of: 3 }),
    order(12, 'b', 'ben', 1, { offer_of: 4 }),
    ...ORDERS.slice(2, 3),
    order(14, 'a', 'dora', 4, { offer_of: 4 }),
  ];
  const PLACES = [
    offered('a', 3, 'anna', { order_id: 11 }),
    offered('a', 4, 'dora', { order_id: 14 }),
    offered('b', 3, 'eve'),
    offered('b', 4, 'ben', { order_id: 12 }),
  ];

  it.each([
    ['expired', 'lapsed', { state: 'lapsed', ended_at: 0 }],
    ['cancelled', 'declined', { state: 'left', reason: 'asked', ended_at: 0 }],
  ] as const)('end their places, and are announced beside other orders: %s', async (became, kind, ended) => {
    const given = { sales: SALES, orders: OFFERS, places: PLACES };
    const { written, events } = await giveBack(given, [13, 12, 11], became);
    expect(written.places).toEqual({ 'a 3': ended, 'b 4': ended });
    expect(written.orders).toEqual(
      Object.fromEntries([11, 12, 13].map((id) => [id, { status: became, [`${became}_at`]: 0 }])),
    );
    expect([...events].sort()).toEqual([`${became} 13`, `${kind} 12 11`]);
  });

  it('leave a place alone that has ended before', async () => {
    const places = [offered('a', 3, 'anna', { state: 'left', reason: 'limit', ended_at: -9 })];
    const { written, events } = await giveBack({ sales: SALES, orders: OFFERS, places }, [11], 'cancelled');
    expect(written.places).toBeUndefined();
    expect(events).toEqual(['declined 11']);
  });

  it('are announced in their order, as are the others', async () => {
    const ids = Array.from({ length: 60 }, (_, i) => 1000 - i);
    const isOffer = (id: number) => (id * 7) % 3 === 0;
    const orders = ids.map((id) => order(id, 'a', `buyer ${id}`, 1, isOffer(id) ? { offer_of: id } : {}));
    for (const without of [[], ['hashagg'], ['sort']]) {
      const { events } = await giveBack({ sales: SALES, orders }, ids, 'expired', without);
      expect([...events].sort()).toEqual([
        `expired ${ids.filter((id) => !isOffer(id)).join(' ')}`,
        `lapsed ${ids.filter(isOffer).join(' ')}`,
      ]);
    }
  });
});

describe.each([
  ['of nodes of 0.1.0', 'SELECT order_ids, due_since FROM stockade_expire_orders($1)'],
  ['by pages', "SELECT order_ids, due_since FROM stockade_expire_orders($1, '{}')"],
])('the expiry %s', (_, sql) => {
  const due = (order_id: number, expires_at: number, more: Row = {}) =>
    order(order_id, 'a', `buyer ${order_id}`, 1, { expires_at, ...more });
  const expire = (given: Rows, most: number, without: readonly string[] = []) =>
    run(client, {
      given: { sales: SALES, ...given },
      sql,
      bindings: [most],
      without,
    });

  it.each([[[]], [['indexscan', 'bitmapscan']], [['seqscan', 'sort']]])(
    'ends at most the given number of orders, the longest overdue first (without %j)',
    async (without) => {
      const orders = [due(21, -3), due(22, -5), due(23, -1), due(24, -4), due(25, -2)];
      const { returned, written, events } = await expire({ orders }, 2, without);
      expect(returned).toEqual([{ order_ids: ['22', '24'], due_since: -5 }]);
      const ended = { status: 'expired', expired_at: 0 };
      expect(written).toMatchObject({
        orders: { 22: ended, 24: ended },
        sales: { a: { stock: 12, live_orders: 5 } },
      });
      expect(Object.keys(written.orders!)).toEqual(['22', '24']);
      expect(events).toEqual(['expired 22 24']);
    },
  );

  it.each<[string, Row, boolean]>([
    ['that is due now', {}, true],
    ['that is due later', { expires_at: 1 }, false],
    ['without an end', { expires_at: null }, false],
    ['that is paid', { status: 'paid' }, false],
    ['that is an offer', { offer_of: 3 }, true],
    ['of a paused sale', { sale_id: 'paused' }, true],
    ['that is an offer of a paused sale', { sale_id: 'paused', offer_of: 3 }, false],
    ['of a sale that is being deleted', { sale_id: 'deleting' }, false],
    ['that is an offer of a sale that is being deleted', { sale_id: 'deleting', offer_of: 3 }, false],
  ])('meets an order %s: %o: %s', async (_, more, isEnded) => {
    const sales = [
      ...SALES,
      { id: 'paused', state: 'paused', live_orders: 1 },
      { id: 'deleting', deleting_since: -1, live_orders: 1 },
    ];
    const { returned, written } = await expire({ sales, orders: [due(21, 0, more)] }, 9);
    expect(returned).toEqual([isEnded ? { order_ids: ['21'], due_since: 0 } : { order_ids: [] }]);
    expect(written.orders).toEqual(isEnded ? { 21: { status: 'expired', expired_at: 0 } } : undefined);
  });
});

describe('the expiry of given orders', () => {
  const dueIn = (saleId: string, more: Row = {}) => ({
    order_id: 21,
    sale_id: saleId,
    expires_at: 0,
    ...more,
  });

  it.each<[string, Row, boolean]>([
    ['that is due now', dueIn('a'), true],
    ['that is an offer', dueIn('a', { offer_of: 3 }), true],
    ['that was not given', dueIn('a', { order_id: 22 }), false],
    ['of another sale', dueIn('b'), false],
    ['that is due later', dueIn('a', { expires_at: 1 }), false],
    ['that was paid meanwhile', dueIn('a', { status: 'paid' }), false],
  ])('meets an order %s: %o: %s', async (_, more, isEnded) => {
    const { returned, written } = await given('a', more);
    expect(returned).toEqual([isEnded ? { order_ids: ['21'], due_since: 0 } : { order_ids: [] }]);
    expect(written.orders).toEqual(isEnded ? { 21: { status: 'expired', expired_at: 0 } } : undefined);
    expect(written.sales).toEqual(isEnded ? { a: { stock: 11, live_orders: 6, draft_since: 0 } } : undefined);
  });

  it.each<[string, Row, boolean]>([
    ['paused', { state: 'paused' }, true],
    ['being deleted', { deleting_since: -1 }, false],
  ])('of a sale that is %s', async (_, more, isEnded) => {
    const sale = { id: 's', live_orders: 1, ...more };
    expect((await given('s', dueIn('s'), [sale])).returned).toMatchObject([
      { order_ids: isEnded ? ['21'] : [] },
    ]);
    expect((await given('s', dueIn('s', { offer_of: 3 }), [sale])).returned).toEqual([{ order_ids: [] }]);
  });

  const given = (saleId: string, one: Row, sales: readonly Row[] = []) =>
    run(client, {
      given: { sales: [...SALES, ...sales], orders: [{ buyer_id: 'anna', quantity: 1, ...one }] },
      sql: 'SELECT order_ids, due_since FROM stockade_expire_given($1, $2, 100)',
      bindings: [[21], saleId],
    });
});
