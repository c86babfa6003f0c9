/** Who is present, and what becomes of those who are not. */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { applyReturnsOf } from '../../../src/orders/returns.ts';
import { rows } from '../../../src/postgres/database.ts';
import { QueueWatch } from '../../../src/queue/buyers/queue-watch.ts';
import { offerUnits } from '../../../src/queue/head/round.ts';
import { FifoLine } from '../../../src/queue/line.ts';
import { leaveQueue } from '../../../src/queue/places.ts';
import {
  judgePresent,
  markAbsent,
  markPresent,
  PAGE_PLACES,
  readPresent,
  tidyPresence,
} from '../../../src/queue/presence.ts';
import { readQueue } from '../../../src/queue/queue-state.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { completeForLong, offered, QUEUE, queued, states, untilStates } from '../../support/shop/queue.ts';
import { SeenHead } from '../../support/shop/seen-events.ts';
import { Shop } from '../../support/shop/shop.ts';

/** Long enough for a test to end within one period and the next. */
const SECONDS = 3_600;
let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
  await shop.startSync();
});

afterAll(() => shop[Symbol.asyncDispose]());

const present = (saleId: string) => readPresent(shop.db, saleId, SECONDS);

async function presentUpTo(last: number, saleId: string): Promise<number[]> {
  const found = await present(saleId);
  return Array.from({ length: last }, (_, i) => i + 1).filter((number) => found.has(number));
}

/** As if the bits had been complete for a long time, and nobody had been heard of lately. */
async function complete(saleId: string, { db } = shop): Promise<void> {
  await rows(db, 'DELETE FROM queue_presence WHERE sale_id = ? AND period >= -1', [saleId]);
  await tidyPresence(db, saleId, SECONDS);
  await completeForLong({ db }, saleId);
}

/** Ends with the test: the next one's offers would be made before it is ready. */
async function startHead() {
  const head = shop.startHead((await shop.startEngine()).take);
  onTestFinished(head.stop);
  return head;
}

/** Places by state. */
async function countOf({ db }: Shop, saleId: string): Promise<Record<string, number>> {
  const counts = 'SELECT state, count(*)::integer AS places FROM places WHERE sale_id = ? GROUP BY state';
  const found = await rows<{ state: string; places: number }>(db, counts, [saleId]);
  return Object.fromEntries(found.map(({ state, places }) => [state, places]));
}

test('places that a node has heard of are present, on every page', async () => {
  const [saleId, numbers] = ['pages', [1, 2, PAGE_PLACES, PAGE_PLACES + 1, 3 * PAGE_PLACES]] as const;
  await complete(saleId);
  await markPresent(shop.db, saleId, SECONDS, numbers.slice(0, 3));
  await markPresent(shop.db, saleId, SECONDS, numbers.slice(2));
  expect(await presentUpTo(3 * PAGE_PLACES, saleId)).toEqual(numbers);
  await markAbsent(shop.db, saleId, PAGE_PLACES);
  expect((await present(saleId)).has(PAGE_PLACES)).toBe(false);
});

test('a place is present in the period after, and absent two periods later', async () => {
  const saleId = 'periods';
  await complete(saleId);
  await markPresent(shop.db, saleId, SECONDS, [7]);
  const shift = () =>
    rows(shop.db, 'UPDATE queue_presence SET period = period - 1 WHERE sale_id = ? AND period >= 0', [
      saleId,
    ]);
  await shift();
  expect((await present(saleId)).has(7)).toBe(true);
  await shift();
  expect((await present(saleId)).has(7)).toBe(false);
  await tidyPresence(shop.db, saleId, SECONDS);
  expect(await rows(shop.db, 'SELECT period FROM queue_presence WHERE sale_id = ?', [saleId])).toHaveLength(
    1,
  );
});

test('until the bits have been complete for two periods, everybody counts as present', async () => {
  const saleId = 'new';
  await markPresent(shop.db, saleId, SECONDS, [1]);
  expect((await present(saleId)).has(99)).toBe(true);
  await tidyPresence(shop.db, saleId, SECONDS);
  expect((await present(saleId)).has(99)).toBe(true);
  await complete(saleId);
  expect((await present(saleId)).has(99)).toBe(false);
});

test('a buyer that is absent when its turn comes has left, and the next one gets the unit', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  await queued(shop, id, ['anna', 'bert', 'carl']);
  await complete(id);
  await markPresent(shop.db, id, SECONDS, [2, 3]);
  const { seen } = await startHead();
  await untilStates(shop, id, { anna: 'left', bert: 'offered', carl: 'waiting' });
  await until(() => seen.absent === 1, { what: 'the head reports who was absent' });
  expect(seen.failures).toEqual([]);
});

test('a buyer that has just got its place is present', async () => {
  const { id } = await shop.sell({ stock: 9, ...QUEUE, presenceSeconds: SECONDS });
  await complete(id);
  await queued(shop, id, ['early']);
  await complete(id);
  // The same place again is no new one. A node marks it as it does when it is asked how the place stands.
  await queued(shop, id, ['early', 'anna', 'bert']);
  const found = await present(id);
  expect([1, 2, 3, 4].map((number) => found.has(number))).toEqual([false, true, true, false]);
  const { seen } = await startHead();
  await untilStates(shop, id, { early: 'left', anna: 'offered', bert: 'offered' });
  expect(seen.failures).toEqual([]);
});

test('places that are given together are present on both pages', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  await complete(id);
  await rows(shop.db, 'UPDATE queues SET last_number = ? WHERE sale_id = ?', [PAGE_PLACES - 1, id]);
  expect(await queued(shop, id, ['anna', 'bert'])).toEqual([PAGE_PLACES, PAGE_PLACES + 1]);
  expect(await queued(shop, id, ['carl'])).toEqual([PAGE_PLACES + 2]);
  expect(await presentUpTo(2 * PAGE_PLACES, id)).toEqual([0, 1, 2].map((n) => PAGE_PLACES + n));
});

test('a unit does not wait until all who are absent before it have ended', async () => {
  // Without the heads of other tests.
  await using shop = await Shop.open();
  await shop.startSync();
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  const last = 2 * PAGE_PLACES + 100;
  await rows(
    shop.db,
    `WITH given AS (INSERT INTO places (sale_id, number, buyer_id, quantity)
       SELECT ?, n, 'b' || n, 1 FROM generate_series(1, ?::integer) AS n)
     UPDATE queues SET last_number = ? WHERE sale_id = ?`,
    [id, last, last, id],
  );
  await complete(id, shop);
  await markPresent(shop.db, id, SECONDS, [last - 1, last]);
  const [line, { take: buy }] = [new FifoLine(id), await shop.startEngine()];
  const state = async () => (await readQueue(shop.db, id))!;
  const round = {
    saleId: id,
    queue: await state(),
    line,
    fit: 'wait',
    present: await readPresent(shop.db, id, SECONDS),
    head: 0,
    reach: 0,
    last,
    begun: new Set<number>(),
  } as const;
  const parts = { db: shop.db, buy, events: new SeenHead(), begin: async () => true };
  const made = await offerUnits(parts, { ...round, free: { units: 1, offers: 9 } });
  expect(made).toMatchObject({ offers: 1, units: 1 });
  expect(made.turns.before(1)).toBe(last - 1);
  expect(await countOf(shop, id)).toEqual({ waiting: last - 1, offered: 1 });
  // Nodes read places so far behind the head only because the head has noted that.
  expect(await state()).toMatchObject({ head: 0, reach: last - 1 });

  // Another head ends them, although no unit is free.
  const { seen } = shop.startHead(buy);
  await until(async () => (await state()).head === last - 1, {
    what: 'the head is behind those who are absent',
  });
  expect(await countOf(shop, id)).toEqual({ left: last - 2, offered: 1, waiting: 1 });
  expect(seen).toMatchObject({ absent: last - 2, failures: [] });
});

test.each([
  ['pass', { two: 'waiting', one: 'left', also: 'waiting', anna: 'offered' }],
  ['less', { two: 'left', one: 'left', also: 'left', anna: 'offered' }],
] as const)('with fit %s, an absent place is ended if units were its to take', async (fit, wanted) => {
  // Without the heads of other tests.
  await using shop = await Shop.open();
  await shop.startSync();
  const { id } = await shop.sell({ stock: 1, ...QUEUE, fit, perBuyerLimit: 2, presenceSeconds: SECONDS });
  await queued(shop, id, ['two'], 2);
  await queued(shop, id, ['one']);
  await queued(shop, id, ['also'], 2);
  await queued(shop, id, ['anna', 'bert']);
  await complete(id, shop);
  await markPresent(shop.db, id, SECONDS, [4, 5]);
  const { seen } = shop.startHead((await shop.startEngine()).take);
  await untilStates(shop, id, wanted);
  // The head has looked at all of them again.
  const { report } = (await readQueue(shop.db, id))!;
  await until(async () => (await readQueue(shop.db, id))!.report !== report, { what: 'the next report' });
  await untilStates(shop, id, { ...wanted, bert: 'waiting' });
  expect(seen.failures).toEqual([]);
});

test('with fit pass, an absent place at the end of the line stays if too few units were free', async () => {
  await using shop = await Shop.open();
  await shop.startSync();
  const { id } = await shop.sell({
    stock: 1,
    ...QUEUE,
    fit: 'pass',
    perBuyerLimit: 2,
    presenceSeconds: SECONDS,
  });
  await queued(shop, id, ['anna', 'bert', 'carl'], 2);
  await complete(id, shop);
  await markPresent(shop.db, id, SECONDS, [1]);
  shop.startHead((await shop.startEngine()).take);
  await until(async () => (await readQueue(shop.db, id))?.freeUnits === 1, { what: 'the head reports' });
  expect(await states(shop, id)).toEqual({ anna: 'waiting', bert: 'waiting', carl: 'waiting' });
  await shop.service.change(id, { action: 'top-up', units: 2 }, BY);
  await untilStates(shop, id, { anna: 'offered', bert: 'waiting', carl: 'waiting' });
});

test('a buyer far behind those who are absent is told of its offer', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  const record = (await shop.backend.sales.read(id))!;
  const watch = new QueueWatch({ db: shop.db, record, fault: () => {}, forgotten: () => {} });
  await rows(shop.db, 'UPDATE queues SET reach = 50000, last_number = 60000 WHERE sale_id = ?', [id]);
  await watch.ready();
  expect([50_000, 50_001].map((number) => watch.mustRead(number))).toEqual([true, false]);
  await watch.stop();
});

test('ranks of another draw are told when the sale was deleted and made again', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  const record = (await shop.backend.sales.read(id))!;
  const draw = (of: number) =>
    rows(
      shop.db,
      `UPDATE queues SET last_number = 100, entries = 100, drawn_at = now(), entries_hash = ?, seed = ?
       WHERE sale_id = ?`,
      [`${of}`.repeat(64), Buffer.alloc(32, of), id],
    );
  const watch = new QueueWatch({ db: shop.db, record, fault: () => {}, forgotten: () => {} });
  const ranks = () =>
    Array.from({ length: 100 }, (_, i) => watch.tell({ number: i + 1, quantity: 1 }).rank).join();
  await draw(1);
  await watch.ready();
  const before = ranks();
  await draw(2);
  await until(() => ranks() !== before, { what: 'the new ranks', timeoutMs: 5_000 });
  await watch.stop();
});

test('those who were heard of are marked later if a write fails, but not those who have left meanwhile', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  const record = (await shop.backend.sales.read(id))!;
  const faults: unknown[] = [];
  let fails: (() => void) | undefined = () => watch.gone(2);
  const db = new Proxy(shop.db, {
    get: (of, key) =>
      key !== 'raw'
        ? Reflect.get(of, key)
        : async (sql: string, values: never) => {
            if (!fails || !sql.startsWith('INSERT INTO queue_presence')) return of.raw(sql, values);
            fails();
            fails = undefined;
            watch.heard(3);
            throw new Error('no answer');
          },
  });
  const watch = new QueueWatch({ db, record, fault: (error) => faults.push(error), forgotten: () => {} });
  await complete(id);
  watch.heard(1);
  watch.heard(2);
  await until(async () => (await present(id)).has(3), { what: 'the marks are written' });
  expect(faults).toHaveLength(1);
  const found = await present(id);
  expect([1, 2, 3].map((number) => found.has(number))).toEqual([true, false, true]);
  await watch.stop();
});

test('after an outage of all nodes, nobody is taken for absent', async () => {
  // Without the heads of other tests: a head that was there forgives nothing.
  await using shop = await Shop.open();
  await shop.startSync();
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  await queued(shop, id, ['anna', 'bert']);
  await complete(id, shop);
  await rows(shop.db, "UPDATE queues SET told_at = now() - interval '1 day' WHERE sale_id = ?", [id]);
  const { seen } = shop.startHead((await shop.startEngine()).take);
  await untilStates(shop, id, { anna: 'offered', bert: 'waiting' });
  expect(seen).toMatchObject({ absent: 0, failures: [] });
});

/** The head looks at a sale that nobody may buy from yet. */
const untilTold = (db: Shop['db'], saleId: string) =>
  until(
    async () => {
      const told = "SELECT 1 FROM queues WHERE sale_id = ? AND told_at > now() - interval '1 minute'";
      return (await rows(db, told, [saleId])).length > 0;
    },
    { what: 'the head has told' },
  );

test('an outage during the lobby is forgiven, also if a head has told since', async () => {
  await using shop = await Shop.open();
  await shop.startSync();
  const startsAt = new Date(Date.now() + 3_600_000).toISOString();
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS, startsAt });
  await queued(shop, id, ['anna', 'bert']);
  await complete(id, shop);
  await rows(shop.db, "UPDATE queues SET told_at = now() - interval '1 day' WHERE sale_id = ?", [id]);
  const { seen } = shop.startHead((await shop.startEngine()).take);
  await untilTold(shop.db, id);
  await shop.service.change(id, { action: 'window', startsAt: Date.now() }, BY);
  await untilStates(shop, id, { anna: 'offered', bert: 'waiting' });
  expect(seen).toMatchObject({ absent: 0, failures: [] });
});

test('an outage is forgiven by a new head that must compute the order of a draw first', async () => {
  await using shop = await Shop.open();
  await shop.startSync();
  const startsAt = new Date(Date.now() + 3_600_000).toISOString();
  const drawn = { ...QUEUE, queue: 'draw', presenceSeconds: SECONDS, startsAt } as const;
  const { id } = await shop.sell({ stock: 1, ...drawn });
  await queued(shop, id, ['anna', 'bert', 'carl']);
  const engine = await shop.startEngine();
  const former = shop.startHead(engine.take);
  await shop.service.change(id, { action: 'window', startsAt: Date.now() }, BY);
  const first = await until(
    async () => Object.entries(await states(shop, id)).find(([, state]) => state === 'offered'),
    { what: 'somebody has an offer' },
  );
  await former.stop();
  await complete(id, shop);
  await rows(shop.db, "UPDATE queues SET told_at = now() - interval '1 day' WHERE sale_id = ?", [id]);
  const orderId = await offered(shop, id, first![0]);
  await leaveQueue(shop.db, id, first![0]);
  await applyReturnsOf(shop.db, shop.backend, [orderId]);
  const { seen } = shop.startHead(engine.take);
  await until(async () => Object.values(await states(shop, id)).filter((s) => s === 'offered').length === 1, {
    what: 'the next one has an offer',
  });
  expect(Object.values(await states(shop, id)).sort()).toEqual(['left', 'offered', 'waiting']);
  expect(seen).toMatchObject({ absent: 0, failures: [] });
});

test('if a window that has ended is moved, nobody is taken for absent', async () => {
  await using shop = await Shop.open();
  await shop.startSync();
  const [startsAt, endsAt] = [-1, 1].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString());
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS, startsAt, endsAt });
  await queued(shop, id, ['anna', 'bert']);
  // It ended long ago, and nodes have noted nobody since then.
  await rows(shop.db, "UPDATE sales SET ends_at = now() - interval '1 second' WHERE id = ?", [id]);
  await complete(id, shop);
  const { seen } = shop.startHead((await shop.startEngine()).take);
  await untilTold(shop.db, id);
  await shop.service.change(id, { action: 'window', endsAt: Date.now() + 7_200_000 }, BY);
  await untilStates(shop, id, { anna: 'offered', bert: 'waiting' });
  expect(seen).toMatchObject({ absent: 0, failures: [] });
});

test('after an outage of Postgres, nobody is taken for absent by the head that was there before', async () => {
  await using shop = await Shop.open();
  await shop.startSync();
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  await queued(shop, id, ['anna', 'bert']);
  const { seen } = shop.startHead((await shop.startEngine()).take);
  const orderId = await offered(shop, id, 'anna');
  await until(async () => (await readQueue(shop.db, id))?.toldAt !== undefined, {
    what: 'the head has told',
  });
  await completeForLong(shop, id);
  // The head waits for Postgres, and no node can write who was heard of. Meanwhile three periods go by.
  const outage = await shop.db.transaction();
  await rows(outage, 'LOCK TABLE queues');
  await leaveQueue(shop.db, id, 'anna');
  await applyReturnsOf(shop.db, shop.backend, [orderId]);
  await rows(outage, "UPDATE queues SET told_at = told_at - ? * interval '1 second' WHERE sale_id = ?", [
    3 * SECONDS,
    id,
  ]);
  await rows(outage, 'UPDATE queue_presence SET period = period - 3 WHERE sale_id = ? AND period >= 0', [id]);
  await outage.commit();
  await untilStates(shop, id, { bert: 'offered' });
  expect(seen).toMatchObject({ absent: 0, failures: [] });
});

test('bits of a node that does not know the new time of presence do not count for ever', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS / 2 });
  await shop.service.change(id, { action: 'queue', presenceSeconds: SECONDS }, BY);
  await complete(id);
  await markPresent(shop.db, id, SECONDS / 2, [1]);
  expect((await present(id)).has(1)).toBe(false);
  await tidyPresence(shop.db, id, SECONDS);
  expect(await rows(shop.db, 'SELECT period FROM queue_presence WHERE sale_id = ?', [id])).toHaveLength(1);
});

test.each([
  ['does not count', 'is a moment old', '-1 second'],
  ['counts', 'is old', '-1 day'],
  ['counts', 'is of the time to come, because Postgres’ clock was set back', '1 day'],
])('as an outage %s what a head has told and %s', async (counts, _, toldAt) => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  await complete(id);
  const isOutage = counts === 'counts';
  expect((await present(id)).isEverybody).toBe(false);
  // In one transaction: the heads of other tests may still run, and tell how this queue stands.
  await shop.db.transaction(async (trx) => {
    await rows(trx, 'UPDATE queues SET told_at = now() + ?::interval WHERE sale_id = ?', [toldAt, id]);
    expect((await judgePresent(trx, id, SECONDS)).isEverybody).toBe(isOutage);
  });
  expect((await present(id)).isEverybody).toBe(isOutage);
});

test('in the lobby, a head says that it is there', async () => {
  const startsAt = new Date(Date.now() + 3_600_000).toISOString();
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS, startsAt });
  await startHead();
  await until(async () => (await readQueue(shop.db, id))?.toldAt !== undefined, { what: 'a head has told' });
});

test('the head tells from which rank on nothing can come', async () => {
  const { id } = await shop.sell({ stock: 2, ...QUEUE, presenceSeconds: SECONDS });
  await queued(shop, id, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
  await complete(id);
  await markPresent(shop.db, id, SECONDS, [1, 2, 3, 5, 6, 8]);
  await startHead();
  // Two offers could come back: the places 3 and 5 may still get them, 4 is absent.
  await until(async () => (await readQueue(shop.db, id))?.hopelessFrom === 6, {
    what: 'place 6 has no hope',
  });
  expect(await readQueue(shop.db, id)).toMatchObject({ head: 2, freeUnits: 0, offersMade: 2 });
  await shop.service.change(id, { action: 'pause' }, BY);
  await shop.service.change(id, { action: 'top-up', units: 1 }, BY);
  await until(async () => (await readQueue(shop.db, id))?.hopelessFrom === 7, {
    what: 'place 6 has hope again',
  });
  expect(await states(shop, id)).toMatchObject({ c: 'waiting', d: 'waiting' });
});

test('while everybody counts as present, a buyer that has left takes nobody’s hope', async () => {
  const { id } = await shop.sell({ stock: 2, ...QUEUE, presenceSeconds: SECONDS });
  await queued(shop, id, ['a', 'b', 'c', 'd', 'e', 'f']);
  await leaveQueue(shop.db, id, 'd');
  await startHead();
  // Two offers could come back: the places 3 and 5 may still get them. If the commits are slow, the first rounds tell less.
  const told = async () => {
    const { head, hopelessFrom, freeUnits, offersMade } = (await readQueue(shop.db, id))!;
    return [head, hopelessFrom, freeUnits, offersMade].join();
  };
  await until(async () => (await told()) === '2,6,0,2', {
    what: 'head 2, hopeless from 6, no free unit, two offers',
  });
});
