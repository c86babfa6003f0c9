/** Nobody is told that a place is hopeless while a unit may still come to it, by what is known. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import { markPresent, tidyPresence } from '../../../src/queue/presence.ts';
import { readQueue } from '../../../src/queue/queue-state.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { completeForLong, offered, QUEUE, queued, untilStates } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

const SECONDS = 3_600;
let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
});

afterAll(() => shop[Symbol.asyncDispose]());

const take = async () => (await shop.startEngine({ requestDeadlineMs: 500 })).take;
const queueOf = async (saleId: string) => (await readQueue(shop.db, saleId))!;

/** The head has told once more, and all that it had read before was at least as old as this call. */
async function toldAgain(saleId: string): Promise<void> {
  for (let i = 0; i < 2; i++) {
    const before = (await queueOf(saleId)).toldAt?.getTime() ?? 0;
    await until(async () => ((await queueOf(saleId)).toldAt?.getTime() ?? 0) > before, {
      what: 'the head tells again',
    });
  }
}

const untilHopeless = (saleId: string, rank: number) =>
  until(async () => (await queueOf(saleId)).hopelessFrom === rank, { what: `rank ${rank} is hopeless` });

/** As if only these had been heard of for a long time. */
async function heardOf(saleId: string, numbers: readonly number[]): Promise<void> {
  await rows(shop.db, 'DELETE FROM queue_presence WHERE sale_id = ? AND period >= -1', [saleId]);
  await markPresent(shop.db, saleId, SECONDS, numbers);
  await tidyPresence(shop.db, saleId, SECONDS);
  await completeForLong(shop, saleId);
}

test('units that are taken for offers and not committed may come to the places that they are taken for', async () => {
  const { id } = await shop.sell({ stock: 2, ...QUEUE });
  await queued(shop, id, ['anna', 'bert', 'carl']);
  const head = shop.startHead(await take());
  await until(async () => (await queueOf(id)).freeUnits === 0, { what: 'the head has seen its own takes' });
  expect(await queueOf(id)).toMatchObject({ head: 0, hopelessFrom: 3 });
  await head.stop();
});

test('units that were given back may come, also before their segment has them', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  await queued(shop, id, ['anna', 'bert', 'carl']);
  const sync = await shop.startSync();
  const head = shop.startHead(await take());
  const orderId = await offered(shop, id, 'anna');
  await sync.stop();
  await acceptOffer(shop.db, { orderId, buyerId: 'anna', quantity: 1 });
  await toldAgain(id);
  expect(await queueOf(id)).toMatchObject({ freeUnits: 0, hopelessFrom: 2 });
  // Nobody applies the return.
  await rows(shop.db, "SELECT stockade_give_back(ARRAY[?::bigint], 'cancelled')", [orderId]);
  await toldAgain(id);
  expect(await queueOf(id)).toMatchObject({ freeUnits: 0, hopelessFrom: 3 });
  await head.stop();
});

test('while everybody counts as present, only buyers that were heard of make a place behind them hopeless', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  await queued(shop, id, ['anna', 'bert', 'carl', 'dora']);
  await heardOf(id, [1, 3, 4]);
  await rows(shop.db, 'DELETE FROM queue_presence WHERE sale_id = ? AND period = -1', [id]);
  const sync = await shop.startSync();
  const head = shop.startHead(await take());
  await untilStates(shop, id, { anna: 'offered', bert: 'waiting' });
  await toldAgain(id);
  expect(await queueOf(id)).toMatchObject({ head: 1, hopelessFrom: 4 });
  await head.stop();
  await sync.stop();
});

test('buyers who have bought behind the first place that waits make no place hopeless', async () => {
  const { id } = await shop.sell({
    ...{ stock: 4, ...QUEUE, presenceSeconds: SECONDS },
    ...{ fit: 'pass', perBuyerLimit: 5 },
  });
  await queued(shop, id, ['anna'], 5);
  await queued(shop, id, ['bert', 'carl', 'dora', 'emil', 'fred', 'gina', 'hans', 'ivan']);
  await heardOf(id, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  const sync = await shop.startSync();
  const head = shop.startHead(await take());
  await untilStates(shop, id, { anna: 'waiting', bert: 'offered', emil: 'offered', fred: 'waiting' });
  const orderId = await offered(shop, id, 'bert');
  await acceptOffer(shop.db, { orderId, buyerId: 'bert', quantity: 1 });
  await toldAgain(id);
  // Three offers could come back: too few units for anna, so fred, gina and hans may get them.
  expect(await queueOf(id)).toMatchObject({ head: 0, hopelessFrom: 9 });
  await head.stop();
  await sync.stop();
});

test('a hopeless place keeps its turn: it gets an offer when a unit comes back, and the next one when a unit is added', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  await queued(shop, id, ['anna', 'bert', 'carl', 'dora']);
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  const head = shop.startHead(till.take);
  const orderId = await offered(shop, id, 'anna');
  await acceptOffer(shop.db, { orderId, buyerId: 'anna', quantity: 1 });
  await untilHopeless(id, 2);
  expect(await shop.orders(till.take).changeOrder(orderId, { kind: 'cancel' }, BY)).toMatchObject({
    code: 'done',
  });
  await untilStates(shop, id, { bert: 'offered', carl: 'waiting' });
  // Bert's unit may come to carl.
  await untilHopeless(id, 4);
  await acceptOffer(shop.db, { orderId: await offered(shop, id, 'bert'), buyerId: 'bert', quantity: 1 });
  await untilHopeless(id, 3);
  await shop.service.change(id, { action: 'top-up', units: 1 }, BY);
  await untilStates(shop, id, { carl: 'offered', dora: 'waiting' });
  await head.stop();
  await sync.stop();
});

test('a place that wants too much, and may be passed over, makes no place behind it hopeless', async () => {
  const { id } = await shop.sell({ stock: 1, perBuyerLimit: 5, ...QUEUE, fit: 'pass' });
  await queued(shop, id, ['anna']);
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  const head = shop.startHead(till.take);
  const orderId = await offered(shop, id, 'anna');
  await queued(shop, id, ['bert'], 5);
  await queued(shop, id, ['carl', 'dora']);
  await toldAgain(id);
  // Carl may get the unit, and dora can't.
  expect(await queueOf(id)).toMatchObject({ freeUnits: 0, hopelessFrom: 4 });
  await shop.orders(till.take).changeOrder(orderId, { kind: 'cancel' }, BY);
  await untilStates(shop, id, { bert: 'waiting', carl: 'offered', dora: 'waiting' });
  await acceptOffer(shop.db, { orderId: await offered(shop, id, 'carl'), buyerId: 'carl', quantity: 1 });
  // No unit is left, so none may come.
  await untilHopeless(id, 2);
  await head.stop();
  await sync.stop();
});

test('a window that is moved to a later time leaves nobody hopeless: units may be added before it opens', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  await queued(shop, id, ['anna', 'bert', 'carl']);
  const sync = await shop.startSync();
  const head = shop.startHead((await shop.startEngine()).take);
  await acceptOffer(shop.db, { orderId: await offered(shop, id, 'anna'), buyerId: 'anna', quantity: 1 });
  await untilHopeless(id, 2);
  await shop.service.change(id, { action: 'window', startsAt: Date.now() + 86_400_000 }, BY);
  await until(async () => (await queueOf(id)).freeUnits === undefined, { what: 'the head has seen that' });
  expect(await queueOf(id)).toMatchObject({ hopelessFrom: undefined });
  await head.stop();
  await sync.stop();
});
