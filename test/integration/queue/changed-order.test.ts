/** A head that stalls while its queue becomes another one: other ranks, another order, another window, another sale of the same id. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rows } from '../../../src/postgres/database.ts';
import { makeDraw } from '../../../src/queue/drawing.ts';
import { readQueue } from '../../../src/queue/queue-state.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { gate } from '../../support/gate.ts';
import { afterStatement } from '../../support/postgres/watched-statements.ts';
import { QUEUE, queued, untilStates } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
  await shop.startSync();
});

afterAll(() => shop[Symbol.asyncDispose]());

const HOUR_MS = 3_600_000;
const queueOf = async (saleId: string) => (await readQueue(shop.db, saleId))!;
const opensIn = (saleId: string, ms: number) =>
  shop.service.change(saleId, { action: 'window', startsAt: Date.now() + ms }, BY);

/** A lobby of two, when the window has opened and no head has come yet. */
async function lobby() {
  const startsAt = new Date(Date.now() + HOUR_MS).toISOString();
  const { id } = await shop.sell({ stock: 1, ...QUEUE, queue: 'draw', startsAt });
  await queued(shop, id, ['anna', 'bert']);
  await opensIn(id, -1);
  return { id, state: await queueOf(id) };
}

test('a queue that has made offers is drawn no more, also if its window opens again', async () => {
  const { id } = await shop.sell({ stock: 10, ...QUEUE });
  const names = Array.from({ length: 20 }, (_, i) => `b${i}`);
  await queued(shop, id, names);
  const head = shop.startHead((await shop.startEngine()).take);
  await until(async () => (await queueOf(id)).offersMade === 10, { what: '10 offers are told' });
  await opensIn(id, HOUR_MS);
  await expect(shop.service.change(id, { action: 'queue', queue: 'draw' }, BY)).rejects.toMatchObject({
    faults: [{ problem: 'can’t be draw any more: offers were made in another order' }],
  });
  await opensIn(id, -1);
  await shop.service.change(id, { action: 'top-up', units: 10 }, BY);
  await untilStates(shop, id, Object.fromEntries(names.map((name) => [name, 'offered'])));
  await head.stop();
});

test('a draw begins at the first rank, also if a head has told another position meanwhile', async () => {
  const { id, state } = await lobby();
  await rows(shop.db, 'UPDATE queues SET head = 2, reach = 2, hopeless_from = 2 WHERE sale_id = ?', [id]);
  expect(await makeDraw(shop.db, state)).toMatchObject({ entries: 2 });
  expect(await queueOf(id)).toMatchObject({ head: 0, reach: 0, hopelessFrom: undefined });
});

test('of two heads that draw, one has drawn', async () => {
  const { state } = await lobby();
  const made = await Promise.all([makeDraw(shop.db, state), makeDraw(shop.db, state)]);
  expect(made.filter((drawn) => drawn !== undefined)).toMatchObject([{ entries: 2 }]);
});

test('a head draws no more after the sale was given another order', async () => {
  const { id, state } = await lobby();
  await shop.service.change(id, { action: 'queue', queue: 'fifo' }, BY);
  expect(await makeDraw(shop.db, state)).toBeUndefined();
  expect((await queueOf(id)).draw.drawn).toBeUndefined();
});

test('a head does not draw if the window was moved to a later time', async () => {
  const { id, state } = await lobby();
  await opensIn(id, HOUR_MS);
  expect(await makeDraw(shop.db, state)).toBeUndefined();
  await queued(shop, id, ['carl']);
  await opensIn(id, -1);
  expect(await makeDraw(shop.db, await queueOf(id))).toMatchObject({ entries: 3 });
});

test('who comes before the new opening takes part in the draw, also if one was under way when the window was moved', async () => {
  const { id, state } = await lobby();
  const slow = afterStatement(shop.db, /SET entries = coalesce/, async () => {
    await opensIn(id, HOUR_MS);
  });
  expect(await makeDraw(slow, state)).toBeUndefined();
  await queued(shop, id, ['carl']);
  await opensIn(id, -1);
  expect(await makeDraw(shop.db, await queueOf(id))).toMatchObject({ entries: 3 });
});

test('a draw that takes long holds up no other sale', async () => {
  await using shop = await Shop.open();
  await shop.startSync();
  const startsAt = new Date(Date.now() + HOUR_MS).toISOString();
  const { id: slow } = await shop.sell({ stock: 1, ...QUEUE, queue: 'draw', startsAt });
  const { id: other } = await shop.sell({ stock: 1, ...QUEUE });
  await queued(shop, slow, ['anna', 'bert']);
  await shop.service.change(slow, { action: 'window', startsAt: Date.now() - 1 }, BY);
  let isDrawing = false;
  const { open: goOn, opened: mayGoOn } = gate();
  // Not held up by a lock on the sale's row: sync may need that row, too.
  const db = afterStatement(shop.db, /SET entries = coalesce/, () => {
    isDrawing = true;
    return mayGoOn;
  });
  const head = shop.startHead((await shop.startEngine()).take, { db });
  try {
    await until(() => isDrawing, { what: 'the draw has begun' });
    await queued(shop, other, ['carl']);
    await untilStates(shop, other, { carl: 'offered' });
  } finally {
    goOn();
  }
  await until(async () => (await readQueue(shop.db, slow))?.offersMade === 1, {
    what: 'an offer after the draw',
  });
  expect(head.seen).toMatchObject({ failures: [], draws: [{ saleId: slow, entries: 2 }] });
});

test('a head does not draw the places of another sale that has got the id', async () => {
  const { id, state } = await lobby();
  await rows(shop.db, "UPDATE queues SET seed = decode(repeat('07', 32), 'hex') WHERE sale_id = ?", [id]);
  expect(await makeDraw(shop.db, state)).toBeUndefined();
  expect(await rows(shop.db, 'SELECT entries FROM queues WHERE sale_id = ?', [id])).toEqual([
    { entries: null },
  ]);
});

test('a head does not tell its position to another sale that has got the id', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  await queued(shop, id, ['anna']);
  const { take } = await shop.startEngine();
  let isReplaced = false;
  const head = shop.startHead(async (purchase) => {
    const outcome = await take(purchase);
    if (purchase.saleId !== id || outcome.code !== 'committed') return outcome;
    await rows(
      shop.db,
      `UPDATE queues SET seed = decode(repeat('07', 32), 'hex'), last_number = 0, head = 0, offers_made = 0
       WHERE sale_id = ?`,
      [id],
    );
    await rows(shop.db, 'DELETE FROM begun_offers WHERE sale_id = ?', [id]);
    isReplaced = true;
    return outcome;
  });
  await until(() => isReplaced, { what: 'the head has made its offer' });
  await head.stop();
  expect(await queueOf(id)).toMatchObject({ head: 0, offersMade: 0 });
});
