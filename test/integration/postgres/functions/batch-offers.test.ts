/** What stockade_apply_batch writes for orders that are offers to places of a queue. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apply, type Batch, newOrder, type Order, SALES } from '../../../support/postgres/batches.ts';
import { openFunctions, type Row } from '../../../support/postgres/run-function.ts';

let client: pg.Client;
beforeAll(async () => {
  client = await openFunctions();
});
afterAll(() => client.end());

describe('offers in a batch', () => {
  const place = (sale_id: string, number: number, buyer_id: string, more: Row = {}) => ({
    ...{ sale_id, number, buyer_id, ...more },
  });
  const PLACES = [
    place('b', 3, 'anna'),
    place('a', 4, 'ben'),
    place('a', 3, 'anna'),
    place('b', 4, 'ben'),
    place('c', 3, 'cleo'),
  ];
  const OFFERS: Batch = {
    sales: [
      ['b', 2],
      ['a', 2],
    ],
    orders: [
      [14, 2, 'cleo', 1, undefined, { reference: 'ref 1' }],
      [13, 2, 'ben', 1, undefined, { place: 4 }],
      [12, 1, 'dora', 1],
      [11, 1, 'anna', 1, undefined, { place: 3 }],
    ],
  };

  it('are noted at their orders and places, and announced as offers', async () => {
    const older = [{ order_id: 5, sale_id: 'a', buyer_id: 'eve', expires_at: 7 }];
    for (const without of [[], ['hashjoin'], ['nestloop', 'hashjoin']]) {
      const { written, events } = await apply(client, OFFERS, { places: PLACES, orders: older }, without);
      expect(written.orders).toEqual({
        14: newOrder(14, 'a', 'cleo', 60, { reference: 'ref 1' }),
        13: newOrder(13, 'a', 'ben', 20, { offer_of: 4 }),
        12: newOrder(12, 'b', 'dora', 90),
        11: newOrder(11, 'b', 'anna', 30, { offer_of: 3 }),
      });
      expect(written.places).toEqual({
        'a 4': { state: 'offered', order_id: 13 },
        'b 3': { state: 'offered', order_id: 11 },
      });
      expect([...events].sort()).toEqual(['committed 14 12', 'offered 13 11']);
    }
  });

  it('are announced in their order, as are the others', async () => {
    const all = Array.from({ length: 60 }, (_, i) => 1000 - i);
    const isOffer = (id: number) => (id * 7) % 3 === 0;
    const orders = all.map((id): Order => {
      return [id, 1, `buyer ${id}`, 1, undefined, isOffer(id) ? { place: id } : undefined];
    });
    const places = all.filter(isOffer).map((id) => place('b', id, `buyer ${id}`));
    const sales = [{ id: 'b', stock: 60, queue: 'fifo' }];
    for (const without of [[], ['hashagg'], ['sort']]) {
      const batch: Batch = { sales: [['b', 60]], orders };
      const { events } = await apply(client, batch, { sales, segment_cursors: [], places }, without);
      expect([...events].sort()).toEqual([
        `committed ${all.filter((id) => !isOffer(id)).join(' ')}`,
        `offered ${all.filter(isOffer).join(' ')}`,
      ]);
    }
  });

  it.each<[string, Row]>([
    ['waits no longer', { state: 'left', reason: 'absent' }],
    ['has an offer', { state: 'offered' }],
    ['is another buyer’s', { buyer_id: 'eve' }],
    ['has another number', { number: 9 }],
    ['is in another sale', { sale_id: 'c' }],
  ])('are refused if one of the places %s', async (_, more) => {
    const places = [{ ...place('b', 3, 'anna'), ...more }, ...PLACES.slice(1, 4)];
    expect(await apply(client, OFFERS, { places })).toMatchObject({
      ...{ code: 'SK003', message: expect.stringMatching(/^1 of 2 places/) },
    });
  });

  it.each<[string, Row]>([
    ['has no queue any more', { queue: 'off' }],
    ['is closed', { state: 'closed' }],
    ['is over', { ends_at: -1 }],
  ])('are refused if their sale %s', async (_, more) => {
    const sales = SALES.map((sale) => (sale.id === 'b' ? { ...sale, ...more } : sale));
    expect(await apply(client, OFFERS, { places: PLACES, sales })).toMatchObject({
      ...{ code: 'SK003', message: expect.stringMatching(/^1 of 2 places/) },
    });
  });
});
