/** Listening to a sale, over both HTTP servers: what a listener is sent, and what listeners cost. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { mayBeProxy, parseTrustedProxies } from '../../../src/admission/addresses.ts';
import { StreamBound } from '../../../src/admission/stream-bound.ts';
import { LiveSales } from '../../../src/http/public/live-sales.ts';
import { saleEventsRoute } from '../../../src/http/public/sale-events-route.ts';
import type { NoView, SaleView } from '../../../src/http/public/sale-reads.ts';
import { addressOf } from '../../../src/http/server/client-address.ts';
import { KeptReply } from '../../../src/http/server/conditional.ts';
import type { Listener } from '../../../src/http/server/listener.ts';
import { problem } from '../../../src/http/server/replies/problem.ts';
import { Router } from '../../../src/http/server/router.ts';
import { Traffic } from '../../../src/http/server/traffic.ts';
import { Listeners } from '../../../src/http/streams/listeners.ts';
import { chooseHttpServer } from '../../../src/node/process/http-server.ts';
import { askOnce } from '../../support/http/ask-once.ts';
import { HTTP_SERVERS } from '../../support/http/http-servers.ts';
import { SaleListener } from '../../support/http/sale-listener.ts';
import { until } from '../../support/until.ts';

const TIMES = { everyMs: 20, silentMs: 60 };
const MOST = 150;
const MOST_OF_ADDRESS = 3;
const PROXIES = parseTrustedProxies('127.0.0.1');
/** Larger than what the kernel takes at once from a process that writes, so that a few fill all buffers. */
const LARGE = 'x'.repeat(400_000);

const viewOf = (sale: object, isClosed = false): SaleView => {
  const body = JSON.stringify(sale);
  return { body, reply: new KeptReply('application/json', body), isClosed };
};
const UNKNOWN: NoView = { refusal: problem('unknown_sale'), isUnknown: true };
const UNREADABLE: NoView = { refusal: problem('unavailable'), isUnknown: false };

describe.each(HTTP_SERVERS)('over %s', (kind) => {
  let listener: Listener;
  let live: LiveSales;
  let listeners: Listeners;
  let shown: SaleView | NoView;
  /** How often each sale was read, by its id. */
  let reads: Map<string, number>;
  let opened: SaleListener[];
  const faults: unknown[] = [];

  beforeEach(async () => {
    const { open } = await chooseHttpServer(kind);
    [shown, reads, opened, faults.length] = [viewOf({ remaining: 5 }), new Map(), [], 0];
    const source = {
      async read(saleId: string) {
        reads.set(saleId, readsOf(saleId) + 1);
        return saleId === 'none' ? UNKNOWN : shown;
      },
    };
    const bound = new StreamBound({
      policy: { requests: 1, seconds: 1, burst: MOST_OF_ADDRESS },
      isExempt: (address) => mayBeProxy(address, PROXIES),
    });
    listeners = new Listeners(MOST, bound);
    live = new LiveSales(source, listeners, TIMES);
    const observer = { fault: (error: unknown) => faults.push(error) };
    listener = await new Router(open, observer, new Traffic())
      .route(
        'get',
        '/v1/sales/:saleId/events',
        saleEventsRoute(source, live, addressOf(PROXIES, 'x-forwarded-for')),
      )
      .listen({ host: '127.0.0.1', port: 0, isShared: false });
  });

  afterEach(async () => {
    for (const each of opened) each[Symbol.dispose]();
    listeners.stop();
    await listener.drain(0);
    expect(faults).toEqual([]);
  });

  function listen(saleId = 'tickets', headers: Record<string, string> = {}): SaleListener {
    const made = new SaleListener(listener.port, saleId, headers);
    opened.push(made);
    return made;
  }

  const ask = (path: string, method = 'GET', headers: Record<string, string> = {}) =>
    askOnce(listener.port, path, { method, headers });

  const readsOf = (saleId: string) => reads.get(saleId) ?? 0;
  const begun = (of: SaleListener) => until(() => of.seen > 0, { what: 'the first event' });
  const allGone = () =>
    until(() => listeners.counts().open === 0 && listener.underWay() === 0, { what: 'nobody listens' });

  test('a listener is sent the state at once, and again when it has changed', async () => {
    const one = listen();
    await begun(one);
    expect(one.head).toMatch(/^HTTP\/1.1 200 OK\r\n/);
    for (const line of [
      'content-type: text/event-stream',
      'cache-control: no-store',
      'x-accel-buffering: no',
    ])
      expect(one.head.toLowerCase()).toContain(line);
    const first = shown as SaleView;
    expect(one.events).toEqual([{ event: 'sale', id: first.reply.tag.slice(1, -1), data: { remaining: 5 } }]);
    expect(one.retryMs).toBeGreaterThanOrEqual(1_000);
    expect(one.retryMs).toBeLessThanOrEqual(5_000);
    await until(() => one.comments >= 3, { what: 'comments while nothing changes' });
    expect(one.seen).toBe(1);
    shown = viewOf({ remaining: 4 });
    await until(() => one.last?.data.remaining === 4, { what: 'the change' });
    expect(one.seen).toBe(2);
    one.socket.destroy();
    await allGone();
  });

  test('however many listen, the sale is read once a tick; nobody listens: it is not read', async () => {
    const many = Array.from({ length: 140 }, () => listen());
    await until(() => many.every(({ seen }) => seen === 1), { what: 'all have begun' });
    const [before, since] = [readsOf('tickets'), performance.now()];
    shown = viewOf({ remaining: 1 });
    await until(() => many.every(({ last }) => last?.data.remaining === 1), { what: 'the change' });
    // A timer may come a millisecond early.
    const ticks = (performance.now() - since) / (TIMES.everyMs - 1);
    expect(readsOf('tickets') - before).toBeLessThanOrEqual(ticks + 1);
    for (const each of opened) each.socket.destroy();
    await allGone();
    const after = readsOf('tickets');
    const other = listen('another');
    await until(() => other.comments > 2, { what: 'time has passed' });
    expect(readsOf('tickets')).toBe(after);
    expect(await ask('/v1/sales/none/events')).toMatchObject({ status: 404, code: 'unknown_sale' });
  });

  test('a listener beyond the limit is refused, and one that leaves makes room', async () => {
    const all = Array.from({ length: MOST }, () => listen());
    await until(() => all.every(({ seen }) => seen === 1), { what: 'all have begun' });
    const refused = await ask('/v1/sales/tickets/events');
    expect(refused).toMatchObject({ status: 503, code: 'busy', headers: { 'retry-after': '10' } });
    expect(refused.body.detail).toContain('listeners');
    expect(listeners.counts()).toEqual({ open: MOST, refused: 1, slow: 0 });
    all[0]!.socket.destroy();
    await until(() => listeners.counts().open < MOST, { what: 'one has left' });
    await begun(listen());
  });

  test('one address, also behind a proxy, has a part of the listeners only', async () => {
    const from = (address: string) => ({ 'x-forwarded-for': `198.51.100.7, ${address}` });
    const all = Array.from({ length: MOST_OF_ADDRESS }, () => listen('tickets', from('192.0.2.1')));
    await until(() => all.every(({ seen }) => seen === 1), { what: 'all have begun' });
    const refused = await ask('/v1/sales/tickets/events', 'GET', from('192.0.2.1'));
    expect(refused).toMatchObject({ status: 503, code: 'busy', headers: { 'retry-after': '10' } });
    expect(refused.body.detail).toContain('from your address');
    await begun(listen('tickets', from('192.0.2.2')));
    all[0]!.socket.destroy();
    await until(() => listeners.counts().open === MOST_OF_ADDRESS, { what: 'one has left' });
    await begun(listen('tickets', from('192.0.2.1')));
    expect(listeners.counts()).toEqual({ open: MOST_OF_ADDRESS + 1, refused: 1, slow: 0 });
  });

  test('a listener that does not read is disconnected, and the others go on', async () => {
    const slow = listen();
    const other = listen();
    await Promise.all([begun(slow), begun(other)]);
    slow.socket.pause();
    for (let i = 0; listeners.counts().slow === 0; i++) {
      expect(i, 'events that nobody reads').toBeLessThan(200);
      shown = viewOf({ i, title: LARGE });
      await until(() => other.last?.data.i === i, { what: 'the change' });
    }
    expect(listeners.counts()).toEqual({ open: 1, refused: 0, slow: 1 });
    slow.socket.resume();
    await until(() => slow.isClosed, { what: 'the slow one is disconnected' });
    shown = viewOf({ i: 'on' });
    await until(() => other.last?.data.i === 'on', { what: 'a later change' });
  });

  test('the stream of a sale that is closed ends with the last state and the reason', async () => {
    const many = Array.from({ length: 140 }, () => listen());
    await until(() => many.every(({ seen }) => seen === 1), { what: 'all have begun' });
    shown = viewOf({ state: 'ended' }, true);
    const ended = await Promise.all([
      ...many.map(async (each) => {
        await until(() => each.isWhole, { what: 'the end' });
        return each.events.slice(1);
      }),
    ]);
    const id = (shown as SaleView).reply.tag.slice(1, -1);
    for (const events of ended)
      expect(events).toEqual([
        { event: 'sale', id, data: { state: 'ended' } },
        { event: 'end', id: undefined, data: { reason: 'closed' } },
      ]);
    await allGone();
    const late = listen();
    await until(() => late.isWhole, { what: 'the end' });
    expect(late.events).toEqual(ended[0]);
    // So a browser does not connect once more.
    expect(await ask('/v1/sales/tickets/events', 'GET', { 'last-event-id': id })).toMatchObject({
      status: 204,
      body: '',
    });
    expect(await ask('/v1/sales/tickets/events', 'GET', { 'last-event-id': 'another' })).toMatchObject({
      status: 200,
    });
    await allGone();
  });

  test('the stream of a sale that no longer exists ends with the reason', async () => {
    const one = listen();
    await begun(one);
    shown = UNKNOWN;
    await until(() => one.isWhole, { what: 'the end' });
    expect(one.last).toEqual({ event: 'end', id: undefined, data: { reason: 'unknown_sale' } });
    expect(await ask('/v1/sales/tickets/events')).toMatchObject({ status: 404, code: 'unknown_sale' });
    await allGone();
    // It was created again.
    shown = viewOf({ remaining: 3 });
    const again = listen();
    await begun(again);
    shown = viewOf({ remaining: 2 });
    await until(() => again.last?.data.remaining === 2, { what: 'the change' });
  });

  test('while the sale can’t be read, listeners hear that the stream is alive', async () => {
    const one = listen();
    await begun(one);
    shown = UNREADABLE;
    const { comments } = one;
    await until(() => one.comments > comments + 2, { what: 'more comments' });
    expect(await ask('/v1/sales/tickets/events')).toMatchObject({ status: 503, code: 'unavailable' });
    shown = viewOf({ remaining: 1 });
    await until(() => one.last?.data.remaining === 1, { what: 'the change' });
    expect(one.seen).toBe(2);
  });

  test('a server that stops ends all streams at once, and begins none', async () => {
    const many = Array.from({ length: 100 }, () => listen());
    await until(() => many.every(({ seen }) => seen === 1), { what: 'all have begun' });
    listeners.stop();
    await until(() => many.every(({ isWhole }) => isWhole), { what: 'all have ended' });
    for (const each of many) expect(each.last?.event, 'the sale goes on elsewhere').toBe('sale');
    expect(await ask('/v1/sales/tickets/events')).toMatchObject({ status: 503, code: 'busy' });
    await listener.drain(60_000);
    expect(listener.underWay()).toBe(0);
    expect(listeners.counts()).toMatchObject({ open: 0, slow: 0 });
  });

  test('other methods are refused, and a second request on the connection closes it', async () => {
    for (const method of ['HEAD', 'POST', 'OPTIONS'])
      expect((await ask('/v1/sales/tickets/events', method)).status, method).toBe(405);
    const one = listen();
    await begun(one);
    one.socket.write('GET /v1/sales/tickets/events HTTP/1.1\r\nhost: a\r\n\r\n');
    await until(() => one.isClosed, { what: 'the connection is closed' });
    await allGone();
  });
});
