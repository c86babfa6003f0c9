/**
 * A place that is told to be closed, or that the window has not opened, gets no offer, also if a unit was taken for it before that.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SaleRecord } from '../../../src/engine/contract.ts';
import { rows } from '../../../src/postgres/database.ts';
import type { BuyersQueue } from '../../../src/queue/buyers/buyers-queue.ts';
import { offerTo } from '../../../src/queue/offers.ts';
import { readPlaceOf } from '../../../src/queue/places.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { buyersQueueOf, QUEUE, queued, states, untilStates } from '../../support/shop/queue.ts';
import { Shop } from '../../support/shop/shop.ts';

let shop: Shop;
let queue: BuyersQueue;

beforeAll(async () => {
  shop = await Shop.open();
  queue = buyersQueueOf(shop);
});

afterAll(async () => {
  await queue.stop();
  await shop[Symbol.asyncDispose]();
});

const recordOf = async (saleId: string) => (await shop.backend.sales.read(saleId))!;

const told = async (record: SaleRecord, buyerId: string) =>
  (await queue.look(record, buyerId, undefined))?.state;

const unitsTaken = async (saleId: string) => {
  const { stock, remaining } = await shop.service.show(saleId);
  return stock - (remaining ?? stock);
};

/** A head takes a unit for anna, which no sync commits. */
async function takenForAnna() {
  const { id } = await shop.sell({ stock: 2, ...QUEUE });
  await queued(shop, id, ['anna']);
  const { take } = await shop.startEngine({ requestDeadlineMs: 500 });
  await take(offerTo((await readPlaceOf(shop.db, id, 'anna'))!, 1));
  expect(await unitsTaken(id)).toBe(1);
  return { id, take };
}

/** Sync commits what it finds, and the unit is back. */
async function syncedBack(id: string) {
  const sync = await shop.startSync();
  await until(async () => (await unitsTaken(id)) === 0, { what: 'the unit is back' });
  expect(await states(shop, id)).toEqual({ anna: 'waiting' });
  return sync;
}

test('if the queue was turned off before the commit; when it is turned on again, the place waits again', async () => {
  const { id, take } = await takenForAnna();
  await shop.service.change(id, { action: 'queue', queue: 'off' }, BY);
  expect(await told(await recordOf(id), 'anna')).toBe('closed');
  const sync = await syncedBack(id);
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, findings: [] });
  await shop.service.change(id, { action: 'queue', ...QUEUE }, BY);
  const head = shop.startHead(take);
  await untilStates(shop, id, { anna: 'offered' });
  await head.stop();
  await sync.stop();
});

test('if the sale was closed before the commit', async () => {
  const { id } = await takenForAnna();
  await shop.service.change(id, { action: 'close' }, BY);
  expect(await told(await recordOf(id), 'anna')).toBe('closed');
  const sync = await syncedBack(id);
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, findings: [] });
  await sync.stop();
});

test('if its window has ended before the commit', async () => {
  const { id } = await takenForAnna();
  const ago = (seconds: number) =>
    rows(
      shop.db,
      "UPDATE sales SET starts_at = now() - interval '1 day', ends_at = now() - ? * interval '1 second' WHERE id = ?",
      [seconds, id],
    );
  const { sale, ...rest } = await recordOf(id);
  const ended = { ...rest, sale: { ...sale, endsAt: Date.now() - 1 } };
  // The clock of the node is ahead of Postgres', or a commit may be under way that has looked at the clock before the end.
  await ago(-3_600);
  expect(await told(ended, 'anna')).toBe('waiting');
  await ago(0);
  expect(await told(ended, 'anna')).toBe('waiting');
  await ago(3_600);
  expect(await told(ended, 'anna')).toBe('closed');
  const sync = await syncedBack(id);
  await sync.stop();
});

test('if its window was moved to a later time before the commit; when that has come, the place gets an offer', async () => {
  const { id, take } = await takenForAnna();
  await shop.service.change(id, { action: 'window', startsAt: Date.now() + 3_600_000 }, BY);
  expect(await told(await recordOf(id), 'anna')).toBe('waiting');
  const sync = await syncedBack(id);
  expect(await shop.service.verify(id)).toMatchObject({ ok: true, findings: [] });
  await shop.service.change(id, { action: 'window', startsAt: Date.now() - 1_000 }, BY);
  const head = shop.startHead(take);
  await untilStates(shop, id, { anna: 'offered' });
  await head.stop();
  await sync.stop();
});
