/** The queues of a shop embedded in this process: places, offers, and what is refused. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { BuyersPlace, OpenOptions, open, PlaceOutcome, Shop } from '../../../src/index.ts';
import { freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { LONG_TIMEOUTS } from '../../support/long-timeouts.ts';
import { QUEUE } from '../../support/shop/queue.ts';
import { inTier } from '../../support/tier.ts';

const LATER = new Date(Date.now() + 3_600_000).toISOString();

function placeIn(outcome: PlaceOutcome): BuyersPlace {
  if (outcome.code !== 'place') throw new Error(`no place, but ${JSON.stringify(outcome)}`);
  return outcome;
}

const stores: [string, boolean][] = [
  ['on Redis and Postgres', true],
  ['in this process', false],
];

describe.each(inTier({ test: stores.slice(0, 1), release: stores }))('%s', (_, isShared) => {
  let shop: Shop;
  let sales = 0;

  beforeAll(async () => {
    const stores: OpenOptions = isShared
      ? { redisUrl: redisUrl(), databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() }
      : {};
    // As it is installed: PGlite runs in a thread, which has no TypeScript.
    const entry: { open: typeof open } = await import('../../../dist/index.js' as string);
    shop = await entry.open({ ...LONG_TIMEOUTS, ...stores });
  });
  afterAll(() => shop?.close());

  const sell = async (sale: object = QUEUE) => {
    const id = `queue-${++sales}`;
    await shop.sales.create({ id, stock: 1, ...sale });
    return id;
  };
  const look = async (saleId: string, buyerId: string) =>
    placeIn(await shop.places.show({ saleId, buyerId }));
  const untilState = async (saleId: string, buyerId: string, state: BuyersPlace['state']) => {
    await until(async () => (await look(saleId, buyerId)).state === state, {
      what: `${buyerId} is told ${state}`,
    });
    return look(saleId, buyerId);
  };

  test('a unit goes from one place to the next, until its offer is accepted', async () => {
    const saleId = await sell();
    expect(await shop.purchase({ saleId, buyerId: 'ann' })).toEqual({ code: 'offer_required' });
    expect(await shop.places.join({ saleId, buyerId: 'ann' })).toMatchObject({ code: 'place', number: 1 });
    const { offer: declined } = await untilState(saleId, 'ann', 'offered');
    expect(declined).toEqual({
      ...{ orderId: expect.stringMatching(/^\d+$/), quantity: 1 },
      until: expect.any(Number),
    });
    const bob = placeIn(await shop.places.join({ saleId, buyerId: 'bob' }));
    expect(bob).toMatchObject({ number: 2, rank: 2, quantity: 1 });
    expect(await shop.places.join({ saleId, buyerId: 'bob' })).toMatchObject({ number: 2 });
    expect(await shop.places.show({ saleId, buyerId: 'bob' }, bob)).toMatchObject({ number: 2 });

    expect(await shop.places.leave({ saleId, buyerId: 'ann' })).toMatchObject({
      ...{ code: 'place', number: 1, state: 'left', reason: 'asked' },
    });
    expect(await shop.places.accept({ buyerId: 'ann', offer: declined! })).toEqual({ code: 'offer_ended' });
    const { offer } = await untilState(saleId, 'bob', 'offered');
    const acceptance = { buyerId: 'bob', offer: offer!, reference: 'cart-7' };
    expect(await shop.places.accept({ ...acceptance, buyerId: 'eve' })).toEqual({ code: 'offer_ended' });
    const committed = { code: 'committed', orderId: offer!.orderId, quantity: 1 };
    expect(await shop.places.accept(acceptance)).toEqual(committed);
    expect(await shop.places.accept(acceptance)).toEqual(committed);
    expect(await untilState(saleId, 'bob', 'bought')).not.toHaveProperty('offer');
    expect(await shop.orders.show(offer!.orderId)).toMatchObject({
      order: { buyerId: 'bob', status: 'unpaid', reference: 'cart-7' },
    });
    expect(await shop.sales.verify(saleId)).toMatchObject({ ok: true });
    expect(await shop.metrics()).toMatch(/^stockade_queue_offers_total [1-9]/m);
  });

  test('who waits is told how many are ahead, and who has no place is told so', async () => {
    const saleId = await sell({ ...QUEUE, startsAt: LATER, perBuyerLimit: 3 });
    await shop.places.join({ saleId, buyerId: 'ann', quantity: 3 });
    const bob = placeIn(await shop.places.join({ saleId, buyerId: 'bob' }));
    expect(bob).toMatchObject({ state: 'waiting', rank: 2, ahead: 1 });
    // The second answer is from memory.
    for (let i = 0; i < 2; i++)
      expect(await shop.places.show({ saleId, buyerId: 'bob' }, bob)).toMatchObject({ rank: 2, ahead: 1 });
    expect(await shop.places.show({ saleId, buyerId: 'cy' })).toEqual({ code: 'no_place' });
    expect(await shop.places.leave({ saleId, buyerId: 'cy' })).toEqual({ code: 'no_place' });
  });

  test('an offer of a paused sale can be accepted when it is resumed', async () => {
    const saleId = await sell();
    await shop.places.join({ saleId, buyerId: 'ann' });
    const { offer } = await untilState(saleId, 'ann', 'offered');
    await shop.sales.change(saleId, { action: 'pause' });
    const acceptance = { buyerId: 'ann', offer: offer! };
    expect(await shop.places.accept(acceptance)).toEqual({ code: 'paused' });
    await shop.sales.change(saleId, { action: 'resume' });
    expect(await shop.places.accept(acceptance)).toMatchObject({ code: 'committed' });
  });

  test('who holds as many units as the sale allows gets no place', async () => {
    const saleId = await sell({ ...QUEUE, stock: 2 });
    await shop.places.join({ saleId, buyerId: 'ann' });
    const { offer } = await untilState(saleId, 'ann', 'offered');
    await shop.places.accept({ buyerId: 'ann', offer: offer! });
    expect(await shop.places.join({ saleId, buyerId: 'ann' })).toEqual({
      ...{ code: 'limit_reached', limit: 1 },
      orderIds: [offer!.orderId],
    });
  });

  test('what a buyer may have asked for is refused by an outcome', async () => {
    const buyerId = 'ann';
    const saleId = await sell({ ...QUEUE, maxWaiting: 1, startsAt: LATER, perBuyerLimit: 2 });
    const join = (wish: object) => shop.places.join({ saleId, buyerId, ...wish });
    expect(await join({ saleId: 'none' })).toEqual({ code: 'unknown_sale' });
    expect(await join({ saleId: '../x' })).toEqual({ code: 'unknown_sale' });
    for (const quantity of [0, 3, 1.5])
      expect(await join({ quantity })).toEqual({
        code: 'invalid_request',
        detail: 'quantity must be a whole number from 1 to 2',
      });
    expect(await join({ buyerId: 'an n' })).toMatchObject({ code: 'invalid_request' });
    expect(await join({})).toMatchObject({ code: 'place' });
    expect(await join({ buyerId: 'bob' })).toEqual({ code: 'queue_full' });
    expect(await join({ saleId: await sell({}) })).toEqual({ code: 'no_queue' });
    const over = await sell();
    await shop.sales.change(over, { action: 'close' });
    await until(async () => (await join({ saleId: over })).code === 'ended', { what: 'the sale is over' });
  });

  test('what only the program can have got wrong is refused by an error', async () => {
    const { places } = shop;
    for (const [call, message] of [
      [places.join({ saleID: 'x' } as never), 'saleID is not a member of a request for a place'],
      [places.show({ saleId: 'x', buyerId: 7 } as never), 'buyerId must be a string'],
      [places.leave(undefined as never), 'saleId must be a string'],
      [places.accept({ buyerId: 'ann' } as never), 'offer must be an object'],
      [
        places.accept({ buyerId: 'ann', offer: { orderId: '01', quantity: 1 } }),
        'offer must have the orderId and the quantity of an offer',
      ],
      [places.accept({ buyerId: 'ann', offer: { orderId: '1', quantity: 3e9 } }), 'offer must have'],
      [
        places.accept({ buyerId: 'ann', offer: { orderId: '1', quantity: 1 }, reference: 'a\nb' }),
        'reference',
      ],
    ] as const)
      await expect(call).rejects.toMatchObject({ message: expect.stringContaining(message) });
  });

  test('after close there is no answer', async () => {
    await shop.close();
    const closed = { code: 'unavailable', detail: 'the shop was closed: open another one' };
    const holder = { saleId: 'queue-1', buyerId: 'ann' };
    const offer = { orderId: '1', quantity: 1 };
    expect(await shop.places.join(holder)).toEqual(closed);
    expect(await shop.places.show(holder)).toEqual(closed);
    expect(await shop.places.accept({ buyerId: 'ann', offer })).toEqual(closed);
  });
});
