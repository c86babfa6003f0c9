/** No place is left out: not between two rounds of the head, and not when an operator changes the queue. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { offerTo } from '../../../src/queue/offers.ts';
import { givePlaces, leaveQueue, readPlaceOf } from '../../../src/queue/places.ts';
import { markPresent, tidyPresence } from '../../../src/queue/presence.ts';
import { readQueue } from '../../../src/queue/queue-state.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { completeForLong, QUEUE, queued, states, untilStates } from '../../support/shop/queue.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';

/** Long enough for a test to end within one period and the next. */
const SECONDS = 3_600;
let shop: Shop;
let till: Till;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
  till = await shop.startEngine();
});

afterAll(() => shop[Symbol.asyncDispose]());

test('the head goes on behind the first place of those that wait, also if their numbers have several digits', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  await queued(shop, id, buyers(12));
  const sync = await shop.startSync();
  const head = shop.startHead(till.take);
  await until(async () => (await readQueue(shop.db, id))?.head === 1, { what: 'one offer is told' });
  expect(await readQueue(shop.db, id)).toMatchObject({ offersMade: 1, hopelessFrom: 3 });
  await shop.service.change(id, { action: 'top-up', units: 1 }, BY);
  await until(async () => (await readQueue(shop.db, id))?.offersMade === 2, { what: 'two offers are told' });
  expect(await states(shop, id)).toMatchObject({ 'buyer-1': 'offered', 'buyer-9': 'waiting' });
  await head.stop();
  await sync.stop();
});

test('a place that is given while the head tells how the queue stands gets its offer', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  let given = false;
  const meanwhile = async (statement: unknown) => {
    if (given || !String(statement).startsWith('UPDATE queues SET head')) return;
    given = true;
    await queued(shop, id, ['anna']);
  };
  const db = new Proxy(shop.db, {
    get: (target, name) =>
      name === 'raw'
        ? async (...args: Parameters<typeof target.raw>) => {
            await meanwhile(args[0]);
            return target.raw(...args);
          }
        : Reflect.get(target, name),
  });
  const sync = await shop.startSync();
  const head = shop.startHead(till.take, { db });
  await untilStates(shop, id, { anna: 'offered' });
  await head.stop();
  await sync.stop();
});

test('many nodes give places at the same time: each number is given once', async () => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE });
  const names = buyers(40);
  const batches = await Promise.all(
    names.map((buyerId) => givePlaces(shop.db, id, [{ buyerId, quantity: 1 }])),
  );
  const numbers = batches.flatMap((given) => [...given.values()].map(({ number }) => number));
  expect(numbers.sort((a, b) => a - b)).toEqual(names.map((_, i) => i + 1));
});

test.each([
  ['is turned off and on again', [{ queue: 'off' }, { ...QUEUE, presenceSeconds: SECONDS }]],
  ['gets another time of presence', [{ presenceSeconds: SECONDS / 2 }]],
] as const)('a queue that %s takes nobody for absent at first', async (_, changes) => {
  const { id } = await shop.sell({ stock: 1, ...QUEUE, presenceSeconds: SECONDS });
  await queued(shop, id, ['anna', 'bert']);
  await tidyPresence(shop.db, id, SECONDS);
  await completeForLong(shop, id);
  await markPresent(shop.db, id, SECONDS * 4, [1, 2]);
  for (const change of changes) await shop.service.change(id, { action: 'queue', ...change }, BY);
  const sync = await shop.startSync();
  const head = shop.startHead(till.take);
  await until(async () => (await readQueue(shop.db, id))?.toldAt !== undefined, {
    what: 'the head has told',
  });
  await untilStates(shop, id, { anna: 'offered', bert: 'waiting' });
  await head.stop();
  await sync.stop();
});

test('a buyer that leaves before its offer is committed, and comes again, is not at its limit', async () => {
  const { id } = await shop.sell({ stock: 2, ...QUEUE });
  await queued(shop, id, ['anna']);
  const impatient = await shop.startEngine({ requestDeadlineMs: 300 });
  await impatient.take(offerTo((await readPlaceOf(shop.db, id, 'anna'))!, 1));
  await leaveQueue(shop.db, id, 'anna');
  await queued(shop, id, ['anna']);
  // Nothing is committed yet, so Redis still counts the units of the first place.
  const { seen, stop } = shop.startHead(impatient.take);
  await until(() => seen.limited + seen.delays.length > 0, { what: 'the head has tried' });
  expect(await states(shop, id)).toEqual({ anna: 'waiting' });
  const sync = await shop.startSync();
  await untilStates(shop, id, { anna: 'offered' });
  await stop();
  await sync.stop();
});
