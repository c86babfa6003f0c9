/** An archived sale leaves Postgres, from any point at which that broke off, and nothing sees it meanwhile. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { beginDeletion } from '../../../src/deletion/begin-deletion.ts';
import { DeletionFinisher } from '../../../src/deletion/deletion-finisher.ts';
import { finishDeletion } from '../../../src/deletion/finish-deletion.ts';
import { StaleGeneration } from '../../../src/engine/errors.ts';
import { firstIdAt } from '../../../src/engine/order-id.ts';
import { Outbox } from '../../../src/events/outbox.ts';
import { WebhookQueue } from '../../../src/events/webhook-queue.ts';
import { OrdersDiffer, SaleDeleting } from '../../../src/operations/delete-operations.ts';
import { exportOrders, textOf } from '../../../src/operations/order-export.ts';
import { UnknownSale, WrongState } from '../../../src/operations/sale-operations.ts';
import { expireOrders } from '../../../src/orders/expire-orders.ts';
import { readOrder } from '../../../src/orders/order-reader.ts';
import { readOwnOrders, readOwnOrdersOfSale } from '../../../src/orders/own-orders.ts';
import { type Database, rows } from '../../../src/postgres/database.ts';
import { LocalLocks } from '../../../src/postgres/sale-locks.ts';
import { askErasures, eraseInArchived, readDueSales } from '../../../src/rebuild/erasures.ts';
import { nameLostOrders } from '../../../src/rebuild/lost-orders.ts';
import { rebuildSale } from '../../../src/rebuild/rebuild.ts';
import { type DeletedSale, readOpenDeletion } from '../../../src/sales/deleted-sales.ts';
import { BY } from '../../support/author.ts';
import { intercept, stallAt } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { insertOrders } from '../../support/events/event-log.ts';
import { until } from '../../support/fixtures.ts';
import { untilBlocked } from '../../support/postgres/blocked.ts';
import { APP_ROLE, allowDeleting, asAdmin } from '../../support/postgres/least-rights.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import { query } from '../../support/shop/truth.ts';

let shop: Shop;
let keys: RedisKeys;

beforeEach(async () => {
  shop = await Shop.open();
  await allowDeleting(shop.databaseUrl);
  keys = new RedisKeys(shop);
});

afterEach(async () => {
  await keys[Symbol.asyncDispose]();
  await shop[Symbol.asyncDispose]();
});

const noTill = () => Promise.reject(new Error('nobody buys'));
const archive = (saleId: string) => shop.service.change(saleId, { action: 'archive' }, BY);
const begin = (saleId: string, orders: number) => beginDeletion(shop.db, shop.backend, saleId, orders, BY);

async function closeAndArchive(saleId: string): Promise<void> {
  await shop.service.change(saleId, { action: 'close' }, BY);
  await until(
    () =>
      archive(saleId).then(
        () => true,
        (error) => {
          if (error instanceof StaleGeneration || error.code === 'unavailable') return false;
          throw error;
        },
      ),
    { what: 'the sale is archived' },
  );
}

/** A sale of 20 units in 3 segments, archived with four orders: one paid, one cancelled, two unpaid. */
async function archivedSale(spec: Record<string, unknown> = {}) {
  const { id } = await shop.sell({ stock: 20, segments: 3, ...spec });
  const sync = await shop.startSync();
  const till = await shop.startEngine();
  const sold = await till.buyAll(id, buyers(4));
  const orderIds = sold.map((outcome) => ('orderId' in outcome ? outcome.orderId : ''));
  const orders = shop.orders(till.take);
  await orders.changeOrder(orderIds[0]!, { kind: 'pay', payType: 'card' }, BY);
  await orders.changeOrder(orderIds[1]!, { kind: 'cancel' }, BY);
  await closeAndArchive(id);
  await sync.stop();
  return { id, till, orders, orderIds: orderIds as [string, string, string, string] };
}

/** Adds orders that were taken long ago, so that there are several pages. */
async function addOrders(saleId: string, count: number): Promise<void> {
  const first = BigInt(firstIdAt(Date.UTC(2023, 0, 1)));
  await shop.db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer)
     SELECT ?::bigint + n, ?, 'early-' || n, 1, 'paid', true FROM generate_series(1, ?) AS n`,
    [String(first), saleId, count],
  );
}

/** Adds a queue with places that have ended, so that there are several pages. */
async function addQueue(saleId: string, places: number): Promise<void> {
  await shop.db.raw(
    "INSERT INTO queues (sale_id, last_number, seed, salt_key) VALUES (?, ?, sha256('seed'), sha256('salt'))",
    [saleId, places],
  );
  await shop.db.raw(
    `INSERT INTO places (sale_id, number, buyer_id, quantity, state)
     SELECT ?, n, 'waiter-' || n, 1, 'left' FROM generate_series(1, ?::integer) AS n`,
    [saleId, places],
  );
  await shop.db.raw(
    'INSERT INTO queue_presence (sale_id, period, page, present) VALUES (?, 1, 0, 0::bit(4096))',
    [saleId],
  );
}

const TABLES = [
  'sales WHERE id',
  'orders WHERE sale_id',
  'stock_movements WHERE sale_id',
  'stock_returns WHERE sale_id',
  'segment_cursors WHERE sale_id',
  'sale_losses WHERE sale_id',
  'lost_orders WHERE sale_id',
  'places WHERE sale_id',
  'queues WHERE sale_id',
  'queue_presence WHERE sale_id',
  'erasures WHERE sale_id',
];

/** Rows of all tables that name the sale. */
async function rowsOf(saleId: string): Promise<number> {
  let count = 0;
  for (const table of TABLES) {
    const [row] = await rows<{ n: number }>(shop.db, `SELECT count(*)::integer AS n FROM ${table} = ?`, [
      saleId,
    ]);
    count += row!.n;
  }
  return count;
}

const isDeleted = async (saleId: string) => (await shop.service.deletion(saleId)).state === 'deleted';

async function expectDeleted(saleId: string, orders: number): Promise<void> {
  await until(() => isDeleted(saleId), { what: 'the sale is deleted' });
  expect(await rowsOf(saleId)).toBe(0);
  expect(await shop.service.deletion(saleId)).toEqual({
    ...{ saleId, state: 'deleted', orders, done: orders, actor: BY.actor, reason: BY.reason },
    ...{ begunAt: expect.any(String), deletedAt: expect.any(String) },
  });
  await expect(shop.service.show(saleId)).rejects.toThrow(UnknownSale);
}

/** Works until it sends such a statement, or begins a transaction; then its process has died. */
function dyingAt(fatal: RegExp | 'transaction', times = 1): Database {
  let left = times;
  const die = () => {
    if (--left <= 0) throw new Error('the process has died');
  };
  const dying = <T extends object>(knex: T): T =>
    new Proxy(knex, {
      get(target, property) {
        const value = Reflect.get(target, property, target);
        if (typeof value !== 'function') return value;
        if (property === 'raw')
          return (sql: string, bindings: never) => {
            if (fatal !== 'transaction' && fatal.test(sql)) die();
            return value.call(target, sql, bindings);
          };
        if (property !== 'transaction') return value;
        return async (work: (trx: object) => unknown, ...rest: unknown[]) => {
          if (fatal === 'transaction') die();
          return value.call(target, (trx: object) => work(dying(trx)), ...rest);
        };
      },
    });
  return dying(shop.db);
}

const finish = (sale: DeletedSale, db = shop.db) => finishDeletion(db, new LocalLocks(), sale);

describe('a sale is deleted', () => {
  test('with its orders, if their number is named; who did it and why stays', async () => {
    const { id, orderIds } = await archivedSale();
    expect(await shop.service.delete(id, 4, BY)).toMatchObject({ saleId: id, orders: 4, actor: BY.actor });
    await expectDeleted(id, 4);
    expect(await rows(shop.db, 'SELECT 1 FROM order_changes')).toEqual([]);
    expect(await readOrder(shop.db, orderIds[0])).toBeUndefined();
    await expect(shop.service.delete(id, 4, BY)).rejects.toThrow(UnknownSale);
  });

  test('page by page, and other sales keep their orders', async () => {
    const { id } = await archivedSale();
    const other = await archivedSale();
    await addOrders(id, 2_500);
    for (const saleId of [id, other.id]) await addQueue(saleId, 1_500);
    const before = await rowsOf(other.id);
    await shop.service.delete(id, 2_504, BY);
    await expectDeleted(id, 2_504);
    expect(await rowsOf(other.id)).toBe(before);
    expect(await shop.service.verify(other.id)).toMatchObject({ ok: true });
  });

  test('without orders, by its id alone', async () => {
    const { id } = await shop.sell({ stock: 1 });
    await closeAndArchive(id);
    await shop.service.delete(id, 0, BY);
    await expectDeleted(id, 0);
  });

  test('in the memory of a process as well', async () => {
    await using memory = await Shop.open({ backend: 'memory' });
    await allowDeleting(memory.databaseUrl);
    const { id } = await memory.sell({ stock: 5, segments: 2 });
    await memory.service.change(id, { action: 'close' }, BY);
    await memory.service.change(id, { action: 'archive' }, BY);
    await memory.service.delete(id, 0, BY);
    await until(async () => (await memory.service.deletion(id)).state === 'deleted', { what: 'its end' });
    expect((await memory.service.create({ id, stock: 3 }, BY.actor)).generation).toBe(4);
  });
});

describe('deleting is refused, and nothing changes', () => {
  test.each([0, 3, 5])('if %i orders are named, and there are 4', async (named) => {
    const { id } = await archivedSale();
    const before = await shop.service.show(id);
    const refusal = shop.service.delete(id, named, BY);
    await expect(refusal).rejects.toThrow(OrdersDiffer);
    await expect(refusal).rejects.toMatchObject({ orders: 4 });
    expect(await shop.service.show(id)).toEqual(before);
    expect(await shop.service.deletion(id)).toEqual({ saleId: id, state: 'none' });
  });

  test.each(['open', 'closed'] as const)('if the sale is %s and not archived', async (state) => {
    const { id } = await shop.sell({ stock: 5 });
    if (state === 'closed') await shop.service.change(id, { action: 'close' }, BY);
    await expect(shop.service.delete(id, 0, BY)).rejects.toThrow(
      new WrongState(id, state, 'deleted: archive it first'),
    );
    expect(await shop.service.show(id)).toMatchObject({ state, generation: 1 });
  });

  test('if there is no such sale', async () => {
    await expect(shop.service.delete('nothing', 0, BY)).rejects.toThrow(UnknownSale);
    await expect(shop.service.delete('no sale\0', 0, BY)).rejects.toThrow(UnknownSale);
    expect(await shop.service.deletion('no sale\0')).toEqual({ saleId: 'no sale\0', state: 'none' });
  });

  test('if the role of the process may not delete', async () => {
    const { id } = await archivedSale();
    await query(asAdmin(shop.databaseUrl), `REVOKE DELETE ON orders, sales FROM ${APP_ROLE}`);
    const refusal = shop.service.delete(id, 4, BY);
    await expect(refusal).rejects.toMatchObject({ code: 'missing_rights' });
    await expect(refusal).rejects.toThrow(
      'lacks DELETE on sales, DELETE on orders: run `stockade migrate --grant-to <that user> --may-delete-sales`',
    );
    expect(await shop.service.show(id)).toMatchObject({ committedOrders: 3 });
  });

  test('while the backend holds the sale again, or the archive has not ended', async () => {
    const { id } = await shop.sell({ stock: 5 });
    const copied = await keys.redis.keys(`${shop.keyPrefix}*${id}*`);
    const copy = await keys.dump(copied);
    await closeAndArchive(id);
    await shop.db.raw("UPDATE stock_movements SET applied_at = NULL WHERE action = 'archive'");
    await expect(shop.service.delete(id, 0, BY)).rejects.toThrow('has not left the backend');
    await shop.db.raw('UPDATE stock_movements SET applied_at = now()');
    await keys.restore(copied, copy);
    await expect(shop.service.delete(id, 0, BY)).rejects.toThrow('has not left the backend');
    expect(await shop.service.show(id)).toMatchObject({ archivedAt: expect.any(String) });
  });
});

describe('while a sale is being deleted', () => {
  test('no reader finds it, nothing can be done with it, and no sale gets its id', async () => {
    const { id } = await archivedSale();
    await begin(id, 4);
    const { service } = shop;
    const refused = [
      () => service.show(id),
      () => service.ledger(id),
      () => service.verify(id),
      () => service.recover(id),
      () => service.recovery(id),
      () => service.rebalance(id, { dryRun: true }),
      () => service.change(id, { action: 'archive' }, BY),
      () => service.change(id, { action: 'resize', segments: 2 }, BY),
      () => service.change(id, { action: 'edit', title: 'Other' }, BY),
      () => service.change(id, { action: 'withdraw', units: 1 }, BY),
    ];
    for (const ask of refused) await expect(ask(), String(ask)).rejects.toThrow(UnknownSale);
    expect((await service.list({ archived: 'include' })).sales).toEqual([]);
    await expect(service.create({ id, stock: 5 }, BY.actor)).rejects.toThrow(SaleDeleting);
    expect(await rebuildSale(shop.db, shop.backend, id)).toBeUndefined();
    expect(await service.deletion(id)).toMatchObject({ state: 'deleting', orders: 4, done: 0 });
  });

  test('no reader finds its orders, and they do not change', async () => {
    const { id, orders, orderIds } = await archivedSale({ payWithinSeconds: 3_600 });
    const [paid, , unpaid, due] = orderIds;
    const all = () => rows(shop.db, 'SELECT * FROM orders ORDER BY order_id');
    await shop.db.raw('UPDATE orders SET expires_at = now() WHERE order_id = ?', [due]);
    await shop.db.raw('UPDATE orders SET refund_due_at = now() WHERE order_id = ?', [unpaid]);
    const before = await all();
    await begin(id, 4);
    for (const change of [
      { kind: 'pay', payType: 'card' },
      { kind: 'cancel' },
      { kind: 'redeem' },
      { kind: 'refund' },
    ] as const) {
      for (const orderId of orderIds) {
        expect(await orders.changeOrder(orderId, change, BY)).toEqual({ code: 'unknown_order' });
        expect(await orders.changeOrder(orderId, change, 'buyer-0')).toEqual({ code: 'unknown_order' });
      }
    }
    expect(await orders.editOrder(paid, { reference: 'x' }, BY)).toEqual({ code: 'unknown_order' });
    expect(await orders.showOrder(paid)).toEqual({ code: 'unknown_order' });
    expect(await readOrder(shop.db, paid)).toBeUndefined();
    await expect(orders.listOrders(id)).rejects.toThrow(UnknownSale);
    await expect(orders.refundsDue({ saleId: id })).rejects.toThrow(UnknownSale);
    expect((await orders.refundsDue()).orders).toEqual([]);
    expect((await readOwnOrders(shop.db, 'buyer-0', {})).orders).toEqual([]);
    const own = readOwnOrdersOfSale(shop.db, { saleId: id, buyerId: 'buyer-0' }, {}, async () => undefined);
    expect(await own).toBeUndefined();
    expect((await expireOrders(shop.db, 10)).orderIds).toEqual([]);
    expect(await askErasures(shop.db, { buyerId: 'buyer-0', running: true }, BY)).toEqual([]);
    await shop.db.raw(
      `INSERT INTO erasures (sale_id, buyer_id, pseudonym, while_selling, actor, reason)
       VALUES (?, 'buyer-0', 'erased-0', true, 'ann', '')`,
      [id],
    );
    expect(await readDueSales(shop.db)).toEqual([]);
    await eraseInArchived(shop.db, id);
    const taken = [{ orderId: '77', segment: 0, buyerId: 'anna', quantity: 1 }];
    expect(await nameLostOrders(shop.db, id, taken)).toEqual([]);
    expect(await all()).toEqual(before);
    const sale = (await readOpenDeletion(shop.db, id))!;
    expect(await finish(sale)).toBe(true);
    expect(await rows(shop.db, 'SELECT 1 FROM erasures')).toEqual([]);
  });

  test('the orders of other sales are found, and change', async () => {
    const { id, orders } = await archivedSale();
    const other = await shop.sell({ stock: 10 });
    const [kept] = (await insertOrders(shop.db, other.id, 1)) as [string];
    await begin(id, 4);
    expect(await orders.editOrder(kept, { reference: 'x' }, BY)).toMatchObject({ code: 'done' });
    expect(await orders.changeOrder(kept, { kind: 'pay', payType: 'card' }, BY)).toMatchObject({
      code: 'done',
    });
    expect(await readOrder(shop.db, kept)).toMatchObject({ status: 'paid', reference: 'x' });
  });

  test('a change of an order that has begun before is made, and the deletion waits for it', async () => {
    const { id, orders, orderIds } = await archivedSale();
    await using row = await shop.lockRow(id);
    const refund = orders.changeOrder(orderIds[0], { kind: 'refund' }, BY);
    await until(() => shop.isBlocked(), { what: 'the refund waits for the row' });
    const begun = begin(id, 4);
    await untilBlocked(shop.db, 2);
    await row.unlock();
    const sale = await begun;
    expect(await refund).toMatchObject({ code: 'done', order: { status: 'refunded' } });
    expect(await finish(sale)).toBe(true);
    await expectDeleted(id, 4);
  });

  test('who changed an order goes with it, also if the page of the deletion waits for that change', async () => {
    const { id, orderIds } = await archivedSale();
    const slow = await shop.db.transaction();
    const redeem = "SELECT verdict FROM stockade_change_order_by(?, 'redeem', NULL, 'ann', '')";
    expect(await rows(slow, redeem, [orderIds[0]])).toEqual([{ verdict: 'done' }]);
    const finished = finish(await begin(id, 4));
    await until(() => shop.isBlocked(), { what: 'the page waits for the change' });
    await slow.commit();
    expect(await finished).toBe(true);
    await expectDeleted(id, 4);
    expect(await rows(shop.db, 'SELECT change FROM order_changes')).toEqual([]);
  });

  test('an export breaks off, and does not look complete', async () => {
    const { id, orders } = await archivedSale();
    await addOrders(id, 2_500);
    const pieces = textOf(exportOrders((page) => orders.listOrders(id, page), {}, 'ndjson'));
    const first = await pieces.next();
    expect(first.value!.split('\n').length).toBeGreaterThan(1_000);
    await finish(await begin(id, 2_504));
    const rest = async () => {
      for await (const _ of pieces);
    };
    await expect(rest()).rejects.toThrow(UnknownSale);
  });

  test('an export does not go on with the orders of a new sale that has the id', async () => {
    const { id, orders, till } = await archivedSale();
    await addOrders(id, 2_500);
    const pieces = textOf(exportOrders((page) => orders.listOrders(id, page), {}, 'ndjson'));
    const first = await pieces.next();
    await finish(await begin(id, 2_504));
    await shop.sell({ id, stock: 20, segments: 3 });
    const sync = await shop.startSync();
    const bought = await till.buy(id, 'zoe');
    await sync.stop();
    const rest = async () => {
      for await (const _ of pieces);
    };
    await expect(rest()).rejects.toMatchObject({ code: 'invalid_request', faults: [{ field: 'after' }] });
    const { orderId: formerId } = JSON.parse(first.value!.slice(0, first.value!.indexOf('\n')));
    for (const order of ['oldest', 'newest'] as const)
      await expect(orders.listOrders(id, { after: formerId, order })).rejects.toThrow('a former sale');
    const { orderId } = bought as { readonly orderId: string };
    expect(await orders.listOrders(id, { after: orderId, order: 'oldest' })).toEqual({ orders: [] });
  });

  test.each([
    ['', async () => {}],
    [
      ', and another sale has the id by then',
      async (sale: DeletedSale) => {
        await finish(sale);
        await shop.sell({ id: sale.saleId, stock: 1 });
      },
    ],
  ])('its last page is refused if orders may be missing in it%s', async (_, goOn) => {
    const { id, orderIds } = await archivedSale();
    let sale: DeletedSale | undefined;
    // Between the look at the sale and the read of the page.
    const db = new Proxy(shop.db, {
      get(target, property) {
        if (property !== 'raw') return Reflect.get(target, property, target);
        return async (sql: string, bindings: never) => {
          if (sale === undefined && /FROM orders WHERE \(sale_id/.test(sql)) {
            sale = await begin(id, orderIds.length);
            await goOn(sale);
          }
          return target.raw(sql, bindings);
        };
      },
    });
    const { OrderService } = await import('../../../src/orders/order-service.ts');
    const orders = new OrderService({ db, backend: shop.backend, buy: noTill });
    await expect(orders.listOrders(id)).rejects.toThrow(UnknownSale);
    expect(sale).toBeDefined();
  });
});

test('each page of places begins after the last one', async () => {
  const { id } = await archivedSale();
  await addQueue(id, 2_500);
  const begins: unknown[] = [];
  shop.db.on('query', ({ sql, bindings }: { sql: string; bindings: readonly unknown[] }) => {
    if (sql.includes('DELETE FROM places') && sql.includes('LIMIT')) begins.push(bindings[1]);
  });
  expect(await finish(await begin(id, 4))).toBe(true);
  expect(begins).toEqual(['0', '1000', '2000', '2500']);
  await expectDeleted(id, 4);
});

test.each(['lost_orders', 'places'])('a deadlock of a page of %s is passed', async (table) => {
  const { id } = await archivedSale();
  await addQueue(id, 10);
  let deadlocks = 0;
  const db: Database = new Proxy(shop.db, {
    get(target, property) {
      if (property !== 'raw') return Reflect.get(target, property, target);
      return async (sql: string, bindings: never) => {
        if (sql.includes(`DELETE FROM ${table}`) && ++deadlocks === 1)
          throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
        return target.raw(sql, bindings);
      };
    },
  });
  expect(await finish(await begin(id, 4), db)).toBe(true);
  expect(deadlocks).toBeGreaterThan(1);
  await expectDeleted(id, 4);
});

describe('a process that dies while it deletes', () => {
  const PAGE = /WITH page AS/;
  const CRASHES = [
    ['before the first page', PAGE, 1, 0],
    ['after the first page', PAGE, 2, 1_000],
    ['after the last page', /DELETE FROM lost_orders/, 1, 2_504],
    ['after the first page of places', /DELETE FROM places/, 2, 2_504],
    // After three pages with orders and an empty one.
    ['before the last transaction', 'transaction', 5, 2_504],
  ] as const;

  async function diedAt(fatal: RegExp | 'transaction', times: number) {
    const { id } = await archivedSale();
    await addOrders(id, 2_500);
    await addQueue(id, 1_500);
    const sale = await begin(id, 2_504);
    await expect(finish(sale, dyingAt(fatal, times))).rejects.toThrow('the process has died');
    await expect(shop.service.show(id)).rejects.toThrow(UnknownSale);
    return id;
  }

  test.each(CRASHES)('%s: the finisher goes on', async (_, fatal, times, done) => {
    const id = await diedAt(fatal, times);
    expect(await shop.service.deletion(id)).toMatchObject({ state: 'deleting', orders: 2_504, done });
    const deleted: string[] = [];
    const events = { deleted: ({ saleId }: { saleId: string }) => void deleted.push(saleId), failed() {} };
    const finisher = new DeletionFinisher({ db: shop.db, locks: shop.locks, events, everyMs: 5 });
    finisher.start();
    await expectDeleted(id, 2_504);
    await until(() => deleted.length === 1, { what: 'the finisher has said so' });
    await finisher.stop();
    expect(deleted).toEqual([id]);
  });

  test('after a page: the next request goes on, whatever number it names', async () => {
    const id = await diedAt(PAGE, 2);
    expect(await shop.service.delete(id, 0, BY)).toMatchObject({ state: 'deleting', orders: 2_504 });
    await expectDeleted(id, 2_504);
  });

  test('a finisher that is stopped ends after a page, and another one goes on', async () => {
    const { id } = await archivedSale();
    await addOrders(id, 2_500);
    const sale = await begin(id, 2_504);
    const end = new AbortController();
    end.abort();
    expect(await finishDeletion(shop.db, shop.locks, sale, end.signal)).toBe(false);
    expect(await shop.service.deletion(id)).toMatchObject({ done: 0 });
    expect(await finish(sale)).toBe(true);
    await expectDeleted(id, 2_504);
  });
});

test('two processes delete the same sale at once: each order is counted once', async () => {
  const { id } = await archivedSale();
  await addOrders(id, 5_000);
  const requests = [shop.service.delete(id, 5_004, BY), shop.service.delete(id, 5_004, BY)];
  for (const deletion of await Promise.all(requests)) expect(deletion).toMatchObject({ orders: 5_004 });
  const sale = await readOpenDeletion(shop.db, id);
  if (sale) await Promise.all([finish(sale), finish(sale), finish(sale)]);
  await expectDeleted(id, 5_004);
  expect(await rows(shop.db, 'SELECT 1 FROM deleted_sales')).toHaveLength(1);
});

test('a process that comes too late leaves a new sale with the same id alone', async () => {
  const { id, till } = await archivedSale();
  const sale = await begin(id, 4);
  expect(await finish(sale)).toBe(true);
  await shop.sell({ id, stock: 20, segments: 3 });
  await addQueue(id, 2);
  const sync = await shop.startSync();
  await till.buyAll(id, buyers(3));
  await sync.stop();
  const lost = [{ orderId: '77', segment: 0, buyerId: 'anna', quantity: 1 }];
  await nameLostOrders(shop.db, id, lost);
  const before = await rowsOf(id);
  expect(await finish(sale)).toBe(true);
  expect(await rowsOf(id)).toBe(before);
  expect(await shop.service.deletion(id)).toMatchObject({ state: 'deleted', orders: 4, done: 4 });
});

describe('between the count of the orders and the lock on the sale', () => {
  /** Does this before each slice is counted, and before each transaction. @returns how many slices were counted as well */
  function meanwhile(work: (at: 'count' | 'lock', nth: number) => Promise<unknown> | undefined) {
    const seen = { count: 0, lock: 0 };
    const db: Database = new Proxy(shop.db, {
      get(target, property) {
        if (property === 'raw')
          return async (sql: string, bindings: never) => {
            if (/SELECT count.*FROM orders/s.test(sql)) await work('count', ++seen.count);
            return target.raw(sql, bindings);
          };
        if (property === 'transaction')
          return async (scope: never, options: never) => {
            await work('lock', ++seen.lock);
            return target.transaction(scope, options);
          };
        return Reflect.get(target, property, target);
      },
    });
    return { db, seen };
  }

  /** A sale of one buyer, archived, that a copy of Redis without this buyer has again. */
  async function restored() {
    const { id } = await shop.sell({ stock: 5, segments: 1 });
    const copied = await keys.redis.keys(`${shop.keyPrefix}*${id}*`);
    const copy = await keys.dump(copied);
    const sync = await shop.startSync();
    await (await shop.startEngine()).buy(id, 'anna');
    await closeAndArchive(id);
    await sync.stop();
    await keys.restore(copied, copy);
    return { id, till: await shop.startEngine() };
  }

  /** The record in the backend appears after the deletion has looked for it. */
  const unseen = () => ({ ...shop.backend, sales: { ...shop.backend.sales, read: async () => undefined } });

  test('an order changes: they are counted again', async () => {
    const { id, orders, orderIds } = await archivedSale();
    const { db, seen } = meanwhile((at, nth) =>
      at === 'lock' && nth === 1 ? orders.changeOrder(orderIds[0], { kind: 'refund' }, BY) : undefined,
    );
    const sale = await beginDeletion(db, shop.backend, id, 4, BY);
    // A slice with the orders and one after it, each time.
    expect(seen.count).toBe(4);
    expect(await finish(sale)).toBe(true);
  });

  test.each([
    ['sold to another buyer', 'ben', 'unpaid'],
    ['refused, because its buyer has one', 'anna', 'rejected'],
  ])('a salvage adds an order, %s: nothing is deleted', async (_, buyerId, status) => {
    const { id, till } = await restored();
    await till.buy(id, buyerId, { awaitCommit: false });
    const { before, stalled, goOn } = stallAt('log.readLog');
    let reads = 0;
    const second = (call: string) => (call === 'log.readLog' && ++reads < 2 ? undefined : before(call, []));
    let salvage: Promise<unknown> | undefined;
    const { db, seen } = meanwhile(async (at) => {
      if (at === 'count') return;
      salvage ??= rebuildSale(shop.db, intercept(shop.backend, second), id);
      await stalled;
    });
    const refusal = beginDeletion(db, unseen() as never, id, 1, BY);
    await expect(refusal).rejects.toMatchObject({ code: 'orders_differ', orders: 2 });
    expect(seen.count).toBe(4);
    const added = 'SELECT status FROM orders WHERE sale_id = ? ORDER BY committed_at DESC LIMIT 1';
    expect(await rows(shop.db, added, [id])).toEqual([{ status }]);
    goOn();
    await salvage;
    expect(await shop.service.show(id)).toMatchObject({ archivedAt: expect.any(String) });
  });

  test.each(['count', 'lock'] as const)('another process deletes them before the %s', async (when) => {
    const { id } = await archivedSale();
    const { db } = meanwhile(async (at, nth) => {
      if (at === when && nth === 1) await finish(await begin(id, 4));
    });
    await expect(beginDeletion(db, shop.backend, id, 4, BY)).rejects.toThrow(UnknownSale);
    await expectDeleted(id, 4);
  });

  test('orders change each time: nothing is deleted, and the operator is asked to repeat it', async () => {
    const { id, orders, orderIds } = await archivedSale();
    const [paid, , ...unpaid] = orderIds;
    const { db, seen } = meanwhile((at, nth) => {
      if (at === 'count') return undefined;
      if (nth === 1) return orders.changeOrder(paid, { kind: 'refund' }, BY);
      return orders.changeOrder(unpaid[nth - 2]!, { kind: 'cancel' }, BY);
    });
    const refusal = beginDeletion(db, shop.backend, id, 4, BY);
    await expect(refusal).rejects.toMatchObject({ code: 'unavailable' });
    await expect(refusal).rejects.toThrow('was changed each of the 3 times');
    expect(seen.count).toBe(6);
    expect(await shop.service.deletion(id)).toEqual({ saleId: id, state: 'none' });
    expect(await finish(await begin(id, 4))).toBe(true);
  });
});

test('a salvage that is under way when the deletion begins adds no order', async () => {
  const { id } = await shop.sell({ stock: 5, segments: 1 });
  const copied = await keys.redis.keys(`${shop.keyPrefix}*${id}*`);
  const copy = await keys.dump(copied);
  await closeAndArchive(id);
  await keys.restore(copied, copy);
  await (await shop.startEngine()).buyAll(id, buyers(2), { awaitCommit: false });
  const { stalled, goOn, before } = stallAt('log.readLog');
  const salvage = rebuildSale(shop.db, intercept(shop.backend, before), id).catch((error) => error);
  await stalled;
  const backend = { ...shop.backend, sales: { ...shop.backend.sales, read: async () => undefined } };
  const sale = await beginDeletion(shop.db, backend as never, id, 0, BY);
  goOn();
  expect(await salvage).toBeInstanceOf(StaleGeneration);
  expect(await rows(shop.db, 'SELECT 1 FROM orders')).toEqual([]);
  expect(await finish(sale)).toBe(true);
});

test('events of deleted orders that were not delivered are dropped, and do not stop others', async () => {
  const { id } = await archivedSale();
  const outbox = new Outbox(shop.db);
  const webhook = new WebhookQueue(shop.db);
  const { rows: waiting } = await outbox.read();
  await outbox.remove(waiting.slice(0, 1), { forWebhook: true });
  await shop.service.delete(id, 4, BY);
  await expectDeleted(id, 4);
  const sync = await shop.startSync();
  const other = await shop.sell({ stock: 1, segments: 1 });
  await (await shop.startEngine()).buy(other.id, 'anna');
  await sync.stop();
  const delivery = (await webhook.next())!;
  expect(delivery).toMatchObject({ pages: [expect.any(String)], events: [] });
  await webhook.remove(delivery.pages);
  const page = await outbox.read();
  expect(page.parts.reduce((sum, part) => sum + part.events, 0)).toBe(1);
  expect(await outbox.remove(page.rows, { forWebhook: false })).toBe(page.rows.length);
});
