/** Which sales the head serves: a shop may have thousands of queues in which nothing can happen. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { monotonicMs } from '../../../../src/lib/monotonic.ts';
import { rows } from '../../../../src/postgres/database.ts';
import { type HeadMemory, readWork, tellQuiet } from '../../../../src/queue/head/work.ts';
import { QueueService } from '../../../../src/queue/operators/queue-service.ts';
import { givePlaces } from '../../../../src/queue/places.ts';
import { markAsked, markPresent, tidyPresence } from '../../../../src/queue/presence.ts';
import { readQueue } from '../../../../src/queue/queue-state.ts';
import { BY } from '../../../support/author.ts';
import { until } from '../../../support/fixtures.ts';
import { buyersQueueOf, QUEUE, untilStates } from '../../../support/shop/queue.ts';
import { Shop } from '../../../support/shop/shop.ts';

const PRESENCE_S = 60;
let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
});

afterAll(() => shop[Symbol.asyncDispose]());

const queueOf = async (saleId: string) => (await readQueue(shop.db, saleId))!;
const NOTHING: HeadMemory = { unfinished: [], drawn: [], resting: [] };
const served = async (memory: Partial<HeadMemory> = {}) =>
  (await readWork(shop.db, { ...NOTHING, ...memory })).sales.map(({ sale }) => sale.id);

/** As if the head had told so long ago. */
const toldBefore = (saleId: string, seconds: number) =>
  rows(shop.db, "UPDATE queues SET told_at = now() - ? * interval '1 second' WHERE sale_id = ?", [
    seconds,
    saleId,
  ]);

/** A sale whose stock is gone, for Postgres too, and for which some wait. The head has told just now. */
async function soldOut(presenceSeconds = 0): Promise<string> {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds });
  await givePlaces(shop.db, id, [
    { buyerId: 'anna', quantity: 1 },
    { buyerId: 'bert', quantity: 1 },
  ]);
  // As if they had been given long ago, and nobody had asked since.
  await rows(shop.db, 'DELETE FROM queue_presence WHERE sale_id = ?', [id]);
  if (presenceSeconds > 0) await tidyPresence(shop.db, id, presenceSeconds);
  await rows(shop.db, 'UPDATE sales SET stock = 0 WHERE id = ?', [id]);
  await toldBefore(id, 0);
  return id;
}

test('a queue for which nobody asks, and without a free unit, is not served', async () => {
  const id = await soldOut();
  expect(await served()).not.toContain(id);
  await toldBefore(id, 3);
  expect(await served()).not.toContain(id);
});

test('a queue in which nobody waits is not served, although units are free', async () => {
  const { id } = await shop.sell({ stock: 5, ...QUEUE });
  expect(await served(), 'its first report').toContain(id);
  await toldBefore(id, 3);
  expect(await served()).not.toContain(id);
  await givePlaces(shop.db, id, [{ buyerId: 'anna', quantity: 1 }]);
  expect(await served()).toContain(id);
});

test.each<[string, (saleId: string) => Promise<unknown>]>([
  ['a unit is back', (id) => rows(shop.db, 'UPDATE sales SET stock = 1 WHERE id = ?', [id])],
  ['its places are to be drawn', (id) => rows(shop.db, "UPDATE sales SET queue = 'draw' WHERE id = ?", [id])],
])('a queue is served in each round when %s', async (_, happens) => {
  const id = await soldOut();
  await happens(id);
  const [work] = (await readWork(shop.db, NOTHING)).sales.filter(({ sale }) => sale.id === id);
  expect(work).toMatchObject({ hasOpened: true, isDue: false });
});

test('a queue is served in each round while the last one has left work behind', async () => {
  const id = await soldOut();
  expect(await served({ unfinished: [id] })).toContain(id);
});

test('while offers are stopped, a free unit makes work only if one is handed out', async () => {
  const id = await soldOut();
  await rows(shop.db, 'UPDATE sales SET stock = 1 WHERE id = ?', [id]);
  const queues = new QueueService(shop.db);
  await queues.changeQueue(id, { action: 'pause' }, BY);
  expect(await served()).not.toContain(id);
  await queues.changeQueue(id, { action: 'hand-out', offers: 1 }, BY);
  expect(await served()).toContain(id);
});

test('a queue is reported once a second while somebody asks', async () => {
  const id = await soldOut();
  await markAsked(shop.db, id);
  expect(await served()).not.toContain(id);
  await toldBefore(id, 2);
  expect(await served()).toContain(id);
  expect(await served({ resting: [id] }), 'it failed a moment ago').not.toContain(id);
});

test.each<[string, (saleId: string) => Promise<unknown>]>([
  [
    'the mark was lost with a crash of Postgres',
    (id) => rows(shop.db, 'DELETE FROM queue_presence WHERE sale_id = ?', [id]),
  ],
  [
    'bits do not count any more',
    async (id) => {
      await markPresent(shop.db, id, PRESENCE_S, [2]);
      await rows(shop.db, 'UPDATE queue_presence SET period = period - 2 WHERE sale_id = ? AND period >= 0', [
        id,
      ]);
    },
  ],
])('presence of a quiet queue is tidied when %s', async (_, happens) => {
  const id = await soldOut(PRESENCE_S);
  await happens(id);
  await toldBefore(id, 2);
  expect(await served()).toContain(id);
  await tidyPresence(shop.db, id, PRESENCE_S);
  expect(await served()).not.toContain(id);
});

test('a queue that was drawn is served until this head knows the order: a unit that comes back must not wait for that', async () => {
  const id = await soldOut();
  await rows(
    shop.db,
    "UPDATE queues SET entries = 2, entries_hash = repeat('ab', 32), drawn_at = now() WHERE sale_id = ?",
    [id],
  );
  expect(await served()).toContain(id);
  expect(await served({ drawn: [id] })).not.toContain(id);
});

test('begun offers of a quiet queue are settled', async () => {
  await using own = await Shop.open();
  const { id } = await own.sell({ stock: 1, ...QUEUE });
  await givePlaces(own.db, id, [{ buyerId: 'anna', quantity: 1 }]);
  await own.startSync();
  const { take } = await own.startEngine();
  const first = own.startHead(take);
  await untilStates(own, id, { anna: 'offered' });
  await first.stop();
  // As if that head had died before it settled the offer.
  await rows(
    own.db,
    'INSERT INTO begun_offers (sale_id, number, counts, may_return) VALUES (?, 1, true, false)',
    [id],
  );
  own.startHead(take);
  await until(async () => (await rows(own.db, 'SELECT 1 FROM begun_offers')).length === 0, {
    what: 'it is settled',
  });
});

test('a quiet queue is served when no head has told for a whole period: then nobody could be heard of', async () => {
  const id = await soldOut(PRESENCE_S);
  await toldBefore(id, PRESENCE_S - 5);
  expect(await served()).not.toContain(id);
  await toldBefore(id, PRESENCE_S + 5);
  await tellQuiet(shop.db, NOTHING);
  expect(await served(), 'it was told to be quiet, and the outage was forgotten').toContain(id);
});

test('quiet queues are told of together: there is a head, and what was hopeless is not known any more', async () => {
  const id = await soldOut(PRESENCE_S);
  await rows(shop.db, 'UPDATE queues SET hopeless_from = 2, free_units = 7 WHERE sale_id = ?', [id]);
  await toldBefore(id, 3);
  const { toldAt } = await queueOf(id);
  await tellQuiet(shop.db, NOTHING);
  expect(await queueOf(id), 'told too often').toMatchObject({ toldAt, hopelessFrom: 2 });
  await toldBefore(id, 6);
  await tellQuiet(shop.db, NOTHING);
  const told = await queueOf(id);
  expect(told).toMatchObject({ hopelessFrom: undefined, freeUnits: 0 });
  expect(told.toldAt!.getTime()).toBeGreaterThan(toldAt!.getTime());
  expect(await new QueueService(shop.db).showQueue(id)).toMatchObject({ phase: 'offering' });
});

test('where nobody can be absent, what is hopeless stays while no unit comes, for those who ask once in a day', async () => {
  const id = await soldOut();
  const hopelessFrom = async () => {
    await rows(shop.db, 'UPDATE queues SET hopeless_from = 2 WHERE sale_id = ?', [id]);
    await toldBefore(id, 6);
    await tellQuiet(shop.db, NOTHING);
    const told = await queueOf(id);
    expect(told.toldAt!.getTime()).toBeGreaterThan(Date.now() - 5_000);
    return told.hopelessFrom;
  };
  expect(await hopelessFrom()).toBe(2);
  await rows(shop.db, "UPDATE sales SET stock = 1, state = 'paused' WHERE id = ?", [id]);
  expect(await hopelessFrom()).toBeUndefined();
});

test('the head tells of a quiet queue with a short presence before anybody could take its silence for an outage', async () => {
  const id = await soldOut(3);
  await toldBefore(id, 2);
  await tellQuiet(shop.db, NOTHING);
  await until(async () => (await queueOf(id)).toldAt!.getTime() > Date.now() - 2_000, { what: 'it is told' });
  expect(await served()).not.toContain(id);
});

test('what somebody has locked keeps no other quiet queue untold', async () => {
  const [locked, free] = [await soldOut(), await soldOut()];
  for (const id of [locked, free]) await toldBefore(id, 60);
  const { unlock } = await shop.lockQueue(locked);
  await tellQuiet(shop.db, NOTHING);
  expect((await queueOf(free)).toldAt!.getTime()).toBeGreaterThan(
    (await queueOf(locked)).toldAt!.getTime() + 30_000,
  );
  await unlock();
});

test('a round reports the oldest queues first, not all of them at once, and free units go first', async () => {
  await using many = await Shop.open();
  const ids = Array.from({ length: 80 }, (_, i) => `many-${i}`);
  for (const id of ids) await many.sell({ id, stock: 1, ...QUEUE });
  await rows(many.db, "UPDATE queues SET told_at = now() - interval '1 hour'");
  await rows(many.db, "UPDATE queues SET told_at = now() - interval '2 hours' WHERE sale_id = 'many-79'");
  for (const id of ids) await markAsked(many.db, id);
  await givePlaces(many.db, 'many-40', [{ buyerId: 'anna', quantity: 1 }]);
  const { sales, isMore } = await readWork(many.db, NOTHING);
  const found = sales.map(({ sale }) => sale.id);
  expect(found.slice(0, 2)).toEqual(['many-40', 'many-79']);
  expect(found).toHaveLength(65);
  expect(isMore).toBe(true);
});

test('a unit that comes back to a quiet queue is offered', async () => {
  await using own = await Shop.open();
  const { id } = await own.sell({ stock: 1, ...QUEUE });
  await givePlaces(own.db, id, [
    { buyerId: 'anna', quantity: 1 },
    { buyerId: 'bert', quantity: 1 },
  ]);
  await own.startSync();
  const till = await own.startEngine();
  own.startHead(till.take);
  await untilStates(own, id, { anna: 'offered', bert: 'waiting' });
  const [order] = await rows<{ id: string }>(
    own.db,
    'SELECT order_id::text AS id FROM orders WHERE sale_id = ?',
    [id],
  );
  await until(async () => (await readWork(own.db, NOTHING)).sales.length === 0, {
    what: 'the queue is quiet',
  });
  expect(await own.orders(till.take).changeOrder(order!.id, { kind: 'cancel' }, BY)).toMatchObject({
    code: 'done',
  });
  await untilStates(own, id, { bert: 'offered' });
});

test.each([0, PRESENCE_S])(
  'a full queue that is quiet lets buyers in when places leave it (presenceSeconds %i)',
  async (presenceSeconds) => {
    await using own = await Shop.open();
    const { id } = await own.sell({ stock: 1, ...QUEUE, presenceSeconds, maxWaiting: 3 });
    const wishes = ['anna', 'bert', 'carl', 'dora'].map((buyerId) => ({ buyerId, quantity: 1 }));
    await givePlaces(own.db, id, wishes.slice(0, 1));
    await own.startSync();
    own.startHead((await own.startEngine()).take);
    await untilStates(own, id, { anna: 'offered' });
    await until(async () => (await readQueue(own.db, id))!.head === 1, {
      what: 'the head stands behind anna',
    });
    await givePlaces(own.db, id, wishes.slice(1));
    await rows(own.db, 'DELETE FROM queue_presence WHERE sale_id = ? AND period <> -1', [id]);
    const queue = buyersQueueOf(own);
    onTestFinished(() => queue.stop());
    const record = (await own.backend.sales.read(id))!;
    const join = () => queue.join(record, { buyerId: 'eve', quantity: 1 }, monotonicMs() + 5_000);
    expect(await join()).toBeUndefined();
    await queue.leave(record, 'bert');
    await until(async () => (await join()) !== undefined, { what: 'eve gets the place' });
  },
);
