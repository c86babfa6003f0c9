/** Lists of orders: every filter, page by page, compared with all orders; and a buyer's own, over many sales. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { firstIdAt, ORDER_ID_EPOCH_MS } from '../../../src/engine/order-id.ts';
import type { OrderQuery } from '../../../src/operations/order-list.ts';
import { ORDER_STATUSES, type OrderStatus } from '../../../src/operations/order-operations.ts';
import { readOrderPage } from '../../../src/orders/order-pages.ts';
import { isPlace, PROBED_SALES, readOwnOrders, readOwnOrdersOfSale } from '../../../src/orders/own-orders.ts';
import { rows } from '../../../src/postgres/database.ts';
import { Shop } from '../../support/shop/shop.ts';

/** As in the table, where an offer is an unpaid order. */
const STORED = ORDER_STATUSES.filter((status) => status !== 'offered');

const START_MS = Date.UTC(2026, 10, 1);
const FIRST = BigInt(firstIdAt(START_MS));
const idAt = (second: number, n: number) => String(FIRST + (BigInt(second) << 32n) + BigInt(n) * 1_000_003n);

let shop: Shop;

beforeEach(async () => {
  shop = await Shop.open({ backend: 'memory' });
});

afterEach(() => shop[Symbol.asyncDispose]());

interface Line {
  readonly orderId: string;
  readonly buyerId: string;
  readonly status: OrderStatus;
  readonly second: number;
}

/** Orders as they are after a while: 100 a second, of each status some, each buyer with up to seven. */
function history(orders: number): Line[] {
  return Array.from({ length: orders }, (_, n) => {
    const second = Math.floor(n / 100);
    const status = n < orders - 50 ? STORED[n % STORED.length]! : 'paid';
    return { orderId: idAt(second, n % 100), buyerId: `buyer-${n % (orders / 5)}`, status, second };
  });
}

async function insert(saleId: string, lines: readonly Line[], onePerBuyer = false): Promise<void> {
  await shop.db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer)
     SELECT id, ?, buyer, 1, status, ? FROM json_to_recordset(?::json) AS l (id bigint, buyer text, status text)`,
    [
      saleId,
      onePerBuyer,
      JSON.stringify(lines.map(({ orderId, buyerId, status }) => ({ id: orderId, buyer: buyerId, status }))),
    ],
  );
}

async function allOf(saleId: string, query: OrderQuery): Promise<string[]> {
  const found: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await readOrderPage(shop.db, saleId, { ...query, after });
    expect(page.orders.length).toBeLessThanOrEqual(query.limit ?? 100);
    found.push(...page.orders.map(({ orderId }) => orderId));
    if (page.next === undefined) return found;
    expect(page.next).not.toBe(after);
    after = page.next;
  }
}

describe('the orders of a sale', () => {
  const filters: [string, OrderQuery, (line: Line) => boolean][] = [
    ['no filter', {}, () => true],
    ['a status', { status: ['paid'] }, ({ status }) => status === 'paid'],
    ['an ended status', { status: ['expired'] }, ({ status }) => status === 'expired'],
    [
      'live and ended statuses',
      { status: ['unpaid', 'rejected'] },
      ({ status }) => ['unpaid', 'rejected'].includes(status),
    ],
    ['a buyer', { buyerId: 'buyer-7' }, ({ buyerId }) => buyerId === 'buyer-7'],
    [
      'a buyer and a status',
      { buyerId: 'buyer-8', status: ['paid', 'cancelled'] },
      ({ buyerId, status }) => buyerId === 'buyer-8' && ['paid', 'cancelled'].includes(status),
    ],
    [
      'a buyer and time',
      { buyerId: 'buyer-7', since: START_MS + 2_000, until: START_MS + 5_000 },
      ({ buyerId, second }) => buyerId === 'buyer-7' && second >= 2 && second < 5,
    ],
    ['time', { since: START_MS + 2_000, until: START_MS + 5_000 }, ({ second }) => second >= 2 && second < 5],
    [
      'time between seconds, and a status',
      { since: START_MS + 1_001, until: START_MS + 3_500, status: ['redeemed'] },
      ({ second, status }) => second >= 2 && second < 4 && status === 'redeemed',
    ],
    ['nothing before the first id', { until: ORDER_ID_EPOCH_MS - 1_000 }, () => false],
    ['nothing after the last id', { since: Date.UTC(2200, 0, 1) }, () => false],
  ];

  test.each(filters)('by %s, in both directions, in pages of any size', async (_, filter, matches) => {
    const sale = await shop.sell({ stock: 10, perBuyerLimit: 10 });
    const other = await shop.sell({ stock: 10, perBuyerLimit: 10 });
    const lines = history(1_000);
    await insert(sale.id, lines);
    await insert(
      other.id,
      lines.map((line) => ({ ...line, orderId: String(BigInt(line.orderId) + 1n) })),
    );
    const expected = lines.filter(matches).map(({ orderId }) => orderId);
    for (const limit of expected.length < 10 ? [1_000, 2, 1] : [1_000, 100, 7]) {
      expect(await allOf(sale.id, { ...filter, limit, order: 'oldest' })).toEqual(expected);
      expect(await allOf(sale.id, { ...filter, limit })).toEqual([...expected].reverse());
    }
  });

  test('a buyer’s orders of a sale with one unit per buyer are found, the live one and the ended ones', async () => {
    const sale = await shop.sell({ stock: 10 });
    const statuses: OrderStatus[] = ['cancelled', 'expired', 'refunded', 'rejected', 'paid'];
    const lines = statuses.map((status, n) => ({ orderId: idAt(0, n), buyerId: 'ann', status, second: 0 }));
    await insert(sale.id, lines, true);
    expect(await allOf(sale.id, { buyerId: 'ann', order: 'oldest' })).toEqual(
      lines.map(({ orderId }) => orderId),
    );
  });

  test('a rare status among many is found over several pages, of which each reads a bounded number', async () => {
    const sale = await shop.sell({ stock: 10, perBuyerLimit: 10 });
    const lines = history(45_000).map((line, n) => ({
      ...line,
      status: n === 44_000 ? ('unpaid' as const) : ('paid' as const),
    }));
    await insert(sale.id, lines);
    const query = { status: ['unpaid'], order: 'oldest' } as const;
    const first = await readOrderPage(shop.db, sale.id, query);
    expect(first).toEqual({ orders: [], next: lines[19_999]!.orderId });
    const second = await readOrderPage(shop.db, sale.id, { ...query, after: first.next });
    expect(second).toEqual({ orders: [], next: lines[39_999]!.orderId });
    const last = await readOrderPage(shop.db, sale.id, { ...query, after: second.next });
    expect(last.orders.map(({ orderId }) => orderId)).toEqual([lines[44_000]!.orderId]);
    expect(last.next).toBeUndefined();
  });

  test('each page is read from an index of the sale', async () => {
    const [small, large] = [await shop.sell({ stock: 10 }), await shop.sell({ stock: 10 })];
    await insert(large.id, history(20_000), false);
    await insert(small.id, [{ orderId: idAt(1, 101), buyerId: 'ann', status: 'paid', second: 1 }], true);
    await shop.db.raw('ANALYZE orders');
    const queries: OrderQuery[] = [
      {},
      { since: START_MS },
      { status: ['unpaid'] },
      { status: ['expired'] },
      { buyerId: 'ann' },
    ];
    for (const query of queries) {
      const plans = await plansOf(() => readOrderPage(shop.db, small.id, query));
      expect(plans, JSON.stringify(query)).toMatch(/Index/);
      expect(plans, JSON.stringify(query)).not.toMatch(/Seq Scan|orders_pkey/);
    }
  });
});

/** Plans of the statements that the work sends. */
async function plansOf(work: () => Promise<unknown>): Promise<string> {
  const sent: { sql: string; bindings: string[] }[] = [];
  const watch = (statement: { sql: string; bindings: string[] }) => sent.push(statement);
  shop.db.on('query', watch);
  await work();
  shop.db.removeListener('query', watch);
  const plans: string[] = [];
  for (const { sql, bindings } of sent) {
    const lines = await rows<{ 'QUERY PLAN': string }>(
      shop.db,
      `EXPLAIN ${sql.replaceAll(/\$\d+/g, '?')}`,
      bindings,
    );
    plans.push(lines.map((line) => line['QUERY PLAN']).join('\n'));
  }
  return plans.join('\n');
}

describe('a buyer’s own orders', () => {
  async function own(limit: number): Promise<{ found: string[]; pages: number }> {
    const found: string[] = [];
    for (let after: string | undefined, pages = 1; ; pages++) {
      const page = await readOwnOrders(shop.db, 'ann', { after, limit });
      found.push(...page.orders.map(({ orderId }) => orderId));
      if (page.next === undefined) return { found, pages };
      expect(isPlace(page.next)).toBe(true);
      after = page.next;
    }
  }

  test('of all sales, the newest sale first, also if many other sales lie between them', async () => {
    const old = await shop.sell({ stock: 10, perBuyerLimit: 10 });
    const young = await shop.sell({ stock: 10 });
    await shop.db.raw(
      `INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, state, metadata, created_at)
       SELECT 'between-' || n, '', 1, 1, 1, 1, now(), 'closed', '{}', s.created_at
       FROM sales s, generate_series(1, ?) n WHERE s.id = ?`,
      [PROBED_SALES * 2, old.id],
    );
    const line = (orderId: string, buyerId = 'ann', status: OrderStatus = 'paid') => ({
      ...{ orderId, buyerId, status, second: 0 },
    });
    const ofOld = [3, 2, 1, 0].map((n) => idAt(0, n));
    await insert(
      old.id,
      ofOld.map((id) => line(id)),
    );
    const ofYoung = [idAt(0, 11), idAt(0, 10)];
    await insert(young.id, [line(ofYoung[0]!), line(ofYoung[1]!, 'ann', 'cancelled')], true);
    await insert(young.id, [line(idAt(0, 20), 'bob')], true);
    for (const limit of [100, 3, 1]) {
      const { found, pages } = await own(limit);
      expect(found).toEqual([...ofYoung, ...ofOld]);
      expect(pages).toBeGreaterThanOrEqual(3);
    }
  });

  /** The orders of all pages. Something happens after the first statement. */
  async function ownWhile(happens: () => Promise<unknown>): Promise<string[]> {
    let statements = 0;
    const raw = async (sql: string, bindings: readonly string[]) => {
      if (statements++ === 1) await happens();
      return shop.db.raw(sql, [...bindings]);
    };
    const db: typeof shop.db = Object.create(shop.db, { raw: { value: raw } });
    const found: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await readOwnOrders(db, 'ann', { after, limit: 100 });
      found.push(...page.orders.map(({ orderId }) => orderId));
      if (page.next === undefined) return found;
      after = page.next;
    }
  }

  /** As many sales as one page searches, one more, and one more: the last two have an order each, the oldest the first. */
  async function manySales(): Promise<void> {
    await shop.db.raw(
      `INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, state, metadata, created_at)
       SELECT 'many-' || n, '', 1, 1, 1, 1, now(), 'closed', '{}', now() - (?::integer - n) * interval '1 second'
       FROM generate_series(1, ?::integer) n`,
      [PROBED_SALES + 2, PROBED_SALES + 2],
    );
    for (const n of [1, 2])
      await insert(`many-${n}`, [{ orderId: idAt(0, n), buyerId: 'ann', status: 'paid', second: 0 }]);
  }

  test('none is left out if a sale is deleted while a page is read', async () => {
    await manySales();
    const hide = () =>
      shop.db.raw('UPDATE sales SET deleting_since = now() WHERE id = ?', [`many-${PROBED_SALES}`]);
    expect(await ownWhile(hide)).toEqual([idAt(0, 2), idAt(0, 1)]);
  });

  test('none comes twice if a sale is made while a page is read', async () => {
    await manySales();
    expect(await ownWhile(() => shop.sell({ stock: 1 }))).toEqual([idAt(0, 2), idAt(0, 1)]);
  });

  test('a place names an id that a sale can have', () => {
    expect(isPlace('1.1.tickets')).toBe(true);
    for (const id of ['\0', 'a\0', 'no sale', ''])
      expect(isPlace(`1.1.${id}`), JSON.stringify(id)).toBe(false);
  });

  test('of one sale, with orders that are accepted and not in Postgres yet', async () => {
    const sale = await shop.sell({ stock: 10, perBuyerLimit: 5 });
    await insert(sale.id, [{ orderId: idAt(0, 1), buyerId: 'ann', status: 'cancelled', second: 0 }]);
    const record = {
      committed: 4,
      orders: [
        { orderId: '1', quantity: 1, key: '', seq: 4 },
        { orderId: '2', quantity: 2, key: '', seq: 5 },
      ],
    };
    const ann = { saleId: sale.id, buyerId: 'ann' };
    const page = await readOwnOrdersOfSale(shop.db, ann, {}, async () => record);
    expect(page).toMatchObject({
      orders: [{ orderId: idAt(0, 1), status: 'cancelled' }],
      accepted: [{ orderId: '2', saleId: sale.id, quantity: 2 }],
    });
    // Committed after the record was read, and on the next page.
    await insert(sale.id, [{ orderId: '2', buyerId: 'ann', status: 'unpaid', second: 0 }]);
    const first = await readOwnOrdersOfSale(shop.db, ann, { limit: 1 }, async () => record);
    expect(first).toMatchObject({ orders: [{ orderId: idAt(0, 1) }], accepted: [] });
    const second = await readOwnOrdersOfSale(
      shop.db,
      ann,
      { limit: 1, after: first!.next },
      async () => record,
    );
    expect(second).toMatchObject({ orders: [{ orderId: '2' }], accepted: [] });
    const none = async () => undefined;
    expect(await readOwnOrdersOfSale(shop.db, { ...ann, buyerId: 'bob' }, {}, none)).toMatchObject({
      ...{ orders: [], accepted: [] },
    });
    expect(await readOwnOrdersOfSale(shop.db, { ...ann, saleId: 'mistyped' }, {}, none)).toBeUndefined();
  });
});
