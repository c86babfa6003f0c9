/** What operators see of a queue, and how they stop, pace and hand out its offers. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parsePlaceQuery, type QueueChange } from '../../../src/operations/queue/queue-operations.ts';
import { rows } from '../../../src/postgres/database.ts';
import { DrawCheck } from '../../../src/queue/draw/draw-check.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import { QueueService } from '../../../src/queue/operators/queue-service.ts';
import { leaveQueue } from '../../../src/queue/places.ts';
import { tidyPresence } from '../../../src/queue/presence.ts';
import { BY } from '../../support/author.ts';
import { until } from '../../support/fixtures.ts';
import { gate } from '../../support/gate.ts';
import { completeForLong, offered, QUEUE, queued, states, untilStates } from '../../support/shop/queue.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import type { Till } from '../../support/shop/till.ts';

let shop: Shop;
let till: Till;
let queues: QueueService;

beforeEach(async () => {
  shop = await Shop.open({ backend: 'memory' });
  await shop.startSync();
  till = await shop.startEngine();
  queues = new QueueService(shop.db);
});

afterEach(() => shop[Symbol.asyncDispose]());

const change = (saleId: string, wanted: QueueChange) => queues.changeQueue(saleId, wanted, BY);

const offers = async (saleId: string) =>
  Object.values(await states(shop, saleId)).filter((state) => state === 'offered').length;

describe('show', () => {
  test('counts the places by state, and says that offers are made', async () => {
    const { id } = await shop.sell({ stock: 2, ...QUEUE });
    await queued(shop, id, ['anna', 'bert', 'carl', 'dora']);
    await leaveQueue(shop.db, id, 'dora');
    expect(await queues.showQueue(id)).toMatchObject({
      ...{ saleId: id, order: 'fifo', phase: 'no-head', places: 4, head: 0, behindHead: 4, stopped: false },
      counts: { waiting: 3, offered: 0, bought: 0, lapsed: 0, left: 1 },
      draw: { commitment: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
    shop.startHead(till.take);
    await acceptOffer(shop.db, {
      ...{ orderId: await offered(shop, id, 'anna'), buyerId: 'anna', quantity: 1 },
    });
    await untilStates(shop, id, { bert: 'offered' });
    await until(async () => (await queues.showQueue(id)).head === 2, { what: 'the head has told' });
    expect(await queues.showQueue(id)).toMatchObject({
      ...{ phase: 'offering', head: 2, behindHead: 2, freeUnits: 0, offersLastMinute: 2 },
      counts: { waiting: 1, offered: 1, bought: 1, lapsed: 0, left: 1 },
    });
  });

  test('a sale says how many may wait, and how many units are in offers', async () => {
    const { id } = await shop.sell({ stock: 3, ...QUEUE, fit: 'less', perBuyerLimit: 2 });
    const plain = await shop.sell({ stock: 3 });
    await queued(shop, id, ['anna', 'bert'], 2);
    await queued(shop, id, ['carl']);
    const status = async () => {
      const { behindHead, offeredUnits } = await shop.service.show(id);
      return { behindHead, offeredUnits };
    };
    expect(await status()).toEqual({ behindHead: 3, offeredUnits: 0 });
    shop.startHead(till.take);
    const orderId = await offered(shop, id, 'anna');
    await untilStates(shop, id, { bert: 'offered' });
    await until(async () => (await status()).behindHead === 1, { what: 'the head has told' });
    // Bert wants two units, and only one was left.
    expect(await status()).toEqual({ behindHead: 1, offeredUnits: 3 });
    await acceptOffer(shop.db, { orderId, buyerId: 'anna', quantity: 2 });
    const { sales } = await shop.service.list();
    expect(sales.find((sale) => sale.id === id)).toMatchObject({ remaining: 0, offeredUnits: 1 });
    const other = sales.find((sale) => sale.id === plain.id);
    expect(other).not.toHaveProperty('behindHead');
    expect(other).not.toHaveProperty('offeredUnits');
    await shop.service.change(id, { action: 'close' }, BY);
    expect(await status(), 'nobody waits any more').toEqual({ behindHead: 0, offeredUnits: 1 });
  });

  test('says why no offers are made', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    const phase = async () => (await queues.showQueue(id)).phase;
    shop.startHead(till.take);
    await until(async () => (await phase()) === 'offering', { what: 'the head has told' });
    await change(id, { action: 'pause' });
    expect(await phase()).toBe('stopped');
    await shop.service.change(id, { action: 'pause' }, BY);
    expect(await phase()).toBe('paused');
    await shop.service.change(id, { action: 'window', startsAt: Date.now() + 3_600_000 }, BY);
    expect(await phase()).toBe('before');
    await shop.service.change(id, { action: 'queue', queue: 'off' }, BY);
    expect(await phase()).toBe('off');
    await shop.service.change(id, { action: 'queue', queue: 'fifo' }, BY);
    await shop.service.change(id, { action: 'close' }, BY);
    expect(await phase()).toBe('closed');
  });

  test.each([
    ['in the order of their coming', 'fifo', 0],
    ['after a draw', 'draw', 3_600_000],
  ] as const)('says which place waits for more units than are free, %s', async (_, queue, ms) => {
    const startsAt = new Date(Date.now() + ms).toISOString();
    const { id } = await shop.sell({ stock: 2, perBuyerLimit: 4, ...QUEUE, queue, fit: 'wait', startsAt });
    const waits = async () => (await queues.showQueue(id)).waitsForUnits;
    await queued(shop, id, buyers(20), 3);
    expect(await waits()).toBeUndefined();
    await shop.service.change(id, { action: 'window', startsAt: Date.now() - 1 }, BY);
    shop.startHead(till.take);
    await until(async () => (await waits()) !== undefined, { what: 'the head has told what is free' });
    const { number, quantity } = (await waits())!;
    expect(quantity).toBe(3);
    await shop.service.change(id, { action: 'top-up', units: 1 }, BY);
    await until(async () => (await offers(id)) === 1, { what: 'the place has an offer' });
    const [place] = (await queues.places(id, { state: 'offered' })).places;
    expect(place!.number, 'it was the next').toBe(number);
    await until(async () => (await queues.showQueue(id)).freeUnits === 0, { what: 'the head has told' });
    expect(await waits()).toBeUndefined();
    await shop.service.change(id, { action: 'top-up', units: 1 }, BY);
    await until(async () => (await waits()) !== undefined, { what: 'the next place waits for more' });
    await change(id, { action: 'pause' });
    expect(await waits(), 'offers are stopped').toBeUndefined();
    await change(id, { action: 'resume' });
    await shop.service.change(id, { action: 'queue', fit: 'less' }, BY);
    expect(await waits()).toBeUndefined();
  });

  test('names no place that waits for more units if its buyer is absent, and will be passed over', async () => {
    const { id } = await shop.sell({
      stock: 1,
      perBuyerLimit: 3,
      ...QUEUE,
      fit: 'wait',
      presenceSeconds: 60,
    });
    await queued(shop, id, ['anna'], 3);
    await tidyPresence(shop.db, id, 60);
    await rows(shop.db, 'UPDATE queues SET free_units = 1, told_at = now() WHERE sale_id = ?', [id]);
    expect(await queues.showQueue(id)).toMatchObject({ waitsForUnits: { number: 1, quantity: 3 } });
    await completeForLong(shop, id);
    await rows(shop.db, 'DELETE FROM queue_presence WHERE sale_id = ? AND period > 0', [id]);
    expect((await queues.showQueue(id)).waitsForUnits).toBeUndefined();
  });

  test('a sale that never had a queue has none to show, and none to change', async () => {
    const { id } = await shop.sell({ stock: 1 });
    const none = { code: 'wrong_state', message: expect.stringContaining(`sale ${id} has no queue`) };
    await expect(queues.showQueue(id)).rejects.toMatchObject(none);
    await expect(queues.places(id)).rejects.toMatchObject(none);
    await expect(change(id, { action: 'pause' })).rejects.toMatchObject(none);
    await shop.service.change(id, { action: 'close' }, BY);
    const closed = {
      code: 'wrong_state',
      message: `sale ${id} has no queue, and can get none: it is closed`,
    };
    await expect(queues.showQueue(id)).rejects.toMatchObject(closed);
    await expect(queues.showQueue('nowhere')).rejects.toMatchObject({ code: 'unknown_sale' });
  });
});

describe('places', () => {
  test('come in pages, in the order of their numbers, also of one state', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, buyers(12));
    for (const buyer of ['buyer-1', 'buyer-10']) await leaveQueue(shop.db, id, buyer);
    const numbers = async (query: Parameters<QueueService['places']>[1]) => {
      const { places, next } = await queues.places(id, query);
      return [places.map(({ number }) => number), next];
    };
    expect(await numbers({ limit: 5 })).toEqual([[1, 2, 3, 4, 5], 5]);
    expect(await numbers({ limit: 5, after: 8 })).toEqual([[9, 10, 11, 12], undefined]);
    expect(await numbers({ state: 'waiting', limit: 3, after: 1 })).toEqual([[3, 4, 5], 5]);
    expect(await numbers({ state: 'left' })).toEqual([[2, 11], undefined]);
    expect(await numbers({ state: 'bought' })).toEqual([[], undefined]);
  });

  test('of one buyer say how many wait ahead of it', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await queued(shop, id, ['anna', 'bert', 'carl']);
    await leaveQueue(shop.db, id, 'anna');
    await queued(shop, id, ['anna']);
    expect(await queues.places(id, { buyer: 'anna' })).toEqual({
      places: [
        expect.objectContaining({ number: 4, buyerId: 'anna', state: 'waiting', ahead: 2 }),
        expect.objectContaining({ number: 1, state: 'left', reason: 'asked', endedAt: expect.any(String) }),
      ],
    });
    expect(await queues.places(id, { buyer: 'nobody' })).toEqual({ places: [] });
  });

  test('of one buyer come in pages too, the newest first', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    for (let place = 1; place <= 5; place++) {
      if (place > 1) await leaveQueue(shop.db, id, 'anna');
      await queued(shop, id, ['anna', `other-${place}`]);
    }
    const numbers = async (query: Parameters<QueueService['places']>[1]) => {
      const { places, next } = await queues.places(id, { buyer: 'anna', ...query });
      return [places.map(({ number }) => number), next];
    };
    expect(await numbers({})).toEqual([[9, 7, 5, 3, 1], undefined]);
    expect(await numbers({ limit: 2 })).toEqual([[9, 7], 7]);
    expect(await numbers(parsePlaceQuery({ buyer: 'anna', limit: '2', after: '7' }))).toEqual([[5, 3], 3]);
    expect(await numbers({ limit: 2, after: 3 })).toEqual([[1], undefined]);
    expect(() => parsePlaceQuery({ buyer: 'anna', state: 'left' })).toThrow();
  });

  test('of a draw have no rank before it, and then count by rank', async () => {
    const startsAt = new Date(Date.now() + 3_600_000).toISOString();
    const { id } = await shop.sell({ stock: 1, ...QUEUE, queue: 'draw', startsAt });
    const names = buyers(20);
    await queued(shop, id, names);
    const ahead = async (buyer: string) => (await queues.places(id, { buyer })).places[0]!.ahead;
    expect(await ahead('buyer-0')).toBeUndefined();
    shop.startHead(till.take);
    await change(id, { action: 'pause' });
    await shop.service.change(id, { action: 'window', startsAt: Date.now() - 1 }, BY);
    await until(async () => (await queues.showQueue(id)).draw.drawnAt !== undefined, { what: 'the draw' });
    await queued(shop, id, ['late']);
    const found = await Promise.all(names.map(ahead));
    expect(found.toSorted((a, b) => a! - b!)).toEqual(names.map((_, i) => i));
    expect(await ahead('late')).toBe(20);
    await change(id, { action: 'hand-out', offers: 1 });
    await untilStates(shop, id, { [names[found.indexOf(0)]!]: 'offered' });
  });
});

describe('offers', () => {
  test('are no more than were handed out, although their commits take long', async () => {
    const { id } = await shop.sell({ stock: 10, ...QUEUE });
    await change(id, { action: 'pause' });
    await queued(shop, id, buyers(12));
    const { open: answer, opened: answered } = gate();
    let asked = 0;
    const { seen } = shop.startHead(async (purchase) => {
      asked++;
      // The first three are never taken; of the next three, which repeat them, the answers come late.
      if (asked <= 3) await new Promise(() => {});
      const outcome = await till.take(purchase);
      await answered;
      return outcome;
    });
    await change(id, { action: 'hand-out', offers: 3 });
    await until(async () => (await offers(id)) === 3, { what: 'the offers are made' });
    await until(() => seen.delays.length >= 2, { what: 'two rounds have waited in vain' });
    const told = async () => (await queues.showQueue(id)).toldAt;
    for (let reports = 0; reports < 2; reports++) {
      const before = await told();
      await until(async () => (await told()) !== before, { what: 'the head has told again' });
    }
    expect(await queues.showQueue(id)).toMatchObject({ allowed: 0, offersMade: 3, freeUnits: 7 });
    expect([asked, await offers(id)]).toEqual([6, 3]);
    answer();
    await change(id, { action: 'hand-out', offers: 2 });
    await until(async () => (await offers(id)) === 5, { what: 'two more' });
    await until(async () => (await queues.showQueue(id)).offersMade === 5, { what: 'all are counted' });
  });

  test('are no more than were handed out, although the head dies when it has begun one', async () => {
    const { id } = await shop.sell({ stock: 10, ...QUEUE });
    await change(id, { action: 'pause' });
    await queued(shop, id, buyers(4));
    let begun: Promise<unknown> | undefined;
    const { seen, stop } = shop.startHead((purchase) => {
      begun = till.take(purchase);
      throw new Error('the head dies');
    });
    await change(id, { action: 'hand-out', offers: 1 });
    await until(() => seen.failures.length > 0, { what: 'the head has died' });
    await stop();
    await begun;
    const next = shop.startHead(till.take);
    const told = async () => (await queues.showQueue(id)).toldAt;
    for (let reports = 0; reports < 2; reports++) {
      const before = await told();
      await until(async () => (await told()) !== before, { what: 'the next head has told' });
    }
    expect([await offers(id), (await queues.showQueue(id)).allowed, next.seen.offers]).toEqual([1, 0, 0]);
  });

  test('are not used up by a place that is passed over', async () => {
    const { id } = await shop.sell({ stock: 10, ...QUEUE });
    await change(id, { action: 'pause' });
    await queued(shop, id, buyers(4));
    let asked = 0;
    const { seen } = shop.startHead((purchase) =>
      asked++ === 0
        ? Promise.resolve({ code: 'limit_reached', limit: 1, orderIds: [] })
        : till.take(purchase),
    );
    await change(id, { action: 'hand-out', offers: 2 });
    await until(async () => (await offers(id)) === 2, { what: 'two offers' });
    await until(async () => (await queues.showQueue(id)).offersMade === 2, { what: 'all are counted' });
    expect([(await queues.showQueue(id)).allowed, seen.failures]).toEqual([0, []]);
  });

  test('are stopped, handed out, and go on', async () => {
    const { id } = await shop.sell({ stock: 10, ...QUEUE });
    await change(id, { action: 'pause' });
    await queued(shop, id, buyers(12));
    shop.startHead(till.take);
    const phase = async () => (await queues.showQueue(id)).phase;
    await until(async () => (await phase()) === 'stopped', { what: 'the head has told' });
    expect(await offers(id)).toBe(0);
    expect(await change(id, { action: 'hand-out', offers: 3 })).toMatchObject({ stopped: true, allowed: 3 });
    await until(async () => (await queues.showQueue(id)).allowed === 0, { what: 'the offers were begun' });
    await until(async () => (await offers(id)) === 3, { what: 'the offers were made' });
    expect(await change(id, { action: 'resume' })).toMatchObject({ stopped: false, allowed: 0 });
    await until(async () => (await offers(id)) === 10, { what: 'all offers' });
  });

  test('that were handed out are taken back by 0, and by a stop', async () => {
    const { id } = await shop.sell({ stock: 10, ...QUEUE });
    await change(id, { action: 'pause' });
    await change(id, { action: 'hand-out', offers: 5 });
    expect(await change(id, { action: 'hand-out', offers: 0 })).toMatchObject({ allowed: 0 });
    await change(id, { action: 'hand-out', offers: 5 });
    expect(await change(id, { action: 'pause' })).toMatchObject({ stopped: true, allowed: 0 });
  });

  test('can’t be handed out while they go on', async () => {
    const { id } = await shop.sell({ stock: 10, ...QUEUE });
    await expect(change(id, { action: 'hand-out', offers: 5 })).rejects.toMatchObject({
      code: 'wrong_state',
      message: expect.stringContaining('are not stopped'),
    });
  });

  test('have a pace, which can be taken away', async () => {
    const { id } = await shop.sell({ stock: 10, ...QUEUE });
    expect(await change(id, { action: 'pace', perMinute: 30 })).toMatchObject({ perMinute: 30 });
    expect((await change(id, { action: 'pace', perMinute: null })).perMinute).toBeUndefined();
  });

  test('of a closed sale can’t be changed', async () => {
    const { id } = await shop.sell({ stock: 10, ...QUEUE });
    await shop.service.change(id, { action: 'close' }, BY);
    await expect(change(id, { action: 'pause' })).rejects.toMatchObject({ code: 'wrong_state' });
  });

  test('leave each change in the ledger, with operator and reason, and nothing for the same again', async () => {
    const { id } = await shop.sell({ stock: 10, ...QUEUE });
    const changes: QueueChange[] = [
      { action: 'pause' },
      { action: 'pause' },
      { action: 'hand-out', offers: 2 },
      { action: 'resume' },
      { action: 'pace', perMinute: 60 },
    ];
    for (const one of changes) await change(id, one);
    const noted = (await shop.changesOf(id)).map(({ detail }) => detail);
    expect(noted).toEqual([
      { from: { offers: 'going on' }, to: { offers: 'stopped' } },
      { from: { allowed: 0 }, to: { allowed: 2 } },
      { from: { offers: 'stopped', allowed: 2 }, to: { offers: 'going on', allowed: 0 } },
      { from: { perMinute: null }, to: { perMinute: 60 } },
    ]);
    for (const entry of await shop.changesOf(id))
      expect(entry).toMatchObject({ action: 'queue', units: 0, applied: true, ...BY });
  });
});

describe('the file of a draw', () => {
  test('proves the draw', async () => {
    const startsAt = new Date(Date.now() + 3_600_000).toISOString();
    const { id } = await shop.sell({ stock: 1, ...QUEUE, queue: 'draw', startsAt });
    await queued(shop, id, buyers(2_500));
    await expect(queues.drawFile(id)).rejects.toMatchObject({
      code: 'wrong_state',
      message: expect.stringContaining(`when its window opens, at ${startsAt}`),
    });
    const { commitment } = (await queues.showQueue(id)).draw;
    shop.startHead(till.take);
    await shop.service.change(id, { action: 'window', startsAt: Date.now() - 1 }, BY);
    await until(async () => (await queues.showQueue(id)).draw.drawnAt !== undefined, { what: 'the draw' });
    const check = new DrawCheck(commitment);
    let text = '';
    for await (const piece of await queues.drawFile(id)) text += piece;
    for (const line of text.split('\n')) check.line(line);
    expect(check.end()).toMatchObject({ ok: true, vacant: 0, header: { sale: id, entries: 2_500 } });
  });

  test('does not exist for places in the order in which they came', async () => {
    const { id } = await shop.sell({ stock: 1, ...QUEUE });
    await expect(queues.drawFile(id)).rejects.toMatchObject({
      message: `sale ${id} has no draw: its queue is fifo`,
    });
  });
});
