/** What operators allow is used up once for each offer, whatever happens to the heads that begin them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { QueueChange } from '../../../../src/operations/queue/queue-operations.ts';
import { rows } from '../../../../src/postgres/database.ts';
import { beginOffers, settleOffers } from '../../../../src/queue/head/begun-offers.ts';
import { QueueService } from '../../../../src/queue/operators/queue-service.ts';
import { leaveQueue } from '../../../../src/queue/places.ts';
import { readQueue } from '../../../../src/queue/queue-state.ts';
import { BY } from '../../../support/author.ts';
import { until } from '../../../support/fixtures.ts';
import { QUEUE, queued, states, untilStates } from '../../../support/shop/queue.ts';
import { Shop } from '../../../support/shop/shop.ts';

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
  await shop.startSync();
});

afterAll(() => shop[Symbol.asyncDispose]());

const change = (saleId: string, wanted: QueueChange) =>
  new QueueService(shop.db).changeQueue(saleId, wanted, BY);
const queueOf = async (saleId: string) => (await readQueue(shop.db, saleId))!;
const begin = async (saleId: string, places: readonly number[]) =>
  beginOffers(shop.db, await queueOf(saleId), places);
const settled = async (saleId: string) => [...(await settleOffers(shop.db, saleId))].sort();
const head = async () => shop.startHead((await shop.startEngine()).take);

/** A sale whose offers are stopped, with so many handed out, and three places. */
async function stopped(offers: number) {
  const { id } = await shop.sell({ stock: 9, ...QUEUE });
  await queued(shop, id, ['anna', 'bert', 'carl']);
  await change(id, { action: 'pause' });
  await change(id, { action: 'hand-out', offers });
  return id;
}

test('a head that dies between using them up and taking leaves them to the next head', async () => {
  const id = await stopped(2);
  expect(await begin(id, [1])).toBe(true);
  expect(await queueOf(id)).toMatchObject({ allowed: 1 });
  const { stop } = await head();
  await untilStates(shop, id, { anna: 'offered', bert: 'offered' });
  await until(async () => (await queueOf(id)).offersMade === 2, { what: 'both are counted' });
  expect(await states(shop, id)).toMatchObject({ carl: 'waiting' });
  expect(await queueOf(id)).toMatchObject({ allowed: 0 });
  await stop();
});

test('one whose buyer leaves before it is made goes to the next place', async () => {
  const id = await stopped(1);
  await begin(id, [1]);
  await leaveQueue(shop.db, id, 'anna');
  const { stop } = await head();
  await untilStates(shop, id, { anna: 'left', bert: 'offered' });
  await until(async () => (await queueOf(id)).offersMade === 1, { what: 'it is counted' });
  expect(await queueOf(id)).toMatchObject({ allowed: 0 });
  await stop();
});

test.each<[string, QueueChange]>([
  ['a stop', { action: 'pause' }],
  ['another number', { action: 'hand-out', offers: 0 }],
])('nothing is given back after %s', async (_, wanted) => {
  const id = await stopped(1);
  await begin(id, [1]);
  await change(id, wanted);
  await leaveQueue(shop.db, id, 'anna');
  expect(await settled(id)).toEqual([]);
  expect(await queueOf(id)).toMatchObject({ allowed: 0, offersMade: 0 });
});

test('two heads use up one for the same place, and none that is not there', async () => {
  const id = await stopped(2);
  expect(await Promise.all([begin(id, [1, 2]), begin(id, [1, 2])])).toEqual([true, true]);
  expect(await begin(id, [2, 3])).toBe(false);
  expect(await settled(id)).toEqual([1, 2]);
  expect(await queueOf(id)).toMatchObject({ allowed: 0 });
});

test.each<[string, string]>([
  [
    'a place waits no longer',
    "UPDATE places SET state = 'left', reason = 'absent' WHERE sale_id = ? AND number = 2",
  ],
  ['another head has reported', 'UPDATE queues SET told_at = now() WHERE sale_id = ?'],
  [
    'another sale has got the id',
    "UPDATE queues SET seed = decode(repeat('07', 32), 'hex') WHERE sale_id = ?",
  ],
])('none is begun if %s while a head waits for the lock', async (_, happens) => {
  const id = await stopped(2);
  const queue = await queueOf(id);
  const other = await shop.db.transaction();
  await other.raw('SELECT FROM queues WHERE sale_id = ? FOR UPDATE', [id]);
  const late = beginOffers(shop.db, queue, [1, 2]);
  await until(() => shop.isBlocked(), { what: 'the head waits' });
  await other.raw(happens, [id]);
  await other.commit();
  expect(await late).toBe(false);
  expect(await queueOf(id)).toMatchObject({ allowed: 2 });
});

test('those that were begun before the offers were stopped use up one of those that are handed out', async () => {
  const { id } = await shop.sell({ stock: 9, ...QUEUE });
  await queued(shop, id, ['anna', 'bert']);
  expect(await begin(id, [1])).toBe(true);
  await change(id, { action: 'pause' });
  expect(await settled(id)).toEqual([]);
  expect(await begin(id, [1])).toBe(false);
  await change(id, { action: 'hand-out', offers: 1 });
  expect(await begin(id, [1])).toBe(true);
  expect(await queueOf(id)).toMatchObject({ allowed: 0 });
});

test('two heads together keep to the pace, also if one dies before it has made its offers', async () => {
  const { id } = await shop.sell({ stock: 9, ...QUEUE });
  await queued(shop, id, ['anna', 'bert', 'carl', 'dora', 'emil']);
  await change(id, { action: 'pace', perMinute: 120 });
  const ago = (seconds: number) =>
    rows(shop.db, "UPDATE queues SET paced_at = now() - ? * interval '1 second' WHERE sale_id = ?", [
      seconds,
      id,
    ]);
  // Two in a second, and no more after a lull.
  await ago(60);
  expect((await queueOf(id)).pace).toBe(2);
  expect(await Promise.all([begin(id, [1, 2]), begin(id, [3, 4])])).toContain(false);
  expect((await queueOf(id)).pace).toBeLessThan(2);
  expect(await begin(id, [5])).toBe(false);
});

test('after the clock of Postgres was set back, the pace counts anew', async () => {
  const { id } = await shop.sell({ stock: 9, ...QUEUE });
  await queued(shop, id, ['anna', 'bert', 'carl']);
  await change(id, { action: 'pace', perMinute: 1 });
  const ahead = (seconds: number) =>
    rows(
      shop.db,
      "UPDATE queues SET paced_at = clock_timestamp() + ? * interval '1 second' WHERE sale_id = ?",
      [seconds, id],
    );
  // So little may be the difference between the clocks of two processors.
  await ahead(0.9);
  expect((await queueOf(id)).pace).toBeLessThan(0.1);
  expect(await begin(id, [1])).toBe(false);
  await ahead(3_600);
  expect((await queueOf(id)).pace).toBe(1);
  expect(await begin(id, [1])).toBe(true);
  expect(await begin(id, [2])).toBe(false);
  expect((await queueOf(id)).pace).toBeLessThan(1);
});
