/** Which sales the head serves: a shop may have thousands of queues in which nothing can happen. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rows } from '../../../../src/postgres/database.ts';
import { readWork, tellQuiet } from '../../../../src/queue/head/work.ts';
import { QueueService } from '../../../../src/queue/operators/queue-service.ts';
import { givePlaces } from '../../../../src/queue/places.ts';
import { markAsked, markPresent } from '../../../../src/queue/presence.ts';
import { readQueue } from '../../../../src/queue/queue-state.ts';
import { BY } from '../../../support/author.ts';
import { until } from '../../../support/fixtures.ts';
import { QUEUE, untilStates } from '../../../support/shop/queue.ts';
import { Shop } from '../../../support/shop/shop.ts';

const PRESENCE_S = 60;
let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
});

afterAll(() => shop[Symbol.asyncDispose]());

const queueOf = async (saleId: string) => (await readQueue(shop.db, saleId))!;
const served = async (unfinished: readonly string[] = []) =>
  (await readWork(shop.db, unfinished)).map(({ sale }) => sale.id);

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
  const [work] = (await readWork(shop.db, [])).filter(({ sale }) => sale.id === id);
  expect(work).toMatchObject({ hasOpened: true, isDue: false });
});

test('a queue is served in each round while the last one has left work behind', async () => {
  const id = await soldOut();
  expect(await served([id])).toContain(id);
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

test.each<[string, number, (saleId: string) => Promise<unknown>]>([
  ['asks for its place', 0, (id) => markAsked(shop.db, id)],
  ['is present', PRESENCE_S, (id) => markPresent(shop.db, id, PRESENCE_S, [2])],
])('a queue is reported once a second while somebody %s', async (_, presenceSeconds, asks) => {
  const id = await soldOut(presenceSeconds);
  await asks(id);
  expect(await served()).not.toContain(id);
  await toldBefore(id, 2);
  expect(await served()).toContain(id);
});

test('begun offers of a quiet queue are settled', async () => {
  const id = await soldOut();
  await rows(
    shop.db,
    'INSERT INTO begun_offers (sale_id, number, counts, may_return) VALUES (?, 1, true, false)',
    [id],
  );
  await toldBefore(id, 2);
  expect(await served()).toContain(id);
});

test('a quiet queue is served when no head has told for a whole period: then nobody could be heard of', async () => {
  const id = await soldOut(PRESENCE_S);
  await toldBefore(id, PRESENCE_S - 5);
  expect(await served()).not.toContain(id);
  await toldBefore(id, PRESENCE_S + 5);
  await tellQuiet(shop.db);
  expect(await served(), 'it was told to be quiet, and the outage was forgotten').toContain(id);
});

test('quiet queues are told of together: there is a head, and what was hopeless is not known any more', async () => {
  const id = await soldOut();
  await rows(shop.db, 'UPDATE queues SET hopeless_from = 2, free_units = 7 WHERE sale_id = ?', [id]);
  await toldBefore(id, 3);
  const { toldAt } = await queueOf(id);
  await tellQuiet(shop.db);
  expect(await queueOf(id), 'told too often').toMatchObject({ toldAt, hopelessFrom: 2 });
  await toldBefore(id, 6);
  await tellQuiet(shop.db);
  const told = await queueOf(id);
  expect(told).toMatchObject({ hopelessFrom: undefined, freeUnits: 0 });
  expect(told.toldAt!.getTime()).toBeGreaterThan(toldAt!.getTime());
  expect(await new QueueService(shop.db).showQueue(id)).toMatchObject({ phase: 'offering' });
});

test('a quiet queue with a short presence is told of before anybody could take it for an outage', async () => {
  const id = await soldOut(3);
  await toldBefore(id, 2);
  await tellQuiet(shop.db);
  await until(async () => (await queueOf(id)).toldAt!.getTime() > Date.now() - 2_000, { what: 'it is told' });
  expect(await served()).not.toContain(id);
});

test('what somebody has locked keeps no other quiet queue untold', async () => {
  const [locked, free] = [await soldOut(), await soldOut()];
  for (const id of [locked, free]) await toldBefore(id, 60);
  const { unlock } = await shop.lockQueue(locked);
  await tellQuiet(shop.db);
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
  const work = (await readWork(many.db, [])).map(({ sale }) => sale.id);
  expect(work.slice(0, 2)).toEqual(['many-40', 'many-79']);
  expect(work).toHaveLength(65);
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
  await until(async () => !(await readWork(own.db, [])).some(({ sale }) => sale.id === id), {
    what: 'the queue is quiet',
  });
  expect(await own.orders(till.take).changeOrder(order!.id, { kind: 'cancel' }, BY)).toMatchObject({
    code: 'done',
  });
  await untilStates(own, id, { bert: 'offered' });
});
