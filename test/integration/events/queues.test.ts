/** The outbox and the webhook's queue, statement by statement: what each reads, moves and removes, and what it leaves. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Outbox } from '../../../src/events/outbox.ts';
import { WebhookQueue } from '../../../src/events/webhook-queue.ts';
import type { PageQuery } from '../../../src/operations/checked-input.ts';
import { rows } from '../../../src/postgres/database.ts';
import { insertOrders } from '../../support/events/event-log.ts';
import { asAdmin } from '../../support/postgres/least-rights.ts';
import { Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

const NOWHERE = '9000000000000000000';
const AT = '2026-11-27T12:00:00.250Z';

let shop: Shop;
let outbox: Outbox;
let queue: WebhookQueue;
let saleId: string;

beforeAll(async () => {
  shop = await Shop.open({ backend: 'memory' });
  outbox = new Outbox(shop.db);
  queue = new WebhookQueue(shop.db);
  saleId = (await shop.sell({ stock: 100_000 })).id;
});

afterAll(() => shop[Symbol.asyncDispose]());

beforeEach(() => query(asAdmin(shop.databaseUrl), 'TRUNCATE order_events, webhook_pages'));

const orders = (count: number) => insertOrders(shop.db, saleId, count);

/** A row of the outbox. @returns its id */
async function event(kind: string, orderIds: readonly string[], at = AT): Promise<string> {
  const [row] = await rows<{ id: string }>(
    shop.db,
    'INSERT INTO order_events (kind, order_ids, happened_at) VALUES (?, ?::bigint[], ?) RETURNING id::text',
    [kind, `{${orderIds.join(',')}}`, at],
  );
  return row!.id;
}

/** Moves rows to the webhook's queue. @returns the ids of its pages */
async function queued(...outboxIds: string[]): Promise<string[]> {
  await outbox.remove(outboxIds, { forWebhook: true });
  return pageIds();
}

const pageIds = async () =>
  (await rows<{ id: string }>(shop.db, 'SELECT id::text FROM webhook_pages ORDER BY webhook_pages.id')).map(
    ({ id }) => id,
  );

describe('the outbox', () => {
  test('is read oldest first, each event with the order’s data, without orders that are gone', async () => {
    const [plain, noted, tagged, referred] = (await orders(4)) as [string, string, string, string];
    await shop.db.raw("UPDATE orders SET reference = 'ref-1', metadata = '{\"a\": 1}' WHERE order_id = ?", [
      noted,
    ]);
    await shop.db.raw('UPDATE orders SET metadata = \'{"b": 2}\' WHERE order_id = ?', [tagged]);
    await shop.db.raw("UPDATE orders SET reference = 'ref-2' WHERE order_id = ?", [referred]);
    const first = await event('committed', [plain, NOWHERE, noted]);
    const second = await event('paid', [tagged]);
    const third = await event('expired', [NOWHERE]);
    const fourth = await event('redeemed', [referred]);
    expect(await outbox.isEmpty()).toBe(false);
    const { rows: read, parts } = await outbox.read();
    expect(read).toEqual([first, second, third, fourth]);
    const line = (place: number, id: string, notes = '') => `${place} ${id} ${saleId} buyer-${id} 1${notes}`;
    expect(parts).toEqual([
      {
        ...{ row: first, kind: 'order.committed', events: 2, at: AT },
        lines: `${line(1, plain)}\n${line(3, noted, '\tref-1\t{"a": 1}')}`,
      },
      { row: second, kind: 'order.paid', events: 1, at: AT, lines: line(1, tagged, '\t\t{"b": 2}') },
      { row: third, kind: 'order.expired', events: 0, at: AT, lines: '' },
      {
        ...{ row: fourth, kind: 'order.redeemed', events: 1, at: AT },
        lines: line(1, referred, '\tref-2\t'),
      },
    ]);
    expect(await outbox.readRows()).toEqual({ rows: [first, second, third, fourth], parts: [] });
  });

  test('has a long row in parts of 256 events', async () => {
    const ids = await orders(600);
    const row = await event('committed', ids);
    const { rows: read, parts } = await outbox.read();
    expect(read).toEqual([row]);
    expect(parts.map(({ events }) => events)).toEqual([256, 256, 88]);
    const placesAndIds = parts.flatMap(({ lines }) =>
      lines.split('\n').map((line) => line.split(' ').slice(0, 2)),
    );
    expect(placesAndIds).toEqual(ids.map((id, i) => [String(i + 1), id]));
  });

  test('is read up to 100 rows, and up to 16 KiB of orders', async () => {
    const [id] = await orders(1);
    const all: string[] = [];
    for (let i = 0; i < 101; i++) all.push(await event('committed', [id!]));
    for (const read of [await outbox.read(), await outbox.readRows()])
      expect(read.rows).toEqual(all.slice(0, 100));
    await outbox.remove(all, { forWebhook: false });
    const long = await orders(1_500);
    const [first, second] = [
      await event('paid', long),
      await event('redeemed', long),
      await event('paid', long),
    ];
    for (const read of [await outbox.read(), await outbox.readRows()])
      expect(read.rows).toEqual([first, second]);
  });

  test('gives delivered rows up, to the webhook if there is one, in pages of 100 events', async () => {
    const ids = await orders(250);
    const [long, short, other] = [
      await event('committed', ids),
      await event('paid', ids.slice(0, 1), '2026-11-27T13:00:00Z'),
      await event('paid', ids.slice(1, 2)),
    ];
    expect(await outbox.remove([short, long, '0'], { forWebhook: true })).toBe(2);
    expect((await outbox.readRows()).rows).toEqual([other]);
    const pages = await rows(
      shop.db,
      `SELECT outbox_id::text AS row, before, kind, order_ids::text[] AS ids, attempts,
         happened_at = '2026-11-27T13:00:00Z' AS later FROM webhook_pages ORDER BY id`,
    );
    const page = (before: number) => ({
      ...{
        row: long,
        before,
        kind: 'committed',
        ids: ids.slice(before, before + 100),
        attempts: 0,
        later: false,
      },
    });
    expect(pages).toEqual([
      ...[page(0), page(100), page(200)],
      { row: short, before: 0, kind: 'paid', ids: ids.slice(0, 1), attempts: 0, later: true },
    ]);
    expect(await outbox.remove([other], { forWebhook: false })).toBe(1);
    expect(await outbox.remove([other], { forWebhook: false })).toBe(0);
    expect(await pageIds()).toHaveLength(4);
  });

  test('says how many rows wait, and for how long', async () => {
    expect(await outbox.isEmpty()).toBe(true);
    expect(await outbox.waiting()).toEqual({ rows: 0, oldestMs: 0 });
    await event('paid', await orders(1), new Date(Date.now() - 3_600_000).toISOString());
    await event('paid', await orders(1), new Date(Date.now() - 60_000).toISOString());
    const { rows: waiting, oldestMs } = await outbox.waiting();
    expect(waiting).toBe(2);
    expect(Math.abs(oldestMs - 3_600_000)).toBeLessThan(50_000);
    await query(asAdmin(shop.databaseUrl), 'TRUNCATE order_events');
    await event('paid', await orders(1), '2099-01-01T00:00:00Z');
    expect(await outbox.waiting()).toEqual({ rows: 1, oldestMs: 0 });
  });
});

describe('the webhook’s queue', () => {
  test('sends the oldest pages that fit in one request, each event with the order’s data', async () => {
    expect(await queue.next()).toBeUndefined();
    const [plain, noted, ...rest] = (await orders(100)) as [string, string, ...string[]];
    await shop.db.raw("UPDATE orders SET reference = 'ref-1', metadata = '{\"a\": 1}' WHERE order_id = ?", [
      noted,
    ]);
    const first = await event('committed', [plain, NOWHERE, noted]);
    const second = await event('paid', rest.slice(0, 97));
    const third = await event('paid', rest.slice(97));
    const pages = await queued(first, second, third);
    const delivery = (await queue.next())!;
    expect({ pages: delivery.pages, attempts: delivery.attempts }).toEqual({
      pages: pages.slice(0, 2),
      attempts: 0,
    });
    const of = (orderId: string) => ({ orderId, saleId, buyerId: `buyer-${orderId}`, quantity: 1, at: AT });
    expect(delivery.events).toEqual([
      { ...of(plain), id: `${first}-1`, kind: 'order.committed' },
      { ...of(noted), id: `${first}-3`, kind: 'order.committed', reference: 'ref-1', metadata: { a: 1 } },
      ...rest.slice(0, 97).map((id, i) => ({ ...of(id), id: `${second}-${i + 1}`, kind: 'order.paid' })),
    ]);
    expect(await queue.remove([...delivery.pages, '0'])).toBe(2);
    expect((await queue.next())!.pages).toEqual(pages.slice(2));
  });

  test('numbers the events of a long row through, over its pages', async () => {
    const ids = await orders(150);
    const row = await event('committed', ids);
    const [first, second] = await queued(row);
    expect((await queue.next())!.pages).toEqual([first]);
    await queue.remove([first!]);
    const { pages, events } = (await queue.next())!;
    expect(pages).toEqual([second]);
    expect(events.map(({ id, orderId }) => [id, orderId])).toEqual(
      ids.slice(100).map((orderId, i) => [`${row}-${101 + i}`, orderId]),
    );
  });

  test('sends a page that has failed alone: not behind an older one either, which may be refused', async () => {
    const [a, b, c] = [
      await event('paid', await orders(1)),
      await event('paid', await orders(1)),
      await event('paid', await orders(1)),
    ];
    const [first, second, third] = await queued(a, b, c);
    await queue.failed([second!], 5, 'why');
    expect(await queue.next()).toMatchObject({ pages: [first], attempts: 0 });
    await queue.failed([first!], 5, 'why');
    expect(await queue.next()).toMatchObject({ pages: [first], attempts: 1 });
    await queue.failed([first!], 2, 'why');
    expect(await queue.next()).toMatchObject({ pages: [second], attempts: 1 });
    await queue.remove([second!]);
    expect(await queue.next()).toMatchObject({ pages: [third], attempts: 0 });
  });

  test('a page that has failed too often is a dead letter until it is sent again', async () => {
    const ids = await orders(3);
    const outboxIds = [
      await event('paid', ids.slice(0, 2)),
      await event('redeemed', ids.slice(2)),
      await event('paid', ids),
    ];
    const [first, second, third] = (await queued(...outboxIds)) as [string, string, string];
    expect(await queue.failed([first, second, '0'], 2, 'x'.repeat(600))).toEqual({ dead: [], found: 2 });
    expect((await queue.deadLetters()).listed).toEqual([]);
    const last = await queue.failed([first, second, third], 2, 'y'.repeat(600));
    expect({ ...last, dead: last.dead.sort() }).toEqual({ dead: [first, second].sort(), found: 3 });
    expect(await queue.failed([first], 2, 'late')).toEqual({ dead: [], found: 0 });
    expect(await queue.remove([first])).toBe(0);
    const letter = {
      ...{ at: AT, deadAt: expect.stringMatching(/^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/), attempts: 2 },
      failedWith: 'y'.repeat(500),
    };
    expect((await queue.deadLetters()).listed).toEqual([
      { ...letter, id: first, kind: 'order.paid', orderIds: ids.slice(0, 2) },
      { ...letter, id: second, kind: 'order.redeemed', orderIds: ids.slice(2) },
    ]);
    expect(await queue.deadPages()).toBe(2);
    expect(await queue.resend(third)).toBe(0);
    expect(await queue.resend(second)).toBe(1);
    // The third has failed before.
    expect(await queue.next()).toMatchObject({ pages: [second], attempts: 0 });
    expect(await queue.deadPages()).toBe(1);
    expect(await queue.resend()).toBe(1);
    expect(await queue.resend()).toBe(0);
  });

  test('is empty if there are only dead letters', async () => {
    expect(await queue.isEmpty()).toBe(true);
    const pages = await queued(await event('paid', await orders(1)));
    expect(await queue.isEmpty()).toBe(false);
    await queue.failed(pages, 1, 'no answer');
    expect(await queue.isEmpty()).toBe(true);
  });

  test('lists the oldest 100 dead letters, and counts all', async () => {
    const [id] = await orders(1);
    for (let i = 0; i < 101; i++) await event('paid', [id!]);
    const pages = await queued(
      ...(
        await rows<{ id: string }>(shop.db, 'SELECT id::text FROM order_events ORDER BY order_events.id')
      ).map(({ id }) => id),
    );
    await queue.failed(pages, 1, 'why');
    const page = async (query: PageQuery) => {
      const { listed, next } = await queue.deadLetters(query);
      return { ids: listed.map((letter) => letter.id), next };
    };
    expect(await page({})).toEqual({ ids: pages.slice(0, 100), next: pages[99] });
    expect(await page({ after: pages[99] })).toEqual({ ids: pages.slice(100), next: undefined });
    expect(await page({ limit: 2 })).toEqual({ ids: pages.slice(0, 2), next: pages[1] });
    // A page that was sent again meanwhile leaves its place in the order.
    await queue.resend(pages[1]);
    expect(await page({ after: pages[1], limit: 99 })).toEqual({ ids: pages.slice(2), next: undefined });
    await queue.failed([pages[1]!], 1, 'why');
    expect(await queue.waiting()).toEqual({ pages: 0, oldestPageMs: 0, deadPages: 101 });
  });

  test('says how many pages wait, and for how long', async () => {
    const old = await event('paid', await orders(1), new Date(Date.now() - 7_200_000).toISOString());
    const young = [3_600_000, 60_000].map((ms) => new Date(Date.now() - ms).toISOString());
    const [first] = await queued(
      old,
      await event('paid', await orders(1), young[1]),
      await event('paid', await orders(1), young[0]),
    );
    await queue.failed([first!], 1, 'why');
    const { pages, oldestPageMs, deadPages } = await queue.waiting();
    expect({ pages, deadPages }).toEqual({ pages: 2, deadPages: 1 });
    expect(Math.abs(oldestPageMs - 3_600_000)).toBeLessThan(50_000);
  });
});
