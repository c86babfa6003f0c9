/** A shop embedded in this process, on Redis and Postgres: its methods do what buyers and operators get from a node. */
import { afterAll, afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { Keys } from '../../../src/engine/redis/protocol/keys.ts';
import {
  InvalidInput,
  type Logger,
  type OpenOptions,
  type Order,
  type OrderEvent,
  open,
  type Shop,
} from '../../../src/index.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { emptyDatabase, freshDatabase, freshPrefix, redisUrl, until } from '../../support/fixtures.ts';
import { LONG_TIMEOUTS } from '../../support/long-timeouts.ts';

const shops: Shop[] = [];

afterEach(async () => {
  await Promise.all(shops.splice(0).map((shop) => shop.close()));
});

async function aPlace() {
  return { redisUrl: redisUrl(), databaseUrl: await freshDatabase(), keyPrefix: freshPrefix() };
}

async function opened(options: OpenOptions): Promise<Shop> {
  const shop = await open({ ...LONG_TIMEOUTS, ...options });
  shops.push(shop);
  return shop;
}

/** The log lines of a shop. */
function aLogger() {
  const lines: { readonly details: object; readonly message: string }[] = [];
  const line = (details: object, message: string) => void lines.push({ details, message });
  return { lines, info: line, warn: line, error: line } satisfies Logger & { lines: unknown };
}

/** The outcome after `close`. */
const CLOSED = { code: 'unavailable', detail: 'the shop was closed: open another one' };

describe('purchases', () => {
  test('have the outcomes of a node’s purchases, in all programs with the same stores', async () => {
    const place = await aPlace();
    const [one, other] = [await opened(place), await opened(place)];
    await one.sales.create({ id: 'front-row', stock: 3, perBuyerLimit: 2 });
    const bought = await one.purchase({ saleId: 'front-row', buyerId: 'ann', quantity: 2, key: 'k' });
    expect(bought).toMatchObject({ code: 'committed', quantity: 2 });
    const again = { saleId: 'front-row', buyerId: 'ann', quantity: 2, key: 'k' };
    expect(await other.purchase(again)).toEqual(bought);
    expect(await other.purchase({ ...again, quantity: 1 })).toMatchObject({ code: 'idempotency_mismatch' });
    expect(await other.purchase({ saleId: 'front-row', buyerId: 'ann' })).toMatchObject({
      code: 'limit_reached',
    });
    expect(await other.purchase({ saleId: 'front-row', buyerId: 'bob' })).toMatchObject({ quantity: 1 });
    expect(await one.purchase({ saleId: 'front-row', buyerId: 'cy' })).toEqual({ code: 'sold_out' });
    expect(await one.purchase({ saleId: 'none', buyerId: 'cy' })).toEqual({ code: 'unknown_sale' });
    expect(await one.sales.verify('front-row')).toMatchObject({ ok: true, committedOrders: 2 });
  });

  test('may have a reference and metadata, which the export of the orders has too', async () => {
    const shop = await opened(await aPlace());
    await shop.sales.create({ id: 'web', stock: 5 });
    const noted = { reference: 'cart-1', metadata: { gift: true } };
    const bought = await shop.purchase({ saleId: 'web', buyerId: 'ann', key: 'k', ...noted });
    await shop.purchase({ saleId: 'web', buyerId: 'bob' });
    expect(await shop.purchase({ saleId: 'web', buyerId: 'ann', key: 'k', reference: 'cart-2' })).toEqual(
      bought,
    );
    const faulty = shop.purchase({ saleId: 'web', buyerId: 'eve', reference: 'two\nlines' });
    await expect(faulty).rejects.toMatchObject({ name: 'InvalidInput' });
    for (const value of [Number.NaN, 2 ** 53, 1n, new Date()]) {
      const metadata = { value };
      const bad = { name: 'InvalidInput', faults: [{ field: 'metadata' }] };
      await expect(shop.purchase({ saleId: 'web', buyerId: 'eve', metadata })).rejects.toMatchObject(bad);
      await expect(shop.sales.create({ id: 'bad', stock: 1, metadata })).rejects.toMatchObject(bad);
    }
    const all: Order[] = [];
    for await (const order of shop.orders.export('web')) all.push(order);
    const [ann, bob] = ['ann', 'bob'].map((buyer) => all.find(({ buyerId }) => buyerId === buyer));
    expect([ann, bob, all.length]).toMatchObject([noted, { status: 'unpaid' }, 2]);
    for await (const order of shop.orders.export('web', { buyer: 'bob' })) expect(order).toEqual(bob);
    const { reference } = noted;
    expect(await shop.orders.list('web', { reference })).toMatchObject({ orders: [ann] });
    for await (const order of shop.orders.export('web', { reference })) expect(order).toEqual(ann);
    await expect(shop.orders.export('none')[Symbol.asyncIterator]().next()).rejects.toMatchObject({
      code: 'unknown_sale',
    });
    const misspelt = shop.orders.export('web', { until: 'soon' })[Symbol.asyncIterator]();
    await expect(misspelt.next()).rejects.toMatchObject({ name: 'InvalidInput' });
  });

  test('need no token, even in a sale that requires one', async () => {
    const shop = await opened(await aPlace());
    await shop.sales.create({ id: 'guarded', stock: 1, requireToken: true });
    expect(await shop.purchase({ saleId: 'guarded', buyerId: 'ann' })).toMatchObject({ code: 'committed' });
  });

  test('under way are answered when the shop is closed; later ones are refused', async () => {
    const place = await aPlace();
    const shop = await opened(place);
    await shop.sales.create({ id: 'web', stock: 50 });
    const buyers = Array.from({ length: 40 }, (_, i) => `buyer-${i}`);
    const underWay = buyers.map((buyerId) => shop.purchase({ saleId: 'web', buyerId }));
    const operation = shop.sales.show('web');
    await shop.close();
    expect(new Set((await Promise.all(underWay)).map(({ code }) => code))).toEqual(new Set(['committed']));
    expect(await operation).toMatchObject({ id: 'web' });
    expect(await shop.purchase({ saleId: 'web', buyerId: 'late' })).toEqual(CLOSED);
    await expect(shop.sales.list()).rejects.toMatchObject({ code: 'closed' });
    expect(await shop.metrics()).toMatch(/^stockade_sync_orders_total 40$/m);
    const orders = shop.orders.export('web')[Symbol.asyncIterator]();
    await expect(orders.next()).rejects.toMatchObject({ code: 'closed', message: CLOSED.detail });
    const next = await opened(place);
    expect(await next.sales.show('web')).toMatchObject({ remaining: 10, committedOrders: 40 });
  });

  test.each([
    [{ buyerId: 'a nn' }, 'buyerId must be 1 to 128 visible ASCII characters without spaces'],
    [{ buyerId: '' }, 'buyerId must be'],
    [{ key: 'ключ' }, 'key must be 1 to 128 visible ASCII characters without spaces'],
    [{ key: 'retake:1' }, 'key must not begin with "retake:"'],
    [{ quantity: 0 }, 'quantity must be a whole number from 1 to 1'],
    [{ quantity: 1.5 }, 'quantity must be'],
    [{ quantity: Number.NaN }, 'quantity must be'],
  ])('with %j are refused by an outcome: buyers can cause that', async (fault, detail) => {
    const shop = await theShop();
    const purchase = { saleId: 'bad-input', buyerId: 'ann', ...fault };
    expect(await shop.purchase(purchase)).toEqual({
      code: 'invalid_request',
      detail: expect.stringContaining(detail),
    });
  });

  test.each([
    [undefined, 'saleId must be a string; buyerId must be a string'],
    [null, 'saleId must be a string; buyerId must be a string'],
    ['front-row', 'saleId must be a string'],
    [
      { saleId: 'web', buyerId: 7, quantity: '1', key: 1, awaitCommit: 'no' },
      'buyerId must be a string; quantity must be a number; key must be a string; awaitCommit must be a boolean',
    ],
    [{ saleID: 'web', buyerId: 'ann' }, 'saleID is not a member of a purchase; saleId must be a string'],
  ])('as %j are refused by an error: only the program can cause that', async (purchase, message) => {
    const shop = await theShop();
    await expect(shop.purchase(purchase as never)).rejects.toMatchObject({
      name: 'InvalidInput',
      code: 'invalid_request',
      message: expect.stringContaining(message),
    });
  });
});

/** Shared by the tests of bad input, which change nothing. */
let shared: Promise<Shop> | undefined;
function theShop(): Promise<Shop> {
  shared ??= aPlace().then(async (place) => {
    const shop = await open({ ...LONG_TIMEOUTS, ...place });
    await shop.sales.create({ id: 'bad-input', stock: 1 });
    return shop;
  });
  return shared;
}
afterAll(async () => (await shared)?.close());

describe('operators’ work', () => {
  test('changes sales and orders, and stores actor and reason', async () => {
    const shop = await opened(await aPlace());
    await shop.sales.create({ id: 'web', stock: 2, title: 'Front row' }, { actor: 'ann', reason: 'tour' });
    const bought = await shop.purchase({ saleId: 'web', buyerId: 'bob' });
    if (bought.code !== 'committed') throw new Error(`bought nothing: ${bought.code}`);
    const { orderId } = bought;
    expect(await shop.orders.pay(orderId, 'card')).toMatchObject({ code: 'done', order: { status: 'paid' } });
    expect(await shop.orders.cancel(orderId)).toEqual({ code: 'wrong_status', orderStatus: 'paid' });
    expect(await shop.orders.refund(orderId, { reason: 'moved' })).toMatchObject({ code: 'done' });
    expect(await shop.orders.show(orderId)).toMatchObject({
      order: {
        status: 'refunded',
        changes: [
          { change: 'pay', actor: 'shop', reason: '' },
          { change: 'refund', actor: 'shop', reason: 'moved' },
        ],
      },
    });
    expect(await shop.orders.refundsDue()).toEqual([]);
    await shop.sales.change('web', { action: 'top-up', units: 5 }, { actor: 'cy' });
    await shop.sales.change('web', { action: 'window', endsAt: '2999-01-01T00:00:00Z' });
    expect(await shop.sales.ledger('web')).toMatchObject([
      { action: 'create', actor: 'ann', reason: 'tour' },
      { action: 'top-up', units: 5, actor: 'cy' },
      { action: 'window', actor: 'shop' },
    ]);
    const [creation] = await shop.sales.ledger('web', { limit: 1 });
    expect(await shop.sales.ledger('web', { limit: 1, after: creation!.id })).toMatchObject([
      { action: 'top-up' },
    ]);
    expect(await shop.sales.ledger('web', { after: creation!.id })).toHaveLength(2);
    await expect(shop.sales.ledger('web', { after: 'x' })).rejects.toThrow(InvalidInput);
    await expect(shop.orders.refundsDue('web', { limit: 0 })).rejects.toThrow(InvalidInput);
    await expect(shop.events.deadLetters({ limit: 0 })).rejects.toThrow(InvalidInput);
    expect(await shop.sales.rebalance('web')).toMatchObject({ saleId: 'web', dryRun: false });
    expect(await shop.sales.recovery('web')).toMatchObject({ state: 'none' });
    expect(await shop.events.deadLetters()).toEqual({ total: 0, listed: [] });
    expect(await shop.metrics()).toContain('stockade_');
    const erasure = { buyerId: 'bob', running: true };
    expect(await shop.buyers.erase(erasure, { reason: 'by letter' })).toMatchObject({
      erased: [{ saleId: 'web', pseudonym: expect.stringMatching(/^erased-/), orders: 1 }],
      waiting: [],
    });
    expect(await shop.sales.verify('web')).toMatchObject({ ok: true });
  });

  test.each([
    ['a sale', (shop: Shop) => shop.sales.create({} as never), 'id is required'],
    ['a sale', (shop: Shop) => shop.sales.create({ id: 'x', stock: 0 }), 'stock must be at least 1'],
    ['no sale', (shop: Shop) => shop.sales.create(undefined as never), 'id is required'],
    ['a change', (shop: Shop) => shop.sales.change('bad-input', {} as never), 'action must be one of'],
    [
      'an actor',
      (shop: Shop) => shop.sales.change('bad-input', { action: 'pause' }, { actor: 'ä' }),
      'actor must be 1 to 200',
    ],
    ['a reason', (shop: Shop) => shop.orders.cancel('1', { reason: 'a\nb' }), 'reason must be one line'],
    ['an erasure', (shop: Shop) => shop.buyers.erase({} as never), 'buyerId must be a text'],
    ['a payment', (shop: Shop) => shop.orders.pay('1', 'gold' as never), 'payType must be one of balance'],
  ])('with %s that is wrong is refused: %#', async (_, work, message) => {
    await expect(work(await theShop())).rejects.toMatchObject({
      name: 'InvalidInput',
      message: expect.stringContaining(message),
    });
    expect(await (await theShop()).sales.show('bad-input')).toMatchObject({ state: 'open', remaining: 1 });
  });

  test('on something that does not exist ends with an error', async () => {
    const shop = await theShop();
    await expect(shop.sales.show('none')).rejects.toMatchObject({
      name: 'UnknownSale',
      code: 'unknown_sale',
    });
    expect(await shop.orders.show('none')).toEqual({ code: 'unknown_order' });
    await expect(shop.events.resendDeadLetter('1')).rejects.toMatchObject({ code: 'unknown_dead_letter' });
  });
});

test('order events come in order, and again after a handler that failed', async () => {
  const logger = aLogger();
  const seen: OrderEvent[] = [];
  let calls = 0;
  const shop = await opened({
    ...(await aPlace()),
    logger,
    eventsYieldMs: 0,
    onOrderEvents: async (events) => {
      if (++calls === 1) throw new Error('not now');
      seen.push(...events);
    },
  });
  await shop.sales.create({ id: 'web', stock: 2 });
  const bought = await shop.purchase({ saleId: 'web', buyerId: 'ann' });
  if (bought.code !== 'committed') throw new Error(`bought nothing: ${bought.code}`);
  await shop.orders.pay(bought.orderId, 'card');
  await until(() => seen.length >= 2, { what: 'both events' });
  expect(seen.map(({ kind, buyerId }) => [kind, buyerId])).toEqual([
    ['order.committed', 'ann'],
    ['order.paid', 'ann'],
  ]);
  expect(JSON.stringify(logger.lines.map(({ message }) => message))).toMatch(/event|webhook/i);
});

test('a handler that never ends does not keep the shop from closing its stores; its events come again', async () => {
  const place = await aPlace();
  const logger = aLogger();
  const calls: { readonly ids: readonly string[]; readonly signal: AbortSignal }[] = [];
  const noted = (events: readonly OrderEvent[], signal: AbortSignal) =>
    void calls.push({ ids: events.map(({ id }) => id), signal });
  const onOrderEvents = (events: readonly OrderEvent[], signal: AbortSignal) => {
    noted(events, signal);
    return new Promise<never>(() => {});
  };
  const shop = await opened({ ...place, logger, eventsYieldMs: 0, onOrderEvents });
  await shop.sales.create({ id: 'web', stock: 2 });
  await shop.purchase({ saleId: 'web', buyerId: 'ann' });
  await until(() => calls.length > 0, { what: 'the handler is called' });
  await shop.close();
  expect(calls.map(({ signal }) => signal.aborted)).toEqual([true]);
  expect(logger.lines.filter(({ message }) => /shutdown/.test(message))).toEqual([]);
  await opened({ ...place, eventsYieldMs: 0, onOrderEvents: noted });
  await until(() => calls.length > 1, { what: 'the events come again' });
  expect(calls[1]!.ids).toEqual(calls[0]!.ids);
});

describe('settings of events', () => {
  const warned = ({ lines }: ReturnType<typeof aLogger>) =>
    lines.flatMap(({ details }) =>
      ((details as { differing?: { setting: string }[] }).differing ?? []).map(({ setting }) => setting),
    );

  test('differ between a program with a handler and a process without one', async () => {
    const place = await aPlace();
    const loggers = [aLogger(), aLogger()] as const;
    await opened({ ...place, logger: loggers[0], onOrderEvents: () => {} });
    await opened({ ...place, logger: loggers[1] });
    await until(() => loggers.every((logger) => warned(logger).length > 0), { what: 'both have warned' });
    expect(loggers.map(warned)).toEqual([['WEBHOOK_URL'], ['WEBHOOK_URL']]);
  });

  test('are not compared with those of a program that runs no sync', async () => {
    const place = await aPlace();
    const loggers = [aLogger(), aLogger()] as const;
    await opened({ ...place, logger: loggers[0], onOrderEvents: () => {} });
    await opened({ ...place, logger: loggers[1], sync: false, eventsStreamMax: 7, logBacklogMax: 1_000 });
    // The backlog does differ, so this waits until they were compared.
    await until(() => loggers.every((logger) => warned(logger).length > 0), { what: 'both have warned' });
    expect(loggers.map(warned)).toEqual([['LOG_BACKLOG_MAX'], ['LOG_BACKLOG_MAX']]);
  });
});

describe('stores of another shop', () => {
  test('are refused at the start', async () => {
    const place = { redisUrl: redisUrl(), databaseUrl: await emptyDatabase(), keyPrefix: freshPrefix() };
    await opened(place);
    const elsewhere = { ...place, databaseUrl: await emptyDatabase() };
    await expect(open(elsewhere)).rejects.toMatchObject({ name: 'ForeignStores', code: 'foreign_stores' });
  });

  test('end a running shop', async () => {
    const place = await aPlace();
    const shop = await opened(place);
    await shop.sales.create({ id: 'web', stock: 1 });
    await using keys = new RedisKeys(place);
    await keys.redis.set(new Keys(place.keyPrefix).owner, `${crypto.randomUUID()} another shop`);
    expect(await shop.failed).toMatchObject({ code: 'foreign_stores' });
    expect(await shop.purchase({ saleId: 'web', buyerId: 'ann' })).toEqual(CLOSED);
    await shop.close();
  });
});

describe('options', () => {
  const secret = 'redis://:pass-word@localhost:1';
  test.each<[OpenOptions, string]>([
    [{ laneCapacity: 0 }, 'laneCapacity is "0", but must be a whole number from 1 to 1000000'],
    [
      { redisUrl: 'localhost', databaseUrl: 'x' },
      'redisUrl is (not a URL), but must be a URL that begins with redis:// or rediss://; databaseUrl is',
    ],
    [
      { redisUrl: secret },
      'redisUrl needs a database that keeps its data as Redis does: give databaseUrl, or dataDir for PGlite',
    ],
    [{ sync: false }, 'sync is off, but without redisUrl no other process can copy the orders'],
    [{ takeTimeoutMs: 2_000 }, 'takeTimeoutMs is 2000, but must be below requestDeadlineMs, which is 2000'],
    [{ strategy: 'lock' }, 'strategy is lock, but the locks are kept in Redis: set redisUrl'],
    [
      { webhookUrl: 'http://localhost' },
      'webhookUrl is set, but there is no key to sign the requests: set webhookSecret',
    ],
    [{ webhookUrl: 'http://localhost', onOrderEvents: () => {} }, 'onOrderEvents replaces webhookUrl'],
    [{ onOrderEvents: 'x' as never }, 'onOrderEvents must be a function'],
    [{ logger: {} as never }, 'logger must have the methods info, warn and error'],
    ...[null, 'redis://cache', 5, true, [], () => {}, new Map()].map((given): [OpenOptions, string] => [
      given as never,
      'options must be an object',
    ]),
    [{ redisURL: secret } as never, 'redisURL is not an option: the options are redisUrl, databaseUrl,'],
  ])('%j are refused with the names of the options', async (options, message) => {
    const error = await open(options).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'ConfigError', message: expect.stringContaining(message) });
    expect(String(error)).not.toContain('pass-word');
  });

  test('are not read from the environment', async () => {
    process.env.LANE_CAPACITY = 'many';
    onTestFinished(() => void delete process.env.LANE_CAPACITY);
    const shop = await opened(await aPlace());
    expect(await shop.sales.list()).toEqual({ sales: [] });
  });
});
