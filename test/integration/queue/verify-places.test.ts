/** `verify` accounts for every place of a queue, and repairs what orders prove. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import { givePlaces, leaveQueue, readPlaceOf } from '../../../src/queue/places.ts';
import { until } from '../../support/fixtures.ts';
import { blockedStatements } from '../../support/postgres/blocked.ts';
import { offered, QUEUE, queued, states, untilStates } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
  await shop.startSync();
  shop.startHead((await shop.startEngine()).take);
});

afterAll(() => shop[Symbol.asyncDispose]());

/** Anna has bought, bert has an offer, carl waits, dora has left. */
async function sold(): Promise<string> {
  const { id } = await shop.sell({ stock: 2, ...QUEUE });
  await queued(shop, id, ['anna', 'bert', 'carl', 'dora']);
  const orderId = await offered(shop, id, 'anna');
  await acceptOffer(shop.db, { orderId, buyerId: 'anna', quantity: 1 });
  await untilStates(shop, id, { bert: 'offered' });
  await leaveQueue(shop.db, id, 'dora');
  return id;
}

const set = (saleId: string, buyerId: string, change: string) =>
  rows(shop.db, `UPDATE places SET ${change} WHERE sale_id = ? AND buyer_id = ?`, [saleId, buyerId]);

test('every place is in one state', async () => {
  const id = await sold();
  const { ok, identities } = await shop.service.verify(id);
  expect(ok).toBe(true);
  expect(identities[2]).toMatchObject({
    left: [{ name: 'given', units: 4 }],
    right: [
      { name: 'waiting', units: 1 },
      { name: 'offered', units: 1 },
      { name: 'bought', units: 1 },
      { name: 'lapsed', units: 0 },
      { name: 'left', units: 1 },
    ],
    difference: 0,
  });
});

test('a sale without a queue has no such equation', async () => {
  const { id } = await shop.sell({ stock: 1 });
  expect((await shop.service.verify(id)).identities).toHaveLength(2);
});

test('a place that is missing is reported and left alone', async () => {
  const id = await sold();
  await rows(shop.db, 'UPDATE queues SET last_number = last_number + 1 WHERE sale_id = ?', [id]);
  const report = await shop.service.verify(id, { repair: true });
  expect(report.findings).toEqual([
    'the queue has given 5 places, and 4 are stored: places were deleted or added',
  ]);
  expect(report.repairs).toMatchObject([{ cause: 'foreign_postgres', done: false }]);
});

test.each([
  ['bert', "state = 'lapsed'", 'offered'],
  ['bert', "state = 'bought'", 'offered'],
  ['anna', "state = 'offered'", 'bought'],
] as const)('the order of %s proves that %s is wrong', async (buyerId, change, proven) => {
  const id = await sold();
  await set(id, buyerId, change);
  expect((await shop.service.verify(id)).findings[0]).toMatch(new RegExp(`proves ${proven}$`));
  const report = await shop.service.verify(id, { repair: true });
  expect(report).toMatchObject({ ok: true, findings: [] });
  expect(report.repairs).toMatchObject([{ done: true }]);
  expect(await states(shop, id)).toMatchObject({ [buyerId]: proven });
});

test('a place whose order does not exist is reported and left alone', async () => {
  const id = await sold();
  await set(id, 'carl', "order_id = 1, state = 'offered'");
  const report = await shop.service.verify(id, { repair: true });
  expect(report.findings).toEqual(['place 3 is offered, and there is no order 1 of it']);
  expect(report.repairs).toEqual([
    {
      cause: 'foreign_postgres',
      done: false,
      what: 'left alone: no order proves the state of those places',
    },
  ]);
});

const LOST_ITS_OFFER = "order_id = NULL, state = 'left', reason = 'absent', ended_at = now()";
const STRAY = 'no place has the 1 offer: places were changed';

test.each([LOST_ITS_OFFER, "order_id = NULL, state = 'waiting'"])(
  'an offer names the place that has lost it: %s',
  async (change) => {
    const id = await sold();
    const orderId = await offered(shop, id, 'bert');
    await set(id, 'bert', change);
    expect((await shop.service.verify(id)).findings).toEqual([STRAY]);
    const report = await shop.service.verify(id, { repair: true });
    expect(report).toMatchObject({ ok: true, findings: [] });
    expect(report.repairs).toMatchObject([
      { done: true, what: 'gave 1 offer back to the place that it names' },
    ]);
    expect(await readPlaceOf(shop.db, id, 'bert')).toMatchObject({ number: 2, state: 'offered', orderId });
    await acceptOffer(shop.db, { orderId, buyerId: 'bert', quantity: 1 });
    expect(await states(shop, id)).toMatchObject({ bert: 'bought' });
  },
);

test('an offer is left alone if its buyer has another place by now', async () => {
  const id = await sold();
  await set(id, 'bert', LOST_ITS_OFFER);
  // The offer holds a unit of its buyer.
  await rows(shop.db, 'UPDATE sales SET per_buyer_limit = 2 WHERE id = ?', [id]);
  await queued(shop, id, ['bert']);
  const report = await shop.service.verify(id, { repair: true });
  expect(report.findings).toEqual([STRAY]);
  expect(report.repairs).toMatchObject([
    { done: false, what: 'left alone: no place without an order is that of those offers' },
  ]);
  expect(await states(shop, id)).toMatchObject({ bert: 'waiting' });
});

test.each([
  ['another buyer has its place', "order_id = NULL, buyer_id = 'eve', state = 'left'", undefined],
  ['two offers name one place', LOST_ITS_OFFER, 'offer_of = 2'],
  ['a buyer has two such offers', LOST_ITS_OFFER, "buyer_id = 'bert', offer_of = 4, one_per_buyer = false"],
])('an offer is left alone if %s', async (_, change, ofAnother) => {
  const id = await sold();
  await set(id, 'bert', change);
  if (ofAnother !== undefined) {
    const annas = await offered(shop, id, 'anna');
    await set(id, 'anna', "order_id = NULL, state = 'left'");
    await set(id, 'dora', "buyer_id = 'bert'");
    await rows(shop.db, `UPDATE orders SET ${ofAnother} WHERE order_id = ?`, [annas]);
  }
  const { ok, repairs } = await shop.service.verify(id, { repair: true });
  expect(ok).toBe(false);
  expect(repairs).toContainEqual({
    cause: 'foreign_postgres',
    done: false,
    what: 'left alone: no place without an order is that of those offers',
  });
});

test('a buyer who comes again while its offer is given back keeps its place', async () => {
  const id = await sold();
  const orderId = await offered(shop, id, 'bert');
  await set(id, 'bert', LOST_ITS_OFFER);
  const trx = await shop.db.transaction();
  await trx.raw('SELECT 1 FROM orders WHERE order_id = ? FOR UPDATE', [orderId]);
  const waiting = (statements: number) =>
    until(async () => (await blockedStatements(shop.db)) === statements, { what: `${statements} wait` });
  try {
    const repaired = shop.service.verify(id, { repair: true });
    await waiting(1);
    const given = givePlaces(shop.db, id, [{ buyerId: 'bert', quantity: 1 }]);
    await waiting(2);
    await trx.rollback();
    expect((await given).get('bert')).toMatchObject({ number: 2, state: 'offered', orderId });
    expect(await repaired).toMatchObject({ ok: true, findings: [] });
  } finally {
    if (!trx.isCompleted()) await trx.rollback();
  }
});
