/**
 * Order events at the shop's webhook: signed, in order for each order, tried again until they are taken, laid aside when
 * they are not, and sent again on demand.
 */
import { execFileSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, test, vi } from 'vitest';
import { EventService } from '../../../src/events/event-service.ts';
import type { OrderEvent } from '../../../src/events/order-event.ts';
import { Outbox, WEBHOOK_PAGE_EVENTS } from '../../../src/events/outbox.ts';
import { emptyOutbox } from '../../../src/events/outbox-work.ts';
import { WebhookQueue } from '../../../src/events/webhook-queue.ts';
import { deliverPages, pauseAfter } from '../../../src/events/webhook-work.ts';
import { NotDelivered, Webhook } from '../../../src/node/webhook.ts';
import { UnknownDeadLetter } from '../../../src/operations/event-operations.ts';
import { rows } from '../../../src/postgres/database.ts';
import { LocalLocks } from '../../../src/postgres/sale-locks.ts';
import { deathAt, part } from '../../support/engine/intercept.ts';
import { Desk } from '../../support/events/event-desk.ts';
import { expectStories, firstDeliveries, SeenRelayEvents } from '../../support/events/event-log.ts';
import { WebhookReceiver } from '../../support/events/webhook-receiver.ts';
import { until } from '../../support/fixtures.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { offered, QUEUE, queued } from '../../support/shop/queue.ts';
import { query } from '../../support/shop/truth.ts';

const SECRET = 'a-secret-between-two-programs';
/** Never reached: the receiver is in this process, which may stumble. */
const PATIENT_MS = 60_000;
/** Short, for tests in which the receiver does not answer and the timeout must pass. */
const SHORT_MS = 1_000;

const docs = () => readFileSync(new URL('../../../docs/events.md', import.meta.url), 'utf8');

/** A desk, a receiver, and what lies between them. */
class Line implements AsyncDisposable {
  readonly desk: Desk;
  readonly receiver: WebhookReceiver;
  readonly webhook: Webhook;
  readonly service: EventService;

  private constructor(desk: Desk, receiver: WebhookReceiver, timeoutMs: number) {
    this.desk = desk;
    this.receiver = receiver;
    this.webhook = new Webhook({ url: receiver.url, secret: SECRET, timeoutMs });
    this.service = new EventService(desk.db);
  }

  static async open(timeoutMs = PATIENT_MS): Promise<Line> {
    return new Line(await Desk.open(), await WebhookReceiver.start(), timeoutMs);
  }

  startRelay({ maxAttempts = 100, locks = this.desk.shop.locks, retryMs = (): number => 5 } = {}) {
    const webhook = { receiver: this.webhook, maxAttempts, retryMs };
    return this.desk.startRelay({ webhook, locks });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.desk[Symbol.asyncDispose]();
    await this.webhook.close();
    await this.receiver[Symbol.asyncDispose]();
  }
}

test('a request describes the event, and passes the check in the docs', async () => {
  await using line = await Line.open();
  const orderIds = await line.desk.orders(2);
  await line.desk.event('paid', orderIds);
  line.startRelay();
  await line.desk.delivered();
  const [request, ...more] = line.receiver.requests;
  expect(more).toEqual([]);
  expect(request).toMatchObject({ method: 'POST', path: '/hook?shop=1' });
  expect(request!.headers['content-type']).toBe('application/json');
  expect(JSON.parse(request!.body)).toEqual({
    events: orderIds.map((orderId, i) => ({
      id: `1-${i + 1}`,
      kind: 'order.paid',
      orderId,
      saleId: line.desk.saleId,
      buyerId: `buyer-${orderId}`,
      quantity: 1,
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })),
  });
  const numbered = request!.events.map((event, i) => ({ ...event, seq: String(i + 1) }));
  expect(await line.desk.stream()).toEqual(numbered);

  const isFromStockade = await checkOfTheDocs();
  const { headers, body } = request!;
  expect(isFromStockade(headers, body, SECRET)).toBe(true);
  expect(isFromStockade(headers, body, 'another-secret-of-somebody')).toBe(false);
  expect(isFromStockade(headers, body.replace('paid', 'gone'), SECRET)).toBe(false);
  const old = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 301) };
  expect(isFromStockade(old, body, SECRET)).toBe(false);
  expect(isFromStockade({}, body, SECRET)).toBe(false);
  // As many characters, but more bytes.
  const odd = { ...headers, 'webhook-signature': `${headers['webhook-signature']}`.replace(/.$/, '\u00e9') };
  expect(isFromStockade(odd, body, SECRET)).toBe(false);
});

test('an offer to a place has an event as in the docs, in the stream and at the webhook', async () => {
  await using line = await Line.open();
  const { shop } = line.desk;
  await shop.startSync();
  line.startRelay();
  const { id } = await shop.sell({ stock: 2, perBuyerLimit: 2, ...QUEUE });
  await queued(shop, id, ['bob'], 2);
  shop.startHead((await shop.startEngine()).take);
  const orderId = await offered(shop, id, 'bob');
  await until(() => line.receiver.taken.length > 0, { what: 'the event is at the webhook' });
  const [example] = [...docs().matchAll(/^\{"id".*"offer\.made".*\}$/gm)].map(([text]) => JSON.parse(text));
  const event = { ...example, id: '1-1', orderId, saleId: id, at: expect.any(String) };
  expect(line.receiver.taken).toEqual([event]);
  expect(await line.desk.stream()).toEqual([{ ...event, seq: '1' }]);
  // It says whose offer it is, and gives nobody the means to accept it.
  expect(event).toMatchObject({ kind: 'offer.made', buyerId: 'bob', quantity: 2 });
  expect(JSON.stringify(line.receiver.taken)).not.toContain('oken');
});

/** By a program that has nothing in common with this one. @param key in hexadecimal */
const hmacOfOpenssl = (key: string, content: string) =>
  execFileSync('openssl', ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${key}`, '-binary'], {
    input: content,
  }).toString('base64');

/** As published with the libraries of Standard Webhooks. */
const PUBLISHED = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  headers: {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  },
  body: '{"test": 2432232314}',
};

describe('the signature is that of Standard Webhooks', () => {
  test('the published example passes the check in the docs, and openssl computes the same', async () => {
    const { secret, headers, body } = PUBLISHED;
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64').toString('hex');
    const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    expect(`v1,${hmacOfOpenssl(key, content)}`).toBe(headers['webhook-signature']);
    const isFromStockade = await checkOfTheDocs();
    vi.spyOn(Date, 'now').mockReturnValue(Number(headers['webhook-timestamp']) * 1_000);
    try {
      expect(isFromStockade(headers, body, secret)).toBe(true);
      const several = { ...headers, 'webhook-signature': `v1,AAAA ${headers['webhook-signature']}` };
      expect(isFromStockade(several, body, secret)).toBe(true);
      expect(isFromStockade({ ...headers, 'webhook-id': 'msg_other' }, body, secret)).toBe(false);
    } finally {
      vi.restoreAllMocks();
    }
  });

  test.each([
    ['in base64', PUBLISHED.secret, Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64')],
    ['as text', SECRET, Buffer.from(SECRET)],
  ])('a delivery with a secret %s is signed as openssl signs it', async (_, secret, key) => {
    await using receiver = await WebhookReceiver.start();
    const webhook = new Webhook({ url: receiver.url, secret, timeoutMs: PATIENT_MS });
    const event = (id: string) => ({ id, kind: 'order.paid' }) as OrderEvent;
    const signal = new AbortController().signal;
    for (const ids of [['1-1', '1-2'], ['1-1', '1-2'], ['1-1']])
      await webhook.deliver(ids.map(event), signal);
    await webhook.close();
    for (const { headers, body } of receiver.requests) {
      const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers;
      expect(Math.abs(Date.now() / 1_000 - Number(timestamp))).toBeLessThan(60);
      expect(signature).toBe(`v1,${hmacOfOpenssl(key.toString('hex'), `${id}.${timestamp}.${body}`)}`);
    }
    const [first, again, fewer] = receiver.requests.map(({ headers }) => headers['webhook-id']);
    expect(again).toBe(first);
    expect(fewer).not.toBe(first);
  });
});

type Check = (headers: object, body: string, secret: string) => boolean;

async function checkOfTheDocs(): Promise<Check> {
  const [, code] = /```js\n(.*?)```/s.exec(docs())!;
  const module = await import(`data:text/javascript,${encodeURIComponent(code!)}`);
  return module.isFromStockade as Check;
}

test('a long row is sent in several pages, and short rows share one', async () => {
  await using line = await Line.open();
  const many = await line.desk.orders(WEBHOOK_PAGE_EVENTS * 2 + 1);
  await line.desk.event('committed', many);
  for (const orderId of many.slice(0, 30)) await line.desk.event('paid', [orderId]);
  line.startRelay();
  await line.desk.delivered();
  const sizes = line.receiver.requests.map(({ events }) => events.length);
  expect(Math.max(...sizes)).toBe(WEBHOOK_PAGE_EVENTS);
  expect(sizes.length).toBeLessThan(10);
  expect(firstDeliveries(line.receiver.taken)).toHaveLength(many.length + 30);
  expectStories(
    line.receiver.taken.filter(({ kind }) => kind === 'order.committed'),
    many,
    ['committed'],
  );
});

test('a receiver that fails in every way gets all events in the end, and in order after a refusal', async () => {
  await using line = await Line.open(SHORT_MS);
  const kinds = ['committed', 'paid', 'redeemed'];
  const orderIds = await line.desk.orders(250);
  const faults = [500, 'silent', 'cut', 302, 404, 'cut', 503] as const;
  let asked = 0;
  // Every other request, so that failures fall on first and on later pages.
  line.receiver.behave = () => (asked++ % 2 === 0 ? (faults[asked >> 1] ?? 200) : 200);
  const { seen } = line.startRelay();
  for (const kind of kinds) await line.desk.event(kind, orderIds);
  await line.desk.delivered();
  expect(seen.failures.length).toBeGreaterThanOrEqual(faults.length - 1);
  expect(seen.failures.map(({ error }) => (error as NotDelivered).message)).toContain(
    'the webhook answered 302',
  );
  expect(seen.failures.every(({ error }) => error instanceof NotDelivered)).toBe(true);
  expect(seen.crashes).toEqual([]);
  expectStories(line.receiver.taken, orderIds, kinds);
  // Also of what came and was not taken, nothing came before its time.
  expectStories(
    line.receiver.requests.flatMap(({ events }) => events),
    orderIds,
    kinds,
  );
});

test('under load, an event that has waited for the stream does not wait as long again for the webhook', async () => {
  await using line = await Line.open();
  const webhook = { receiver: line.webhook, maxAttempts: 3 };
  const maxMs = 6_000;
  const { seen } = line.desk.startRelay({ webhook, backpressure: { isLoadHigh: () => true, maxMs } });
  await line.desk.event('committed', await line.desk.orders(1));
  await until(() => seen.streamedEvents === 1, { what: 'the event is in the stream', timeoutMs: 30_000 });
  const streamedAt = performance.now();
  await until(() => line.receiver.taken.length === 1, { what: 'the webhook has it', timeoutMs: 30_000 });
  expect(performance.now() - streamedAt).toBeLessThan(maxMs / 2);
});

test('a receiver that can’t be reached', async () => {
  await using line = await Line.open();
  await line.receiver[Symbol.asyncDispose]();
  await line.desk.event('committed', await line.desk.orders(1));
  const { seen } = line.startRelay();
  await until(() => seen.failures.length > 1, { what: 'it was tried twice' });
  expect((seen.failures[0]!.error as Error).message).toMatch(/^the webhook can't be reached: .*ECONNREFUSED/);
  expect(seen.failures.slice(0, 2).map(({ attempts }) => attempts)).toEqual([1, 2]);
});

test('a slow webhook delays only itself', async () => {
  await using line = await Line.open();
  line.receiver.behave = () => 'silent';
  line.startRelay();
  const orderIds = await line.desk.orders(3);
  await line.desk.event('committed', orderIds);
  await until(() => line.receiver.requests.length > 0, { what: 'the webhook is asked' });
  await line.desk.event('paid', orderIds);
  await line.desk.emptied();
  expectStories(await line.desk.stream(), orderIds, ['committed', 'paid']);
});

test('pages refused too often become dead letters; the rest continues; they are listed and sent again', async () => {
  await using line = await Line.open();
  const [bad, good] = [await line.desk.orders(2), await line.desk.orders(2)];
  line.receiver.behave = (events) => (events.some(({ orderId }) => bad.includes(orderId)) ? 500 : 200);
  const { seen } = line.startRelay({ maxAttempts: 3 });
  await line.desk.event('committed', bad);
  await until(() => seen.failures.length > 0, { what: 'the bad ones are refused' });
  await line.desk.event('committed', good);
  await line.desk.delivered();
  expectStories(line.receiver.taken, good, ['committed']);
  await until(() => seen.deaths.some(({ events }) => events === 2), { what: 'the dead letter is reported' });
  const ofBad = seen.failures.filter(({ events }) => events === 2);
  expect(ofBad.map(({ retryMs }) => retryMs !== undefined)).toEqual([true, true, false]);
  expect(seen.deaths.map(({ attempts }) => attempts)).toEqual(seen.deaths.map(() => 3));

  const { total, listed } = await line.service.deadLetters();
  expect(total).toBe(listed.length);
  const [letter] = listed;
  expect(letter).toMatchObject({
    kind: 'order.committed',
    orderIds: bad,
    attempts: 3,
    failedWith: 'the webhook answered 500',
  });
  expect(Date.parse(letter!.deadAt)).toBeGreaterThanOrEqual(Date.parse(letter!.at));

  line.receiver.behave = () => 200;
  await line.service.resendDeadLetter(letter!.id);
  await line.desk.delivered();
  expect(await line.service.resendAllDeadLetters()).toBe(total - 1);
  await line.desk.delivered();
  expectStories(line.receiver.taken, [...bad, ...good], ['committed']);
  expect(await line.service.deadLetters()).toEqual({ total: 0, listed: [] });
  await expect(line.service.resendDeadLetter(letter!.id)).rejects.toThrow(UnknownDeadLetter);
  for (const id of ['0', 'x', '99999999999999999999']) {
    await expect(line.service.resendDeadLetter(id)).rejects.toThrow(`there is no dead letter ${id}`);
  }
});

test.each([
  [
    'a text that Postgres can’t store',
    new Error(`bytes \0\0 and half of a pair \ud83d${'.'.repeat(500)}`),
    /^bytes \ufffd\ufffd and half of a pair \ufffd\.+$/,
  ],
  ['what is no error', { status: 503 }, /^{ status: 503 }$/],
  ['what can’t become a text', Object.assign(Object.create(null), { status: 503 }), /status: 503/],
])('a receiver may fail with %s', async (_, failure, told) => {
  await using line = await Line.open();
  await line.desk.event('paid', await line.desk.orders(1));
  const deliver = async () => {
    throw failure;
  };
  const webhook = { receiver: { deliver }, maxAttempts: 2, retryMs: () => 5 };
  const { seen } = line.desk.startRelay({ webhook });
  await until(async () => (await line.service.deadLetters()).total === 1, { what: 'the page is given up' });
  const { listed } = await line.service.deadLetters();
  expect(listed[0]!.failedWith).toMatch(told);
  expect(seen.crashes).toEqual([]);
});

test('pages in one request with a page that is never accepted are delivered', async () => {
  await using line = await Line.open();
  const [bad, good] = [await line.desk.orders(2), await line.desk.orders(2)];
  line.receiver.behave = (events) => (events.some(({ orderId }) => bad.includes(orderId)) ? 500 : 200);
  await line.desk.event('committed', bad);
  await line.desk.event('committed', good);
  const { seen } = line.startRelay({ maxAttempts: 2 });
  await line.desk.delivered();
  expectStories(line.receiver.taken, good, ['committed']);
  // Relays report what they have done when it is done.
  await until(() => seen.deaths.length > 0, { what: 'the dead letter is reported' });
  expect(seen.deaths.map(({ events }) => events)).toEqual([2]);
  expect((await line.service.deadLetters()).listed.map(({ orderIds }) => orderIds)).toEqual([bad]);
});

test('a re-sent dead letter goes before younger pages, with the same ids', async () => {
  await using line = await Line.open();
  line.receiver.behave = () => 500;
  const relay = line.startRelay({ maxAttempts: 1 });
  const orderIds = await line.desk.orders(1);
  await line.desk.event('committed', orderIds);
  await until(() => relay.seen.deaths.length === 1, { what: 'it is a dead letter' });
  await relay.stop();
  const [first] = line.receiver.requests;
  await line.desk.event('paid', orderIds);
  await line.service.resendAllDeadLetters();
  line.receiver.behave = () => 200;
  line.startRelay();
  await line.desk.delivered();
  expect(line.receiver.taken[0]).toEqual(first!.events[0]);
  expectStories(line.receiver.taken, orderIds, ['committed', 'paid']);
});

test('a re-sent dead letter that is refused again costs no other page an attempt', async () => {
  await using line = await Line.open();
  line.receiver.behave = () => 500;
  const [bad, good] = [await line.desk.orders(1), await line.desk.orders(1)];
  const first = line.startRelay({ maxAttempts: 1 });
  await line.desk.event('committed', bad);
  await until(() => first.seen.deaths.length === 1, { what: 'a dead letter' });
  await first.stop();
  const second = line.startRelay({ maxAttempts: 2, retryMs: () => 60_000 });
  await line.desk.event('committed', good);
  await until(() => second.seen.failures.length === 1, { what: 'another page has one attempt left' });
  await second.stop();
  await line.service.resendAllDeadLetters();
  line.receiver.behave = (events) => (events.some(({ orderId }) => bad.includes(orderId)) ? 500 : 200);
  line.startRelay({ maxAttempts: 2 });
  await line.desk.delivered();
  expectStories(line.receiver.taken, good, ['committed']);
  expect((await line.service.deadLetters()).listed.map(({ orderIds }) => orderIds)).toEqual([bad]);
});

const STEPS = [
  { dies: 'before it has read', call: 'queue.next', taken: 0 },
  { dies: 'before the request', call: 'receiver.deliver', taken: 0 },
  { dies: 'after the request, before the page is removed', call: 'queue.remove', taken: WEBHOOK_PAGE_EVENTS },
];

test.each(STEPS)('a process that dies $dies: the next one delivers all', async ({ call, taken }) => {
  await using line = await Line.open();
  const orderIds = await line.desk.orders(WEBHOOK_PAGE_EVENTS + 50);
  await line.desk.event('committed', orderIds);
  const outbox = new Outbox(line.desk.db);
  const events = new SeenRelayEvents();
  while ((await emptyOutbox({ outbox, forWebhook: true, events })) === 0);
  const { death, before } = deathAt((name) => name === call);
  const doomed = {
    queue: part(new WebhookQueue(line.desk.db), 'queue', before),
    receiver: part(line.webhook, 'receiver', before),
    maxAttempts: 3,
    events,
  };
  await Promise.race([death, deliverPages(doomed, new AbortController().signal)]);
  expect(line.receiver.taken).toHaveLength(taken);
  line.startRelay();
  await line.desk.delivered();
  expect(line.receiver.taken).toHaveLength(taken + orderIds.length);
  expectStories(line.receiver.taken, orderIds, ['committed']);
});

test('a process that dies while it moves rows to the webhook has moved all of them or none', async () => {
  await using line = await Line.open();
  const orderIds = await line.desk.orders(3);
  await line.desk.event('committed', orderIds);
  const trx = await line.desk.db.transaction();
  const [{ id }] = (await rows<{ id: string }>(trx, 'SELECT id::text FROM order_events')) as [{ id: string }];
  expect(await new Outbox(trx).remove([id], { forWebhook: true })).toBe(1);
  await trx.rollback();
  line.startRelay();
  await line.desk.delivered();
  expect(line.receiver.taken).toHaveLength(3);
  expectStories(line.receiver.taken, orderIds, ['committed']);
});

test('two processes at once: events may repeat, but are correct, and no page is queued twice', async () => {
  await using line = await Line.open();
  const relays = [line.startRelay({ locks: new LocalLocks() }), line.startRelay({ locks: new LocalLocks() })];
  const kinds = ['committed', 'paid', 'refunded'];
  const crowd = Array.from({ length: 6 }, async (_, i) => {
    const orderIds = await line.desk.orders(20 + i * 40);
    for (const kind of kinds) await line.desk.event(kind, orderIds);
    return orderIds;
  });
  const orderIds = (await Promise.all(crowd)).flat();
  await line.desk.delivered();
  await Promise.all(relays.map((relay) => relay.stop()));
  expect(relays.flatMap(({ seen }) => seen.crashes)).toEqual([]);
  expectStories(line.receiver.taken, orderIds, kinds);
  const [pages] = await query<{ pages: string }>(
    asAdmin(line.desk.shop.databaseUrl),
    'SELECT last_value::text AS pages FROM webhook_pages_id_seq',
  );
  const least =
    kinds.length *
    Array.from({ length: 6 }, (_, i) => Math.ceil((20 + i * 40) / 100)).reduce((a, b) => a + b);
  expect(Number(pages!.pages)).toBe(least);
});

test('a shutdown aborts the request and counts no attempt', async () => {
  await using line = await Line.open();
  line.receiver.behave = () => 'silent';
  const orderIds = await line.desk.orders(1);
  await line.desk.event('committed', orderIds);
  const relay = line.startRelay({ maxAttempts: 1 });
  await until(() => line.receiver.requests.length === 1, { what: 'the request is under way' });
  await relay.stop();
  expect(relay.seen.failures).toEqual([]);
  expect(await line.service.deadLetters()).toMatchObject({ total: 0 });
  line.receiver.behave = () => 200;
  line.startRelay();
  await line.desk.delivered();
  expectStories(line.receiver.taken, orderIds, ['committed']);
});

test('finished requests leave no listener on the loop’s signal', async () => {
  await using receiver = await WebhookReceiver.start();
  const webhook = new Webhook({ url: receiver.url, secret: SECRET, timeoutMs: SHORT_MS });
  const end = new AbortController();
  const answers = [204, 500, 'cut', 'silent', 204] as const;
  for (const answer of answers) {
    receiver.behave = () => answer;
    await webhook.deliver([], end.signal).catch(() => {});
  }
  expect(receiver.requests.map(({ answer }) => answer)).toEqual(answers);
  expect(getEventListeners(end.signal, 'abort')).toEqual([]);
  expect(dependantsOf(end.signal)).toBe(0);
  await webhook.close();
});

/** Signals made of this one by `AbortSignal.any`, which Node keeps in a set of its own. */
function dependantsOf(signal: AbortSignal): number {
  const symbol = Object.getOwnPropertySymbols(signal).find(
    ({ description }) => description === 'kDependantSignals',
  );
  return symbol ? (((signal as never)[symbol] as Set<unknown> | null)?.size ?? 0) : 0;
}

test('waiting rows, pages and dead letters are counted, with their ages', async () => {
  await using line = await Line.open();
  line.receiver.behave = () => 500;
  const { seen } = line.startRelay({ maxAttempts: 2, retryMs: () => 600_000 });
  await line.desk.event('committed', await line.desk.orders(1));
  await until(() => seen.lastWaiting?.pages === 1, { what: 'a page waits' });
  expect(seen.lastWaiting).toMatchObject({ rows: 0, oldestMs: 0, deadPages: 0 });
  const { oldestPageMs } = seen.lastWaiting!;
  expect(oldestPageMs).toBeGreaterThan(0);
  await until(() => seen.lastWaiting!.oldestPageMs >= oldestPageMs + 500, { what: 'it gets older' });
});

test('pauses double up to a minute, with random variation', () => {
  const pauses = (attempts: number) => Array.from({ length: 200 }, () => pauseAfter(attempts));
  for (const [attempts, most] of [
    [1, 500],
    [2, 1_000],
    [7, 32_000],
    [8, 60_000],
    [500, 60_000],
  ] as const) {
    const all = pauses(attempts);
    expect(Math.max(...all)).toBeLessThanOrEqual(most);
    expect(Math.min(...all)).toBeGreaterThanOrEqual(most / 2);
    expect(new Set(all).size).toBeGreaterThan(1);
  }
});
