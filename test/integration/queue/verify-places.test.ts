/** `verify` accounts for every place of a queue, and repairs what an order proves. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import { leaveQueue } from '../../../src/queue/places.ts';
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

test('an offer that no place has is reported and left alone', async () => {
  const id = await sold();
  await set(id, 'bert', "order_id = NULL, state = 'left'");
  const report = await shop.service.verify(id, { repair: true });
  expect(report.findings).toEqual(['no place has the 1 offer: places were changed']);
  expect(report.ok).toBe(false);
});
