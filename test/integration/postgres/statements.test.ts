/**
 * No statement of the product reads all orders, however many there are. Every literal in src/ that names one of the tables
 * of the truth is a statement here. One without variable parts is planned as it stands. The others are collected while
 * operations run, and one that no operation has sent fails the test. What functions in Postgres do is seen in the
 * server's counters of sequential scans.
 */
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { beginDeletion } from '../../../src/deletion/begin-deletion.ts';
import { finishDeletion } from '../../../src/deletion/finish-deletion.ts';
import { Outbox } from '../../../src/events/outbox.ts';
import { WebhookQueue } from '../../../src/events/webhook-queue.ts';
import type { OrderQuery } from '../../../src/operations/order-list.ts';
import { expireInSale, expireOrders } from '../../../src/orders/expire-orders.ts';
import { OrderService } from '../../../src/orders/order-service.ts';
import { readOwnOrders, readOwnOrdersOfSale } from '../../../src/orders/own-orders.ts';
import { applyReturns, applyReturnsOf } from '../../../src/orders/returns.ts';
import { beginOffers } from '../../../src/queue/head/begun-offers.ts';
import { writeAlive, writeStanding } from '../../../src/queue/head/standing.ts';
import { readKnown, readWork, tellQuiet } from '../../../src/queue/head/work.ts';
import { limitReachedBy } from '../../../src/queue/held-units.ts';
import { FifoLine } from '../../../src/queue/line.ts';
import { acceptOffer } from '../../../src/queue/offers.ts';
import { countAhead } from '../../../src/queue/operators/places-ahead.ts';
import { QueueService } from '../../../src/queue/operators/queue-service.ts';
import {
  givePlaces,
  leaveQueue,
  passOverAbsent,
  passOverLimited,
  readPlaceOf,
  readPlaces,
  readWaiting,
  waitingAmong,
} from '../../../src/queue/places.ts';
import { EVERYBODY, isAbsent, judgePresent, tidyPresence } from '../../../src/queue/presence.ts';
import { type QueueState, readQueue } from '../../../src/queue/queue-state.ts';
import { readDueSales } from '../../../src/rebuild/erasures.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { followState } from '../../../src/sales/follow-state.ts';
import { readResizes } from '../../../src/sales/ledger.ts';
import { countLiveOrders } from '../../../src/sales/live-orders.ts';
import { readOverdueSales } from '../../../src/sales/movements.ts';
import { readOpenWork } from '../../../src/sales/open-work.ts';
import { readSale, readSales } from '../../../src/sales/sale-rows.ts';
import { SalesAtWork } from '../../../src/sales/sales-at-work.ts';
import { undoWithdrawal } from '../../../src/sales/withdrawal.ts';
import { BuyerService } from '../../../src/shop/buyer-service.ts';
import { BY } from '../../support/author.ts';
import { emptyDatabase, until } from '../../support/fixtures.ts';
import { isOf, plain, sqlLiterals } from '../../support/postgres/sql-literals.ts';
import { Shop } from '../../support/shop/shop.ts';

const SOURCE = fileURLToPath(new URL('../../../src', import.meta.url));
const TABLES =
  /\b(FROM|JOIN|UPDATE|INTO) (orders|sales|stock_returns|stock_movements|order_changes|lost_orders|sale_losses|segment_cursors|order_events|webhook_pages|erasures|deleted_sales|queues|places)\b/;
const SALES = 2_000;
const ORDERS_PER_SALE = 100;
/** Tables that grow with the history. */
const LARGE = new Set([
  'orders',
  'stock_returns',
  'stock_movements',
  'order_changes',
  'lost_orders',
  'places',
]);
/** Indexes of pending work only: they are short, and may be read from end to end. */
const WAITING =
  /^(orders_refund_due|orders_unpaid_until|orders_rejected|stock_returns_pending|stock_movements_pending)$/;

interface Executed {
  readonly sql: string;
  readonly bindings: readonly unknown[];
}

let shop: Shop;
let admin: pg.Client;
const executed = new Map<string, Executed>();
const literals = sqlLiterals(SOURCE, TABLES);
let lastOrder = 10_000_000;

beforeAll(async () => {
  const database = await emptyDatabase();
  shop = await Shop.open({ database });
  admin = new pg.Client({ connectionString: database });
  await admin.connect();
  await admin.query("SET plan_cache_mode = 'force_generic_plan'");
  const filler = new pg.Client({ connectionString: database });
  await filler.connect();
  await fill(filler);
  // Its scans are counted, at the latest, when its session ends.
  await filler.end();
});

afterAll(async () => {
  await admin?.end();
  await shop?.[Symbol.asyncDispose]();
});

async function fill(filler: pg.Client): Promise<void> {
  await filler.query(`INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, state, metadata,
      created_at)
    SELECT 'ended-' || i, 'Ended', 1000, 900, 1, 1 + i % 2, now() + i * interval '1 hour', 'closed', '{}',
      now() - i * interval '1 hour'
    FROM generate_series(1, ${SALES}) AS i`);
  await filler.query(`INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer, reference)
    SELECT n, 'ended-' || 1 + n / ${ORDERS_PER_SALE}, 'buyer-' || n, 1,
      CASE WHEN n % 10 = 0 THEN 'cancelled' ELSE 'paid' END, (1 + n / ${ORDERS_PER_SALE}) % 2 = 0,
      CASE WHEN n % 3 = 0 THEN 'cart-' || n % 7 END
    FROM generate_series(0, ${SALES * ORDERS_PER_SALE - 1}) AS n`);
  await filler.query(`INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason, generation, applied_at)
    SELECT order_id, sale_id, buyer_id, 1, 'cancelled', 1, now() FROM orders WHERE status = 'cancelled'`);
  await filler.query(`INSERT INTO stock_movements (sale_id, units, reason, actor, action, applied_at)
    SELECT 'ended-' || 1 + n % ${SALES}, 0, '', 'somebody', 'create', now() FROM generate_series(1, ${SALES * 5}) AS n`);
  await filler.query(`INSERT INTO order_changes (order_id, change, actor, reason)
    SELECT order_id, 'cancel', 'somebody', '' FROM orders WHERE status = 'cancelled'`);
  await filler.query(`INSERT INTO lost_orders (order_id, sale_id, generation, segment, buyer_id, quantity)
    SELECT order_id, sale_id, 1, 0, buyer_id, 1 FROM orders WHERE order_id % 10 = 1`);
  await filler.query(`INSERT INTO places (sale_id, number, buyer_id, quantity, state)
    SELECT sale_id, 1 + order_id % ${ORDERS_PER_SALE}, buyer_id, 1, 'bought' FROM orders`);
  await filler.query('VACUUM ANALYZE');
}

function orderService(): OrderService {
  const { db, backend } = shop;
  return new OrderService({ db, backend, buy: () => Promise.reject(new Error('nobody buys')) });
}

/** Applies orders as sync does, but moves no cursor. */
async function commit({ db }: Shop, saleId: string, buyers: readonly string[]): Promise<void> {
  const ids = buyers.map(() => ++lastOrder);
  await db.raw(
    `SELECT stockade_apply_batch(ARRAY[?], ARRAY[?::bigint], '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
       ?::bigint[], array_fill(1, ARRAY[?::integer]), ?::text[], array_fill(1, ARRAY[?::integer]), NULL)`,
    [saleId, ids.length, `{${ids}}`, ids.length, `{${buyers}}`, ids.length],
  );
}

const drawnOf = (state: QueueState): QueueState => ({
  ...state,
  draw: { ...state.draw, drawn: { entries: 2, entriesHash: '0'.repeat(64), at: new Date() } },
});

/** Two buyers in the queue of a sale; one of them leaves. */
async function operateQueue(): Promise<void> {
  const { db, service } = shop;
  await service.create({ id: 'line', stock: 5, queue: 'fifo' }, BY.actor);
  const wishes = ['a', 'b'].map((buyerId) => ({ buyerId, quantity: 1 }));
  const places = [...(await givePlaces(db, 'line', wishes)).values()];
  await limitReachedBy(db, 'line', wishes);
  await isAbsent(db, 'line', 1);
  await readPlaceOf(db, 'line', 'a');
  await readPlaceOf(db, 'line', 'nobody');
  await readPlaces(db, 'line', [1, 2]);
  await readWaiting(db, 'line', 0, 10);
  await waitingAmong(db, 'line', [1, 2]);
  const queue = (await readQueue(db, 'line'))!;
  await readKnown(db, ['line']);
  const memory = { unfinished: ['line'], drawn: [], resting: [] };
  await readWork(db, memory);
  await tellQuiet(db, memory);
  await beginOffers(db, queue, [1, 2]);
  await tidyPresence(db, 'line', 1);
  await writeAlive(db, queue, true);
  await writeStanding(db, queue, {
    line: new FifoLine('line'),
    present: EVERYBODY,
    made: 0,
    free: 5,
    passes: false,
  });
  await passOverAbsent(db, queue, places.slice(0, 1));
  await passOverLimited(db, queue, [{ place: places[0]!, quantity: 1 }]);
  await leaveQueue(db, 'line', 'b');
  const queues = new QueueService(db);
  await queues.showQueue('line', { count: true });
  for (const query of [{}, { state: 'waiting' }, { state: 'left' }, { buyer: 'a' }] as const)
    await queues.places('line', query);
  await countAhead(db, drawnOf((await readQueue(db, 'line'))!), true, 1);
  await judgePresent(db, 'line', 1);
  await queues.changeQueue('line', { action: 'pause' }, BY);
  await acceptOffer(db, { orderId: '1', buyerId: 'a', quantity: 1 });
  await db.raw("UPDATE places SET order_id = 1 WHERE sale_id = 'line' AND number = 1");
  await service.verify('line', { repair: true });
}

/** Operations whose statements have variable parts, and those that call functions in Postgres. */
async function operate(): Promise<void> {
  const { db, backend, service } = shop;
  const orders = orderService();
  const buyers = new BuyerService({ db, backend, syncWaitMs: 0 });
  for (const [id, perBuyerLimit] of [
    ['one', 1],
    ['two', 2],
  ] as const) {
    await service.create({ id, stock: 50, perBuyerLimit }, BY.actor);
    await commit(shop, id, ['a', 'b', 'c']);
    await service.change(id, { action: 'top-up', units: 5 }, BY);
    await service.change(id, { action: 'resize', segments: 3 }, BY);
    await service.change(id, { action: 'withdraw', units: 5 }, BY);
    await service.verify(id, { repair: true });
    await service.show(id);
    await service.ledger(id, { after: '1', limit: 2 });
    for (const order of ['newest', 'oldest'] as const) {
      const page = await orders.listOrders(id, { order, limit: 1 });
      await orders.listOrders(id, { order, limit: 1, after: page.next, status: ['paid', 'unpaid'] });
      await orders.listOrders(id, { order, buyerId: 'a' });
      await orders.listOrders(id, { order, reference: 'cart-1' });
      await orders.listOrders(id, { order, reference: 'cart-1', status: ['paid'] });
    }
    const [first, second] = (await orders.listOrders(id)).orders;
    await orders.changeOrder(first!.orderId, { kind: 'pay', payType: 'card' }, BY);
    await orders.changeOrder(second!.orderId, { kind: 'cancel' }, BY);
    await applyReturns(db, backend, id);
    await applyReturnsOf(db, backend, [first!.orderId]);
    await readOwnOrdersOfSale(db, { saleId: id, buyerId: 'a' }, {}, async () => undefined);
    await buyers.erase({ buyerId: 'c', saleId: id, running: true, dryRun: true }, BY);
    await buyers.erase({ buyerId: 'c', saleId: id, running: true }, BY);
    await rebuildSale(db, backend, id);
  }
  const row = (await readSale(db, 'one'))!;
  await backend.sales.setState({ ...row, revision: row.revision + 1 });
  await followState(db, backend, 'one');
  await buyers.erase({ buyerId: 'buyer-7', running: false, dryRun: true }, BY);
  await buyers.erase({ buyerId: 'buyer-7', running: false }, BY);
  await operateQueue();
  await readDueSales(db);
  await readResizes(db);
  await readOverdueSales(db);
  await readOwnOrders(db, 'a', {});
  await service.list({ state: 'open', limit: 1 });
  const { next } = await service.list({ limit: 1 });
  await service.list({ after: next });
  await service.list({ after: next, since: '2026-01-01T00:00:00Z', until: '2100-01-01T00:00:00Z' });
  for (const saleId of [undefined, 'one']) {
    await orders.refundsDue({ saleId });
    await orders.refundsDue({ saleId, after: '1' }).catch(() => {});
  }
  await expireOrders(db, 10);
  await expireInSale(db, 'one', ['1'], 100);
  await countLiveOrders(db, 'one');
  const outbox = new Outbox(db);
  await outbox.isEmpty();
  await outbox.read();
  await outbox.readRows();
  await outbox.waiting();
  const webhook = new WebhookQueue(db);
  await webhook.isEmpty();
  await webhook.next();
  await outbox.remove(['1'], { forWebhook: true });
  await outbox.remove(['2'], { forWebhook: false });
  await webhook.waiting();
  await webhook.deadLetters();
  await webhook.resend();
  await readSales(db, { built: true, limit: 1 });
  await readSales(db);
  await new SalesAtWork(db).read(['ended-1']);
  await readOpenWork(db);
  const noWithdrawal = { id: '0', saleId: 'one', action: 'withdraw', units: 0, generation: 1 } as const;
  await undoWithdrawal(db, backend, noWithdrawal, { ifUnlocked: true });
  await webhook.resend('1');
  const { orders: left } = await orders.listOrders('one');
  await orders.editOrder(left[0]!.orderId, { reference: 'x' }, BY);
  await service.change('one', { action: 'close' }, BY);
  await service.change('one', { action: 'archive' }, BY);
  const sale = await beginDeletion(db, backend, 'one', left.length, BY);
  await finishDeletion(db, shop.locks, sale);
}

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Index Cond'?: string;
  /** With ANALYZE: averages of the node's loops. */
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Rows Removed by Join Filter'?: number;
  readonly Plans?: readonly Plan[];
}

/** Nodes of the plan that read a large table from end to end. */
function readsAll(plan: Plan): string[] {
  const { 'Node Type': type, 'Relation Name': table, 'Index Name': index, 'Index Cond': condition } = plan;
  const isAll =
    (type === 'Seq Scan' && LARGE.has(table!)) ||
    (index !== undefined && condition === undefined && LARGE.has(tableOf(index)) && !WAITING.test(index));
  return [
    ...(isAll ? [`${type} of ${table ?? index}`] : []),
    ...(plan.Plans ?? []).flatMap((inner) => readsAll(inner)),
  ];
}

const tableOf = (index: string) => [...LARGE].find((table) => index.startsWith(table)) ?? '';

/** Planned once for all values, as for a statement that is sent without them. */
async function planOf(sql: string): Promise<Plan> {
  let values = 0;
  await admin.query(`PREPARE planned AS ${sql.replaceAll('?', () => `$${++values}`)}`);
  try {
    const given = values === 0 ? '' : `(${Array(values).fill('NULL').join()})`;
    const { rows } = await admin.query(`EXPLAIN (FORMAT JSON) EXECUTE planned${given}`);
    return rows[0]['QUERY PLAN'][0].Plan;
  } finally {
    await admin.query('DEALLOCATE planned');
  }
}

const OTHERS = 'pid <> pg_backend_pid() AND datname = current_database()';

async function endSessions(): Promise<void> {
  await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${OTHERS}`);
  const none = async () =>
    (await admin.query(`SELECT 1 FROM pg_stat_activity WHERE ${OTHERS}`)).rowCount === 0;
  await until(none, { what: 'the end of all sessions' });
}

test('no statement reads a large table from end to end', async () => {
  const scans =
    "SELECT seq_scan::integer AS all, idx_scan::integer AS some FROM pg_stat_user_tables WHERE relname = 'orders'";
  // A session tells what it has counted when it ends.
  await endSessions();
  const before = (await admin.query(scans)).rows[0];
  shop.db.on('query', ({ sql, bindings }: Executed) => executed.set(plain(sql), { sql, bindings }));
  await operate();
  await endSessions();
  const after = await until(
    async () => {
      const { rows } = await admin.query(scans);
      return rows[0].some > before.some + 100 && rows[0];
    },
    { what: 'the counters of the sessions' },
  );

  const wrong: string[] = [];
  const statements = [...executed.keys()];
  for (const literal of literals) {
    const isWhole =
      literal.parts.length === 1 && /^\s*\(?(SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(literal.parts[0]!);
    const plan = isWhole ? await planOf(literal.parts[0]!).catch(() => undefined) : undefined;
    if (plan) wrong.push(...readsAll(plan).map((what) => `${literal.at}: ${what}`));
    else if (!statements.some((statement) => isOf(literal, statement))) {
      wrong.push(`${literal.at}: no operation has sent it; let \`operate\` do so`);
    }
  }
  for (const { sql, bindings } of executed.values()) {
    if (!TABLES.test(plain(sql)) || !/^\s*\(?(SELECT|INSERT|UPDATE|DELETE|WITH)\b/.test(sql)) continue;
    const { rows } = await admin.query(`EXPLAIN (FORMAT JSON) ${sql}`, [...bindings]);
    wrong.push(
      ...readsAll(rows[0]['QUERY PLAN'][0].Plan).map((what) => `${plain(sql).slice(0, 120)}: ${what}`),
    );
  }
  expect(literals.length).toBeGreaterThan(50);
  expect(executed.size).toBeGreaterThan(50);
  expect(wrong).toEqual([]);
  expect(after.all, 'sequential scans of orders').toBe(before.all);
}, 120_000);

test('a statement that reads all orders is found', async () => {
  expect(readsAll(await planOf('SELECT count(*) FROM orders WHERE quantity > ?'))).toEqual([
    'Seq Scan of orders',
  ]);
});

/** Rows that the nodes of the plan have handled, also those that a filter removed. */
function handledRows(plan: Plan): number {
  const rows =
    plan['Actual Rows']! + (plan['Rows Removed by Filter'] ?? 0) + (plan['Rows Removed by Join Filter'] ?? 0);
  return (plan.Plans ?? []).reduce((sum, inner) => sum + handledRows(inner), rows * plan['Actual Loops']!);
}

/** Executes the statement. */
async function rowsHandledBy(client: pg.Client, { sql, bindings }: Executed): Promise<number> {
  const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${sql}`, [...bindings]);
  return handledRows(rows[0]['QUERY PLAN'][0].Plan);
}

test('verify handles each order a few times, although Postgres has no statistics yet', async () => {
  const orders = 6_000;
  const database = await emptyDatabase();
  await using fresh = await Shop.open({ database });
  const freshAdmin = new pg.Client({ connectionString: database });
  await freshAdmin.connect();
  onTestFinished(() => freshAdmin.end());
  await fresh.service.create({ id: 'first', stock: orders, perBuyerLimit: 1 }, BY.actor);
  await commit(
    fresh,
    'first',
    Array.from({ length: orders }, (_, i) => `buyer-${i}`),
  );
  await rebuildSale(fresh.db, fresh.backend, 'first');
  const sent: Executed[] = [];
  fresh.db.on('query', (query: Executed) => sent.push(query));
  expect(await fresh.service.verify('first')).toMatchObject({ ok: true });
  const handled: Record<string, number> = {};
  for (const { sql, bindings } of sent.filter(({ sql }) => /^\s*(SELECT|WITH)\b/.test(sql))) {
    handled[plain(sql)] = (handled[plain(sql)] ?? 0) + (await rowsHandledBy(freshAdmin, { sql, bindings }));
  }
  expect(Object.values(handled).some((rows) => rows >= orders)).toBe(true);
  expect(Object.entries(handled).filter(([, rows]) => rows > 6 * orders)).toEqual([]);
}, 120_000);

test('ending places handles these places only, although Postgres has no statistics yet', async () => {
  const [places, ended] = [20_000, 200];
  const database = await emptyDatabase();
  await using fresh = await Shop.open({ database });
  const freshAdmin = new pg.Client({ connectionString: database });
  await freshAdmin.connect();
  onTestFinished(() => freshAdmin.end());
  await fresh.service.create({ id: 'line', stock: 5, queue: 'fifo', presenceSeconds: 20 }, BY.actor);
  await freshAdmin.query(`INSERT INTO places (sale_id, number, buyer_id, quantity)
    SELECT 'line', n, 'buyer-' || n, 1 FROM generate_series(1, ${places}) AS n`);
  await tidyPresence(fresh.db, 'line', 20);
  await freshAdmin.query("UPDATE queue_presence SET since = now() - interval '1 day'");
  const queue = (await readQueue(fresh.db, 'line'))!;
  const due = (await readWaiting(fresh.db, 'line', places / 2, ended)).filter(
    ({ number }) => number % 2 === 0,
  );
  const sent: Executed[] = [];
  fresh.db.on('query', (query: Executed) => sent.push(query));
  expect(await passOverAbsent(fresh.db, queue, due)).toBe(due.length);
  // More than a buyer may hold.
  const limited = (await readWaiting(fresh.db, 'line', 0, ended)).map((place) => ({ place, quantity: 9 }));
  expect(await passOverLimited(fresh.db, queue, limited)).toHaveProperty('size', ended);
  await freshAdmin.query(
    "UPDATE places SET state = 'waiting', reason = NULL, ended_at = NULL WHERE state = 'left'",
  );
  const updates = sent.filter(({ sql }) => sql.includes('UPDATE places'));
  expect(updates).toHaveLength(2);
  for (const update of updates) expect(await rowsHandledBy(freshAdmin, update)).toBeLessThan(20 * ended);
}, 60_000);

test('a page of the sales that begin in a short time handles these only, also among the oldest sales', async () => {
  const hours = (count: number) => new Date(Date.now() + count * 3_600_000).toISOString();
  const until = hours(SALES + 1);
  for (const query of [
    { since: hours(SALES - 10) },
    { since: hours(SALES - 10), until },
    { until: hours(10) },
  ]) {
    const sent: Executed[] = [];
    const collect = (one: Executed) => sent.push(one);
    shop.db.on('query', collect);
    const { sales } = await shop.service.list(query);
    shop.db.off('query', collect);
    expect(sales.length).toBeGreaterThan(8);
    const statement = sent.find(({ sql }) => sql.includes('starts_at'))!;
    expect(await rowsHandledBy(admin, statement)).toBeLessThan(300);
  }
});

test('a page of a reference that very many orders share handles the orders of the page only', async () => {
  const shared = 25_000;
  await admin.query(`INSERT INTO sales (id, title, initial_stock, stock, segments, per_buyer_limit, starts_at, state, metadata)
    VALUES ('shared', 'Shared', 50000, 10000, 1, 2, now(), 'closed', '{}')`);
  await admin.query(`INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer, reference)
    SELECT 20000000 + n, 'shared', 'buyer-' || n / 2, 1, CASE WHEN n = ${shared} THEN 'cancelled' ELSE 'paid' END, false,
      CASE WHEN n > ${shared} THEN 'other' ELSE 'campaign' END
    FROM generate_series(1, ${shared + 100}) AS n`);
  await admin.query('ANALYZE orders');
  const orders = orderService();
  const handled = async (query: OrderQuery) => {
    const sent: Executed[] = [];
    const collect = (one: Executed) => sent.push(one);
    shop.db.on('query', collect);
    const page = await orders.listOrders('shared', { reference: 'campaign', limit: 10, ...query });
    shop.db.off('query', collect);
    return { page, rows: await rowsHandledBy(admin, sent.find(({ sql }) => sql.includes('reference'))!) };
  };
  for (const order of ['newest', 'oldest'] as const) {
    const first = await handled({ order });
    expect(first.page.orders).toHaveLength(10);
    expect(first.rows).toBeLessThan(50);
    expect((await handled({ order, after: first.page.next })).rows).toBeLessThan(50);
    expect((await handled({ order, buyerId: 'buyer-7' })).rows).toBeLessThan(50);
  }
  const scanned = 20_000;
  const cancelled = { order: 'oldest', status: ['cancelled'] } as const;
  const beginning = await handled(cancelled);
  expect(beginning.page.orders).toEqual([]);
  expect(beginning.rows).toBeLessThan(5 * scanned);
  const rest = await handled({ ...cancelled, after: beginning.page.next });
  expect(rest.page).toMatchObject({ orders: [{ orderId: String(20_000_000 + shared) }], next: undefined });
}, 60_000);
