/**
 * Order events from the outbox to the stream: all of them, in order for each order, whatever dies in between. Readers are
 * judged as docs/events.md tells them to read: repeated ids are dropped.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { encodeNote } from '../../../src/engine/sale/order-note.ts';
import { EVENT_KINDS } from '../../../src/events/event-kind.ts';
import { Outbox, PART_EVENTS } from '../../../src/events/outbox.ts';
import { emptyOutbox } from '../../../src/events/outbox-work.ts';
import { rows } from '../../../src/postgres/database.ts';
import { LocalLocks, PostgresLocks } from '../../../src/postgres/sale-locks.ts';
import { BY } from '../../support/author.ts';
import { deathAt, part } from '../../support/engine/intercept.ts';
import { Desk, MAX_EVENTS } from '../../support/events/event-desk.ts';
import {
  expectStories,
  firstDeliveries,
  insertEvent,
  SeenRelayEvents,
  storiesOf,
} from '../../support/events/event-log.ts';
import { until } from '../../support/fixtures.ts';
import { asUser, REDIS_USER } from '../../support/postgres/least-rights.ts';
import { RedisServer } from '../../support/servers/redis-server.ts';
import { placed } from '../../support/shop/orders.ts';
import { buyers } from '../../support/shop/shop.ts';

test('a committed order has an event with all its members', async () => {
  await using desk = await Desk.open();
  await desk.shop.startSync();
  const { seen } = desk.startRelay();
  const till = await desk.shop.startEngine();
  const outcome = await till.buy(desk.saleId, 'ada', { quantity: 1 });
  await until(() => seen.streamedEvents === 1, { what: 'the event is in the stream' });
  const [event] = await desk.stream();
  expect(event).toEqual({
    id: '1-1',
    kind: 'order.committed',
    orderId: 'orderId' in outcome && outcome.orderId,
    saleId: desk.saleId,
    buyerId: 'ada',
    quantity: 1,
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    seq: '1',
  });
  expect(Math.abs(Date.parse(event!.at) - Date.now())).toBeLessThan(10_000);
  await desk.emptied();
});

test('an event has the reference and metadata of its order, if there are any', async () => {
  await using desk = await Desk.open();
  await desk.shop.startSync();
  const { seen } = desk.startRelay();
  const till = await desk.shop.startEngine();
  const noted = {
    ada: { reference: 'cart 1', metadata: { a: 'b\tc\n', d: [1] } },
    bob: { reference: 'x' },
    eve: {},
  };
  for (const [buyer, note] of Object.entries(noted))
    await till.buy(desk.saleId, buyer, { note: encodeNote(note) });
  await until(() => seen.streamedEvents === 3, { what: 'the events are in the stream' });
  const found = (await desk.stream()).map(({ buyerId, reference, metadata }) => [
    buyerId,
    { reference, metadata: metadata && JSON.parse(String(metadata)) },
  ]);
  expect(Object.fromEntries(found)).toEqual({
    ada: noted.ada,
    bob: { ...noted.bob, metadata: undefined },
    eve: { reference: undefined, metadata: undefined },
  });
  await desk.emptied();
});

test('each change of an order has an event, in order', async () => {
  await using desk = await Desk.open();
  await desk.shop.startSync();
  desk.startRelay();
  const till = await desk.shop.startEngine();
  const orders = desk.shop.orders((purchase) => till.engine.purchase(purchase));
  const redeemed = await placed(till, desk.saleId, 'ada');
  const refunded = await placed(till, desk.saleId, 'bob');
  const cancelled = await placed(till, desk.saleId, 'eve');
  for (const id of [redeemed, refunded]) await orders.changeOrder(id, { kind: 'pay', payType: 'card' }, BY);
  // Once more: it is answered like the first time, and is no event.
  await orders.changeOrder(redeemed, { kind: 'pay', payType: 'card' }, BY);
  await orders.changeOrder(redeemed, { kind: 'redeem' }, BY);
  await orders.changeOrder(refunded, { kind: 'refund' }, BY);
  await orders.changeOrder(cancelled, { kind: 'cancel' }, BY);
  await desk.emptied();
  const stories = storiesOf(await desk.stream());
  expect(stories.get(redeemed)).toEqual(['committed', 'paid', 'redeemed']);
  expect(stories.get(refunded)).toEqual(['committed', 'paid', 'refunded']);
  expect(stories.get(cancelled)).toEqual(['committed', 'cancelled']);
});

test('a rush of buyers: one event for each order, whatever the batches were', async () => {
  await using desk = await Desk.open();
  await desk.shop.startSync();
  desk.startRelay();
  const till = await desk.shop.startEngine();
  const outcomes = await till.buyAll(desk.saleId, buyers(2_000));
  await desk.emptied();
  const orderIds = outcomes.map((outcome) => ('orderId' in outcome ? outcome.orderId : outcome.code));
  expectStories(await desk.stream(), orderIds, ['committed']);
});

test('events of one order come in order, also if their rows are longer than a part', async () => {
  await using desk = await Desk.open();
  const orderIds = await desk.orders(PART_EVENTS * 2 + 10);
  for (const kind of ['committed', 'paid', 'refunded']) await desk.event(kind, orderIds);
  desk.startRelay();
  await desk.emptied();
  const events = await desk.stream();
  expect(events.map(({ orderId }) => orderId)).toEqual([...orderIds, ...orderIds, ...orderIds]);
  expect(firstDeliveries(events)).toHaveLength(events.length);
  expectStories(events, orderIds, ['committed', 'paid', 'refunded']);
});

test('each kind of event has its name', async () => {
  await using desk = await Desk.open();
  const orderIds = await desk.orders(1);
  const [allowed] = await rows<{ by: string }>(
    desk.db,
    "SELECT pg_get_constraintdef(oid) AS by FROM pg_constraint WHERE conname = 'order_events_kind_check'",
  );
  const kinds = [...allowed!.by.matchAll(/'(\w+)'/g)].map(([, kind]) => kind!);
  for (const kind of kinds) await desk.event(kind, orderIds);
  desk.startRelay();
  await desk.emptied();
  const names = (await desk.stream()).map(({ kind }) => kind);
  expect(names).toEqual(Object.values(EVENT_KINDS));
  expect(names).toEqual(kinds.map((kind) => EVENT_KINDS[kind]));
});

test('a row whose orders were deleted from Postgres has no events and blocks nothing', async () => {
  await using desk = await Desk.open();
  const orderIds = await desk.orders(1);
  await desk.event('committed', ['999999999']);
  await desk.event('committed', []);
  await desk.event('committed', orderIds);
  desk.startRelay();
  await desk.emptied();
  expectStories(await desk.stream(), orderIds, ['committed']);
});

test('a transaction that commits late, with a lower id, is not skipped', async () => {
  await using desk = await Desk.open();
  const [early, late] = [await desk.orders(1), await desk.orders(1)];
  const slow = await desk.db.transaction();
  await insertEvent(slow, 'committed', late);
  await desk.event('committed', early);
  const { seen } = desk.startRelay();
  await until(() => seen.streamedEvents === 1, { what: 'the event that is visible is told' });
  await desk.event('paid', early);
  await until(() => seen.streamedEvents === 2, { what: 'and the next one' });
  await slow.commit();
  await until(() => seen.streamedEvents === 3, { what: 'the row with the lower id is told too' });
  const events = await desk.stream();
  expect(events.map(({ orderId }) => orderId)).toEqual([...early, ...early, ...late]);
  expect(Number.parseInt(events[2]!.id, 10)).toBeLessThan(Number.parseInt(events[0]!.id, 10));
});

const STEPS = [
  { dies: 'before it has read', call: 'outbox.read', nth: 1, repeated: 0 },
  { dies: 'before the first part', call: 'events.append', nth: 1, repeated: 0 },
  { dies: 'between two parts', call: 'events.append', nth: 2, repeated: PART_EVENTS },
  { dies: 'before it removes what is delivered', call: 'outbox.remove', nth: 1, repeated: 600 },
  { dies: 'after it has removed it', call: 'outbox.read', nth: 2, repeated: 0 },
];

test.each(STEPS)('a relay that dies $dies: the next one misses no event', async ({ call, nth, repeated }) => {
  await using desk = await Desk.open();
  const orderIds = await desk.orders(300);
  await desk.event('committed', orderIds);
  await desk.event('paid', orderIds);
  let calls = 0;
  const { death, before } = deathAt((name) => name === call && ++calls === nth);
  const doomed = {
    outbox: part(new Outbox(desk.db), 'outbox', before),
    stream: { events: part(desk.shop.backend.events!, 'events', before), maxEvents: MAX_EVENTS },
    forWebhook: false,
    events: new SeenRelayEvents(),
  };
  const steps = (async () => {
    while ((await emptyOutbox(doomed)) === 0);
  })();
  await Promise.race([death, steps]);
  const left = await desk.stream();
  desk.startRelay();
  await desk.emptied();
  const events = await desk.stream();
  expect(events.slice(0, left.length)).toEqual(left);
  expect(events.length - firstDeliveries(events).length).toBe(repeated);
  expectStories(events, orderIds, ['committed', 'paid']);
});

test('another relay takes over when the first one’s connection ends', async () => {
  await using desk = await Desk.open();
  const [first, second] = [
    new PostgresLocks(desk.shop.databaseUrl),
    new PostgresLocks(desk.shop.databaseUrl),
  ];
  const orderIds = await desk.orders(2);
  // Holds the lock and does nothing: a process that hangs.
  expect(await first.tryLock(':events')).toBe(true);
  const { seen } = desk.startRelay({ locks: second });
  await desk.event('committed', orderIds);
  expect(await second.tryLock(':events'), 'the lock keeps the second one off').toBe(false);
  expect(seen.streamedEvents).toBe(0);
  await first.close();
  await desk.emptied();
  expectStories(await desk.stream(), orderIds, ['committed']);
  await second.close();
});

test('two relays at once, without locks: events may repeat, but are correct', async () => {
  await using desk = await Desk.open();
  const relays = [desk.startRelay({ locks: new LocalLocks() }), desk.startRelay({ locks: new LocalLocks() })];
  const kinds = ['committed', 'paid', 'redeemed'];
  const crowd = Array.from({ length: 8 }, async (_, i) => {
    const orderIds = await desk.orders(40 + i * 37);
    for (const kind of kinds) await desk.event(kind, orderIds);
    return orderIds;
  });
  const orderIds = (await Promise.all(crowd)).flat();
  await desk.emptied();
  // One of them may be about to repeat its last page.
  let before = -1;
  await until(
    async () => {
      const told = relays.reduce((sum, { seen }) => sum + seen.streamedEvents, 0);
      const same = told === before;
      before = told;
      await delay(50);
      return same;
    },
    { what: 'both relays have ended their pages' },
  );
  expect(relays.flatMap(({ seen }) => seen.crashes)).toEqual([]);
  expectStories(await desk.stream(), orderIds, kinds);
});

test('the stream keeps only the newest events', async () => {
  await using desk = await Desk.open();
  const orderIds = await desk.orders(2_000);
  await desk.event('committed', orderIds);
  desk.startRelay({ stream: { events: desk.shop.backend.events!, maxEvents: 500 } });
  await desk.emptied();
  const events = await desk.stream();
  // Redis trims whole nodes of 100 entries.
  expect(events.length).toBeGreaterThanOrEqual(500);
  expect(events.length).toBeLessThan(700);
  expect(events.at(-1)!.orderId).toBe(orderIds.at(-1));
});

test('events removed before a group received them are counted, and the reader sees the gap', async () => {
  await using desk = await Desk.open();
  using reader = new Reader(desk);
  const { seen } = desk.startRelay({ stream: { events: desk.shop.backend.events!, maxEvents: 500 } });
  await desk.event('committed', await desk.orders(600));
  await desk.emptied();
  for (const group of ['cashier', 'mailer', 'idle']) await reader.create(group);
  const [all, some] = [await reader.read('cashier', 1_000), await reader.read('mailer', 250)];
  // Events removed before there was any group were missed by none.
  expect(seen.displacements.flatMap(({ missed }) => missed)).toEqual([]);
  await desk.event('committed', await desk.orders(2_000));
  await desk.emptied();

  const missed = seen.displacements.flatMap((displaced) => displaced.missed);
  const missedBy = (name: string) =>
    missed.reduce((sum, { group, events }) => sum + (group === name ? events : 0), 0);
  const last: [group: string, seq: number][] = [
    ['cashier', all.at(-1)!],
    ['mailer', some.at(-1)!],
    ['idle', all[0]! - 1],
  ];
  for (const [group, before] of last) {
    const next = await reader.read(group, 5_000);
    expect(next, group).toEqual(next.map((_, i) => next[0]! + i));
    expect(next.at(-1), group).toBe(2_600);
    expect(missedBy(group), group).toBe(next[0]! - before - 1);
    expect(missedBy(group), group).toBeGreaterThan(1_000);
  }
  const displaced = seen.displacements.reduce((sum, { events }) => sum + events, 0);
  expect(displaced).toBe(2_600 - (await desk.stream()).length);
});

test('a group that reads in time has missed nothing', async () => {
  await using desk = await Desk.open();
  using reader = new Reader(desk);
  const { seen } = desk.startRelay({ stream: { events: desk.shop.backend.events!, maxEvents: 500 } });
  await reader.create('mailer');
  const got: number[] = [];
  for (let page = 0; page < 5; page++) {
    await desk.event('committed', await desk.orders(400));
    await desk.emptied();
    got.push(...(await reader.read('mailer', 1_000)));
  }
  expect(got).toEqual(Array.from({ length: 2_000 }, (_, i) => i + 1));
  expect(seen.displacements.length).toBeGreaterThan(0);
  expect(seen.displacements.flatMap(({ missed }) => missed)).toEqual([]);
});

test('a stream that begins anew counts from one', async () => {
  await using desk = await Desk.open();
  using reader = new Reader(desk);
  desk.startRelay();
  await desk.event('committed', await desk.orders(3));
  await desk.emptied();
  await reader.redis.del(reader.stream);
  await desk.event('committed', await desk.orders(2));
  await desk.emptied();
  await reader.create('mailer');
  expect(await reader.read('mailer', 10)).toEqual([1, 2]);
});

test('with the rights of the version before, events are sent, and the reader learns what can’t be determined', async () => {
  await using redis = await RedisServer.start();
  await using desk = await Desk.open({ redis: redis.productUrl });
  using reader = new Reader(desk);
  await reader.redis.call('ACL', 'SETUSER', REDIS_USER, '-xrevrange', '-xlen', '-xinfo');
  const { seen } = desk.startRelay({ stream: { events: desk.shop.backend.events!, maxEvents: 500 } });
  const orderIds = await desk.orders(1_000);
  await desk.event('committed', orderIds);
  await desk.emptied();
  const events = await desk.stream();
  expect(events.at(-1)!.orderId).toBe(orderIds.at(-1));
  expect(events.length).toBeLessThan(700);
  expect(events.at(-1)).not.toHaveProperty('seq');
  expect(seen.displacements[0]!.unseen).toMatch(/can't run this command|permission/);
  expect(seen.crashes).toEqual([]);
});

/** A program of the shop that reads the stream by groups. */
class Reader implements Disposable {
  readonly redis: Redis;
  readonly stream: string;

  constructor({ shop }: Desk) {
    this.redis = new Redis(asUser(shop.redisUrl, ''));
    this.stream = `${shop.keyPrefix}events`;
  }

  create(group: string): Promise<unknown> {
    return this.redis.xgroup('CREATE', this.stream, group, '0', 'MKSTREAM');
  }

  /** @returns the numbers of the events that the group is given */
  async read(group: string, count: number): Promise<number[]> {
    const reply = await this.redis.xreadgroup(
      'GROUP',
      group,
      'one',
      'COUNT',
      count,
      'STREAMS',
      this.stream,
      '>',
    );
    const entries = ((reply ?? []) as [stream: string, entries: [id: string, fields: string[]][]][]).flatMap(
      ([, found]) => found,
    );
    return entries.map(([, fields]) => Number(fields[fields.indexOf('seq') + 1]));
  }

  [Symbol.dispose](): void {
    this.redis.disconnect();
  }
}

test('without a stream and a webhook the outbox does not grow', async () => {
  await using desk = await Desk.open();
  await desk.event('committed', await desk.orders(10));
  desk.startRelay({ stream: undefined });
  await desk.emptied();
  expect(await desk.stream()).toEqual([]);
});

test('the in-process backend keeps no stream, and its outbox does not grow either', async () => {
  await using desk = await Desk.open({ backend: 'memory' });
  expect(desk.shop.backend.events).toBeUndefined();
  await desk.shop.startSync();
  desk.startRelay({ stream: undefined });
  const till = await desk.shop.startEngine();
  expect(await till.buy(desk.saleId, 'ada')).toMatchObject({ code: 'committed' });
  await desk.emptied();
});

test('while Redis can’t be reached events wait; then they are sent in order', async () => {
  await using redis = await RedisServer.start({ appendonly: true });
  await using desk = await Desk.open({ redis: redis.productUrl });
  const { seen } = desk.startRelay();
  const orderIds = await desk.orders(3);
  await desk.event('committed', orderIds);
  await desk.emptied();
  await redis.kill();
  await desk.event('paid', orderIds);
  await until(() => seen.crashes.length > 0, { what: 'the relay meets no Redis' });
  await desk.event('redeemed', orderIds);
  expect(await desk.outboxRows()).toBe(2);
  await redis.restart();
  await desk.emptied();
  expectStories(await desk.stream(), orderIds, ['committed', 'paid', 'redeemed']);
});

test('while the stream takes no events, what waits is reported all the time', async () => {
  await using desk = await Desk.open();
  await desk.event('committed', await desk.orders(1));
  const reports: number[] = [];
  const seen = new SeenRelayEvents();
  seen.waiting = ({ rows, oldestMs }) => reports.push(oldestMs > 0 ? rows : 0);
  const append = async () => {
    throw new Error('OOM command not allowed');
  };
  desk.startRelay({ stream: { events: { append }, maxEvents: MAX_EVENTS }, events: seen });
  await until(() => reports.length >= 5, { what: 'five reports' });
  expect(seen.crashes.length).toBeGreaterThan(1);
  expect(reports).toEqual(reports.map(() => 1));
});

test('under load events wait, up to their limit', async () => {
  await using desk = await Desk.open();
  let asked = 0;
  const isLoadHigh = () => ++asked > 0;
  const { seen } = desk.startRelay({ backpressure: { isLoadHigh, maxMs: 3_000 } });
  await desk.event('committed', await desk.orders(1));
  await until(() => asked > 2, { what: 'the relay leaves the processor to the crowd' });
  expect(seen.streamedEvents).toBe(0);
  await until(() => seen.streamedEvents === 1, { what: 'the bound has passed' });
});
