/** A head is frozen or cut off, another one works meanwhile, and then what the first one had begun arrives. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { QueueChange } from '../../../../src/operations/queue/queue-operations.ts';
import { type Database, rows } from '../../../../src/postgres/database.ts';
import { LocalLocks } from '../../../../src/postgres/sale-locks.ts';
import { QueueService } from '../../../../src/queue/operators/queue-service.ts';
import { markPresent, readPresent, tidyPresence } from '../../../../src/queue/presence.ts';
import { readQueue } from '../../../../src/queue/queue-state.ts';
import { BY } from '../../../support/author.ts';
import { until } from '../../../support/fixtures.ts';
import { gate } from '../../../support/gate.ts';
import { beforeStatement } from '../../../support/postgres/watched-statements.ts';
import { completeForLong, QUEUE, queued, states, untilStates } from '../../../support/shop/queue.ts';
import { Shop } from '../../../support/shop/shop.ts';

const SECONDS = 3_600;
let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
  await shop.startSync();
});

afterAll(() => shop[Symbol.asyncDispose]());

const queueOf = async (saleId: string) => (await readQueue(shop.db, saleId))!;
const otherSale = (saleId: string) =>
  rows(shop.db, "UPDATE queues SET seed = decode(repeat('07', 32), 'hex') WHERE sale_id = ?", [saleId]);

/** A database that does not send the first statement of this sale that matches before `goOn`. */
function holding(db: Database, statement: RegExp, saleId: string) {
  const { open: goOn, opened: mayGoOn } = gate();
  let isHeld = false;
  const slow = beforeStatement(db, statement, async (bindings) => {
    if (isHeld || !bindings.includes(saleId)) return;
    isHeld = true;
    await mayGoOn;
  });
  return { db: slow, goOn, held: () => until(() => isHeld, { what: 'the head is held up' }) };
}

/** A head that is held up, and does no more than what it has begun by then. The other heads need locks of their own. */
async function heldHead(statement: RegExp, saleId: string) {
  const { take } = await shop.startEngine();
  const { db, goOn, held } = holding(shop.db, statement, saleId);
  const head = shop.startHead(take, { db, locks: new LocalLocks() });
  await held();
  const ended = head.stop();
  return {
    head,
    arrive: () => {
      goOn();
      return ended;
    },
  };
}

async function otherHead() {
  return shop.startHead((await shop.startEngine()).take, { locks: new LocalLocks() });
}

test.each<[string, (saleId: string) => Promise<unknown>]>([
  ['its buyer is back', (saleId) => markPresent(shop.db, saleId, SECONDS, [1])],
  ['another sale has got the id', otherSale],
  [
    'nobody knows who is present',
    (saleId) => rows(shop.db, 'DELETE FROM queue_presence WHERE sale_id = ?', [saleId]),
  ],
])('a place that was absent stays if %s when the head ends it', async (_, happens) => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  await queued(shop, id, ['anna', 'bert']);
  await rows(shop.db, 'DELETE FROM queue_presence WHERE sale_id = ?', [id]);
  await tidyPresence(shop.db, id, SECONDS);
  await completeForLong(shop, id);
  await markPresent(shop.db, id, SECONDS, [2]);
  const late = await heldHead(/reason = 'absent'/, id);
  await happens(id);
  await late.arrive();
  expect(await states(shop, id)).toEqual({ anna: 'waiting', bert: 'offered' });
  expect(late.head.seen).toMatchObject({ absent: 0, failures: [] });
});

test('a place stays if another sale has got the id when the head finds it at the limit', async () => {
  const { id } = await shop.sell({ stock: 2, ...QUEUE, perBuyerLimit: 2 });
  await queued(shop, id, ['anna'], 2);
  let isAsked = false;
  const head = shop.startHead(
    async () => {
      isAsked = true;
      await otherSale(id);
      await rows(shop.db, 'UPDATE sales SET per_buyer_limit = 1 WHERE id = ?', [id]);
      return { code: 'limit_reached', limit: 2 } as never;
    },
    { locks: new LocalLocks() },
  );
  await until(() => isAsked, { what: 'the head buys' });
  await head.stop();
  expect(await states(shop, id)).toEqual({ anna: 'waiting' });
});

test('who was heard of stays present although a head tidies by a time of presence that was changed since', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  const now = SECONDS / 2;
  await shop.service.change(id, { action: 'queue', presenceSeconds: now }, BY);
  await tidyPresence(shop.db, id, now);
  await completeForLong(shop, id);
  await markPresent(shop.db, id, now, [1]);
  await tidyPresence(shop.db, id, SECONDS);
  const present = await readPresent(shop.db, id, now);
  expect([1, 2].map((number) => present.has(number))).toEqual([true, false]);
});

test('what a head tells late does not replace what another one has told since', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  await queued(shop, id, ['anna', 'bert', 'carl', 'dora']);
  const late = await heldHead(/SET head = \?/, id);
  await shop.service.change(id, { action: 'top-up', units: 3 }, BY);
  const other = await otherHead();
  await until(async () => (await queueOf(id)).head === 4, { what: 'the other head has told' });
  await other.stop();
  await late.arrive();
  expect(await queueOf(id)).toMatchObject({ head: 4, hopelessFrom: undefined, offersMade: 4 });
  expect(late.head.seen.failures).toEqual([]);
});

test('a head that begins an offer late uses up none that was handed out since', async () => {
  const { id } = await shop.sell({ stock: 9, ...QUEUE });
  await queued(shop, id, ['anna', 'bert']);
  const change = (wanted: QueueChange) => new QueueService(shop.db).changeQueue(id, wanted, BY);
  await change({ action: 'pause' });
  await change({ action: 'hand-out', offers: 1 });
  const late = await heldHead(/stockade_begin_offers/, id);
  const other = await otherHead();
  await until(async () => (await queueOf(id)).offersMade === 1, { what: 'the other head has offered' });
  await other.stop();
  await change({ action: 'hand-out', offers: 1 });
  await late.arrive();
  expect(await queueOf(id)).toMatchObject({ allowed: 1, offersMade: 1 });
  expect(await states(shop, id)).toEqual({ anna: 'offered', bert: 'waiting' });
  const next = await otherHead();
  await untilStates(shop, id, { anna: 'offered', bert: 'offered' });
  await next.stop();
});
