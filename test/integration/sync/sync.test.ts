/** Sync carries every accepted order to Postgres once, although hints and replies get lost, locks are lost, and syncs die. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ExpectedSale, Watermark } from '../../../src/engine/contract.ts';
import { rows } from '../../../src/postgres/database.ts';
import { LocalLocks, type SaleLocks } from '../../../src/postgres/sale-locks.ts';
import { writeMovement } from '../../../src/sales/ledger.ts';
import { makeChange } from '../../../src/sales/sale-changes.ts';
import { BY } from '../../support/author.ts';
import { breaker, deathAt, intercept, stallAt } from '../../support/engine/intercept.ts';
import { RedisKeys } from '../../support/engine/redis-keys.ts';
import { redisAdminUrl, seed, until } from '../../support/fixtures.ts';
import { Load } from '../../support/http/load.ts';
import { allowDeleting, asAdmin } from '../../support/postgres/least-rights.ts';
import { random } from '../../support/random.ts';
import { PostgresServer } from '../../support/servers/postgres-server.ts';
import { buyers, Shop } from '../../support/shop/shop.ts';
import {
  expectKept,
  expectWithinLimit,
  ordersOf,
  promisesOf,
  query,
  unitsSold,
} from '../../support/shop/truth.ts';

let shop: Shop;

beforeEach(async () => {
  shop = await Shop.open();
});

afterEach(() => shop[Symbol.asyncDispose]());

const drained = (saleId: string) =>
  until(
    async () => {
      const report = await shop.service.verify(saleId);
      const inLogs = report.identities[1]!.right.find((term) => term.name === 'in logs beyond the cursors');
      return inLogs?.units === 0 && report;
    },
    { what: 'the logs are drained' },
  );

test('while somebody else has locked the row of one sale, orders of other sales are committed', async () => {
  const [held, other] = [
    await shop.sell({ stock: 100, segments: 1 }),
    await shop.sell({ stock: 100, segments: 1 }),
  ];
  await (await shop.startSync({ batchRows: 4_000 })).ready;
  const till = await shop.startEngine();
  const row = await shop.lockRow(held.id);
  const waiting = till.buy(held.id, 'x');
  await until(() => shop.isBlocked(), { what: 'the first sale’s batch waits for its row' });
  expect((await till.buy(other.id, 'y')).code).toBe('committed');
  await row.unlock();
  expect((await waiting).code).toBe('committed');
});

test.each([
  ['the backend has missed its state', "UPDATE sales SET state = 'paused' WHERE id = ?"],
  [
    'a change of it was left unfinished',
    "UPDATE stock_movements SET moved_at = now() - interval '1 minute' WHERE sale_id = ?",
  ],
])('nor are they held up by the locked row of a sale if %s', async (_, left) => {
  const [held, other] = [await shop.sell({ stock: 100 }), await shop.sell({ stock: 100 })];
  if (left.includes('movements')) await makeChange(shop.db, held.id, { action: 'pause' }, BY);
  await shop.db.raw(left, [held.id]);
  await using row = await shop.lockRow(held.id);
  const sync = await shop.startSync();
  await sync.ready;
  const till = await shop.startEngine();
  const seen = sync.seen.sweeps;
  await until(() => sync.seen.sweeps > seen + 1, { what: 'a sweep that looks at both' });
  expect((await till.buy(other.id, 'y')).code).toBe('committed');
  await row.unlock();
  await until(async () => (await shop.backend.sales.versions([held.id]))[0]!.state === 'paused', {
    what: 'the backend has the state of Postgres',
  });
});

test('nor by a withdrawal that was left unfinished, and is locked', async () => {
  const [held, other] = [await shop.sell({ stock: 100 }), await shop.sell({ stock: 100 })];
  const left = { saleId: held.id, action: 'withdraw', generation: 1, detail: { wanted: 1 } } as const;
  await shop.db.transaction((trx) => writeMovement(trx, left, BY));
  await shop.db.raw("UPDATE stock_movements SET moved_at = now() - interval '1 minute'");
  await using lock = await shop.lockMovements(held.id);
  const sync = await shop.startSync();
  await sync.ready;
  const till = await shop.startEngine();
  const seen = sync.seen.sweeps;
  await until(() => sync.seen.sweeps > seen + 1, { what: 'a sweep that looks at it' });
  expect((await till.buy(other.id, 'y')).code).toBe('committed');
  await lock.unlock();
  await until(async () => (await shop.changesOf(held.id)).every(({ applied }) => applied), {
    what: 'the withdrawal is undone',
  });
});

describe('buyers’ ids', () => {
  test('arrive in Postgres unchanged, with the keys of their orders', async () => {
    const rng = random(seed());
    const sale = await shop.sell({ stock: 10_000, segments: 4 });
    await shop.startSync();
    const till = await shop.startEngine();
    const hard = [
      '"',
      '\\',
      '{',
      '}',
      ',',
      "'",
      '?',
      '??',
      ':name',
      '$1',
      'NULL',
      'null',
      '{NULL}',
      '"NULL"',
      '\\"',
      '\\\\',
      '{"a","b"}',
    ];
    const ids = new Set([...hard, ...Array.from({ length: 500 }, () => rng.text(1, 128))]);
    const asked = [...ids].map((buyerId) => ({
      buyerId,
      key: rng.chance(0.5) ? rng.text(1, 128) : rng.pick(hard),
    }));
    const outcomes = await Promise.all(asked.map(({ buyerId, key }) => till.buy(sale.id, buyerId, { key })));
    const orders = await ordersOf(shop.databaseUrl, sale.id);
    expect(outcomes.map(({ code }) => code)).toEqual(asked.map(() => 'committed'));
    const found = outcomes.map((outcome) => {
      const { buyerId, key } = orders.get('orderId' in outcome ? outcome.orderId : '')!;
      return { buyerId, key };
    });
    expect(found).toEqual(asked);
  });
});

describe('orders without a hint', () => {
  test('are found by the reconciler', async () => {
    const sale = await shop.sell({ stock: 10, segments: 4 });
    const deaf = { ...intercept(shop.backend, () => {}), subscribe: async () => async () => {} };
    const sync = await shop.startSync({ backend: deaf });
    await sync.ready;
    const till = await shop.startEngine();
    const outcomes = await till.buyAll(sale.id, buyers(10));
    expect(outcomes.map(({ code }) => code)).toEqual(Array(10).fill('committed'));
  });
});

describe('a watermark that Redis has lost', () => {
  const SEGMENTS = 2;

  /**
   * As after a restart of Redis that had synced the orders to disk, but not yet that they are in Postgres.
   * @returns the sync, and the segments whose orders are not announced as applied
   */
  async function loseWatermarks(saleId: string, keys: RedisKeys) {
    const segments = Array.from({ length: SEGMENTS }, (_, i) => keys.of(saleId, i));
    const names = segments.flatMap(({ segment, log }) => [segment, log]);
    const dump = await keys.dump(names);
    const sync = await shop.startSync();
    await drained(saleId);
    const behind = async () => {
      const found = await Promise.all(
        segments.map(({ segment }) => keys.redis.hmget(segment, 'seq', 'committed')),
      );
      return found.filter(([seq, committed]) => seq !== committed);
    };
    await until(async () => (await behind()).length === 0, { what: 'the watermarks are there' });
    await until(() => sync.seen.sweeps > 1, { what: 'the takeover is over' });
    await keys.restore(names, dump);
    expect(await behind()).toHaveLength(SEGMENTS);
    return { sync, behind };
  }

  test.each([false, true])('is announced again; the sale is closed: %s', async (isClosed) => {
    await using keys = new RedisKeys(shop);
    const { id } = await shop.sell({ stock: 20, segments: SEGMENTS });
    const till = await shop.startEngine();
    await till.buyAll(id, buyers(10), { awaitCommit: false });
    if (isClosed) await shop.service.change(id, { action: 'close' }, BY);
    const { sync, behind } = await loseWatermarks(id, keys);
    await until(async () => (await behind()).length === 0, { what: 'the watermarks are there again' });
    expect(sync.seen).toMatchObject({ breaks: [], rebuilds: [] });
    if (isClosed) await shop.service.change(id, { action: 'archive' }, BY);
  });
});

test('a sale that was made again under a deleted id, and closed within one scan, is drained', async () => {
  await allowDeleting(shop.databaseUrl);
  const other = await shop.sell({ stock: 1 });
  const spec = { id: 'reused', stock: 5, segments: 1 };
  await shop.sell(spec);
  let isHolding = false;
  const scan = stallAt('sales.matches');
  // The scan compares open sales before it reads the closed ones.
  const backend = intercept(shop.backend, (call, [sales]) => {
    const isOfOpenSales = () => (sales as ExpectedSale[]).some(({ saleId }) => saleId === other.id);
    return isHolding && call === 'sales.matches' && isOfOpenSales() ? scan.before(call, []) : undefined;
  });
  const sync = await shop.startSync({ backend });
  await sync.ready;
  expect(await shop.isUnlocked(spec.id)).toBe(false);
  await shop.service.change(spec.id, { action: 'close' }, BY);
  await until(() => shop.isUnlocked(spec.id), { what: 'sync has finished the sale' });
  isHolding = true;
  await scan.stalled;
  try {
    await shop.service.change(spec.id, { action: 'archive' }, BY);
    await shop.service.delete(spec.id, 0, BY);
    await until(async () => (await shop.service.deletion(spec.id)).state === 'deleted', {
      what: 'the deletion',
    });
    await shop.sell(spec);
    const till = await shop.startEngine();
    expect((await till.buy(spec.id, 'anna', { awaitCommit: false })).code).toBe('accepted');
    await shop.service.change(spec.id, { action: 'close' }, BY);
  } finally {
    scan.goOn();
  }
  expect(await drained(spec.id)).toMatchObject({ ok: true, committedOrders: 1 });
  expect(sync.seen).toMatchObject({ breaks: [], rebuilds: [], crashes: [] });
});

describe('a scan of the reconciler', () => {
  test('delays no order, and its findings count when it ends', async () => {
    const sale = await shop.sell({ stock: 10, segments: 4 });
    let [hold, letGo] = [Promise.resolve(), () => {}];
    let held = false;
    const backend = intercept(shop.backend, async (call) => {
      if (call !== 'sales.matches') return;
      held = true;
      await hold;
    });
    const sync = await shop.startSync({ backend });
    await sync.ready;
    hold = new Promise((resolve) => {
      letGo = resolve;
    });
    held = false;
    await until(() => held, { what: 'a sweep that looks at the sale' });
    const seen = sync.seen.sweeps;
    const till = await shop.startEngine();
    expect((await till.buy(sale.id, 'anna')).code).toBe('committed');
    expect(sync.seen.sweeps).toBe(seen);
    letGo();
    await until(() => sync.seen.sweeps > seen, { what: 'the end of the sweep' });
    expect(sync.seen).toMatchObject({ breaks: [], rebuilds: [], lastBacklog: 0 });
  });

  test('that overtakes a read of the loop does not report a loss', async () => {
    const sale = await shop.sell({ stock: 10, segments: 1 });
    const till = await shop.startEngine();
    const buyLater = () => till.buy(sale.id, 'later', { awaitCommit: false });
    let step: 'before' | 'armed' | 'looking' | 'read' = 'before';
    let versions = 0;
    const backend = intercept(
      shop.backend,
      async (call) => {
        if (call === 'sales.versions' && step === 'read') versions++;
        if (call !== 'sales.matches' || step !== 'armed') return;
        step = 'looking';
        await until(() => step === 'read', { what: 'the loop has read the log' });
        expect((await buyLater()).code).toBe('accepted');
      },
      async (call, [, most]) => {
        if (call !== 'log.readLog' || most === 0 || step !== 'looking') return;
        step = 'read';
        // The second version is that of closed sales: by then it is known what the logs of the others hold.
        await until(() => versions >= 2, { what: 'the sweep has seen more than the loop' });
      },
    );
    const sync = await shop.startSync({ backend });
    await sync.ready;
    expect((await till.buy(sale.id, 'first')).code).toBe('committed');
    step = 'armed';
    await until(() => step === 'looking', { what: 'a sweep that looks at the sale' });
    expect((await till.buy(sale.id, 'anna')).code).toBe('committed');
    expect(await drained(sale.id)).toMatchObject({ ok: true, committedOrders: 3 });
    expect(sync.seen).toMatchObject({ breaks: [], rebuilds: [], crashes: [] });
  });

  test('reads no log of an unchanged sale', async () => {
    const [sold, idle] = [await shop.sell({ stock: 10 }), await shop.sell({ stock: 10 })];
    const read: string[] = [];
    const backend = intercept(shop.backend, (call, [positions]) => {
      if (call === 'log.readLog') read.push(...(positions as { saleId: string }[]).map((at) => at.saleId));
    });
    const sync = await shop.startSync({ backend });
    const till = await shop.startEngine();
    expect((await till.buy(sold.id, 'anna')).code).toBe('committed');
    const seen = sync.seen.sweeps;
    await until(() => sync.seen.sweeps > seen + 1, { what: 'a sweep that has seen the order' });
    read.length = 0;
    await until(() => sync.seen.sweeps > seen + 3, { what: 'two more sweeps' });
    expect(read).toEqual([]);
    await using keys = new RedisKeys(shop);
    expect(await keys.redis.del(keys.of(idle.id, 0).segment)).toBe(1);
    await until(() => sync.seen.rebuilds.some(({ saleId }) => saleId === idle.id), {
      what: 'the sale that has lost a segment is built again',
    });
  });
});

describe('under load, while no purchase waits for its commit', () => {
  async function aRush() {
    const load = { isHigh: true };
    const sale = await shop.sell({ stock: 100, segments: 4 });
    const backpressure = { isLoadHigh: () => load.isHigh, maxMs: 600_000 };
    const sync = await shop.startSync({ backpressure });
    const till = await shop.startEngine();
    const outcomes = await till.buyAll(sale.id, buyers(40), { awaitCommit: false });
    expect(new Set(outcomes.map(({ code }) => code))).toEqual(new Set(['accepted']));
    // The reconciler sees them and leaves them in the logs.
    await until(() => sync.seen.lastBacklog === 40, { what: 'a sweep that has seen the orders' });
    expect(await ordersOf(shop.databaseUrl, sale.id)).toEqual(new Map());
    return { load, sale, till };
  }

  test('sync leaves the orders in the logs, until a buyer waits', async () => {
    const { sale, till } = await aRush();
    expect(await till.buy(sale.id, 'zoe')).toMatchObject({ code: 'committed' });
    await drained(sale.id);
    expect((await ordersOf(shop.databaseUrl, sale.id)).size).toBe(41);
  });

  test('sync leaves the orders in the logs, until the load has fallen', async () => {
    const { load, sale } = await aRush();
    load.isHigh = false;
    await drained(sale.id);
    expect((await ordersOf(shop.databaseUrl, sale.id)).size).toBe(40);
  });
});

describe('a sync that dies between its commit and its trim', () => {
  test('leaves no work to be done twice: the next announces the watermarks and trims the logs', async () => {
    const sale = await shop.sell({ stock: 100, segments: 4 });
    const { before, death } = deathAt(
      (call, [watermarks]) => call === 'log.advance' && (watermarks as Watermark[]).length > 0,
    );
    await shop.startSync({ backend: intercept(shop.backend, before), hangs: true });
    const till = await shop.startEngine();
    const waiting = till.buyAll(sale.id, buyers(40));
    await death;
    await until(async () => (await ordersOf(shop.databaseUrl, sale.id)).size > 0, { what: 'the commit' });
    const committed = await rows(shop.db, 'SELECT sum(position) > 0 AS moved FROM segment_cursors');
    expect(committed).toEqual([{ moved: true }]);
    expect((await logs(sale.id)).some((log) => log.committed === 0 && log.seq > 0)).toBe(true);

    await shop.startSync({ locks: new LocalLocks() });
    const outcomes = await waiting;
    expect(outcomes.map(({ code }) => code)).toEqual(Array(40).fill('committed'));
    const orders = await ordersOf(shop.databaseUrl, sale.id);
    expectKept(promisesOf(outcomes, buyers(40)), orders);
    expect(unitsSold(orders)).toBe(40);
    expect(await drained(sale.id)).toMatchObject({ ok: true, committedOrders: 40, rejectedOrders: 0 });
    await until(async () => (await logs(sale.id)).every((log) => log.committed === log.seq), {
      what: 'the logs are trimmed',
    });
    for (const log of await logs(sale.id)) expect(log.entries).toBe(0);
  });

  async function logs(saleId: string) {
    const { segments, generation } = await shop.service.show(saleId);
    const snapshot = await shop.backend.sales.snapshot(saleId, segments, generation);
    const positions = snapshot.map(({ segment }) => ({ saleId, segment, generation, seq: 0, tail: '' }));
    const reads = await shop.backend.log.readLog(positions, 1_000);
    return snapshot.map(({ counters }, i) => ({ ...counters!, entries: reads[i]!.entries.length }));
  }
});

describe('watermarks that the backend did not take', () => {
  test('are announced again, before newer ones', async () => {
    const sale = await shop.sell({ stock: 100, segments: 1 });
    const told: Watermark[] = [];
    let failures = 2;
    const backend = intercept(shop.backend, (call, [watermarks]) => {
      if (call !== 'log.advance' || (watermarks as Watermark[]).length === 0) return;
      if (failures-- > 0) throw new Error('the connection is gone');
      told.push(...(watermarks as Watermark[]));
    });
    const sync = await shop.startSync({ backend });
    await sync.ready;
    const till = await shop.startEngine();
    for (const buyer of buyers(5)) expect((await till.buy(sale.id, buyer)).code).toBe('committed');
    expect(told.map(({ seq }) => seq)).toEqual([...told.map(({ seq }) => seq)].sort((a, b) => a - b));
    expect(told.at(-1)!.seq).toBe(5);
  });

  test('keep their rejections: no newer watermark confirms a rejected order', async () => {
    const sale = await shop.sell({ stock: 2, segments: 1 });
    await shop.db.raw('UPDATE sales SET stock = 1');
    const { before, hits, repair } = breaker('log.advance');
    const sync = await shop.startSync({ backend: intercept(shop.backend, before) });
    await sync.ready;
    const till = await shop.startEngine();
    const untold = hits.length;
    const first = till.buyAll(sale.id, ['anna', 'ben']);
    await until(() => hits.length > untold, { what: 'the watermark was not taken' });
    expect(sync.seen.rejections).toHaveLength(1);
    repair();
    await shop.db.raw('UPDATE sales SET stock = 1');
    await redisIncrement(sale.id, 1);
    const late = till.buy(sale.id, 'cleo');
    expect((await first).map(({ code }) => code).sort()).toEqual(['committed', 'sold_out']);
    expect((await late).code).toBe('committed');
  });
});

async function redisIncrement(saleId: string, units: number): Promise<void> {
  const { Redis } = await import('ioredis');
  const redis = new Redis(redisAdminUrl());
  await redis.hincrby(`${shop.keyPrefix}{${saleId}:0}:segment`, 'left', units);
  await redis.quit();
}

describe('two syncs on the same sale, without a lock between them', () => {
  test('apply every order once, under load', { timeout: 300_000 }, async () => {
    const sale = await shop.sell({ stock: 1_000_000, segments: 4, perBuyerLimit: 2 });
    const syncs = [
      await shop.startSync({ locks: new LocalLocks(), batchRows: 100 }),
      await shop.startSync({
        locks: new LocalLocks(),
        batchRows: 100,
        backend: await shop.anotherBackend(),
      }),
    ];
    const till = await shop.startEngine();
    await using running = new Load(till, sale.id, { quantity: 2 });
    // Which of them is first is random each time.
    await until(() => running.promised.length > 5_000 && syncs.every(({ seen }) => seen.orders > 0), {
      what: 'many orders, and each sync has carried some',
      timeoutMs: 110_000,
    });
    const promised = await running.stop();
    expect(await drained(sale.id)).toMatchObject({ ok: true, rejectedOrders: 0 });
    const orders = await ordersOf(shop.databaseUrl, sale.id);
    expectKept(promised, orders);
    expect(orders.size).toBe(promised.length);
    expectWithinLimit(orders, 2);
    expect([...running.codes.keys()]).toEqual(['committed']);
    // A sync counts a batch behind its commit.
    await until(() => syncs.reduce((sum, { seen }) => sum + seen.orders, 0) >= promised.length, {
      what: 'all are counted',
    });
    expect(syncs.reduce((sum, { seen }) => sum + seen.orders, 0)).toBe(promised.length);
    expect(syncs.flatMap(({ seen }) => [...seen.crashes, ...seen.breaks, ...seen.rebuilds])).toEqual([]);
  });
});

describe('a sync beside another one that works on all sales', () => {
  test('tries their locks in one statement, and takes the sales over when the other one stops', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 20; i++) ids.push((await shop.sell({ stock: 10, segments: 1 })).id);
    const first = await shop.startSync();
    await first.ready;
    const tried: (readonly string[])[] = [];
    const locks: SaleLocks = {
      tryLock: (id) => shop.locks.tryLock(id),
      tryLocks: (some) => {
        tried.push(some);
        return shop.locks.tryLocks(some);
      },
      holds: (id) => shop.locks.holds(id),
      unlock: (id) => shop.locks.unlock(id),
      close: async () => {},
    };
    const second = await shop.startSync({ locks });
    await until(() => second.seen.sweeps > 2, { what: 'three sweeps' });
    expect(tried.length).toBeGreaterThan(1);
    // It gets half of them by a hand-over, and tries the other half from then on.
    for (const some of tried) expect(some.length).toBeGreaterThanOrEqual(ids.length / 2);
    await first.stop();
    const till = await shop.startEngine();
    for (const id of ids) expect((await till.buy(id, 'anna')).code).toBe('committed');
  });
});

describe('a sync whose loop fails', () => {
  test('restarts after growing pauses, which hints do not shorten', async () => {
    const sale = await shop.sell({ stock: 1_000, segments: 2 });
    const sync = await shop.startSync();
    await sync.ready;
    const till = await shop.startEngine({ requestDeadlineMs: 100 });
    await query(asAdmin(shop.databaseUrl), 'ALTER TABLE sales RENAME TO sales_away');
    await using running = new Load(till, sale.id, { lines: 4 });
    await until(() => sync.seen.crashes.length >= 4, { what: 'four failures' });
    const { crashes } = sync.seen;
    for (let i = 1; i < crashes.length; i++) {
      expect(crashes[i]!.atMs - crashes[i - 1]!.atMs).toBeGreaterThanOrEqual(crashes[i - 1]!.retryMs);
    }
    expect(crashes.slice(0, 4).map(({ retryMs }) => retryMs)).toEqual([100, 200, 400, 800]);
    await query(asAdmin(shop.databaseUrl), 'ALTER TABLE sales_away RENAME TO sales');
    await until(async () => running.codes.has('committed'), { what: 'orders are committed again' });
    const promised = await running.stop();
    expect(await drained(sale.id)).toMatchObject({ ok: true });
    expectKept(promised, await ordersOf(shop.databaseUrl, sale.id));
  });

  test('waits for a Postgres that can’t be reached at its start', async () => {
    await using postgres = await PostgresServer.start();
    await using own = await Shop.open({ database: await postgres.createDatabase() });
    const sale = await own.sell({ stock: 10 });
    const till = await own.startEngine();
    await postgres.stop();
    const sync = await own.startSync();
    const bought = till.buy(sale.id, 'anna');
    await until(() => sync.seen.crashes.length >= 3, { what: 'three failures' });
    expect(sync.seen.crashes.slice(0, 3).map(({ retryMs }) => retryMs)).toEqual([100, 200, 400]);
    await postgres.restart();
    await sync.ready;
    expect((await bought).code).toBe('committed');
  });

  test('does not keep the locks of sales whose cursors it could not read', async () => {
    const sale = await shop.sell({ stock: 10, segments: 2 });
    const sync = await shop.startSync();
    await sync.ready;
    await query(asAdmin(shop.databaseUrl), 'ALTER TABLE segment_cursors RENAME TO cursors_away');
    const till = await shop.startEngine();
    const bought = till.buy(sale.id, 'anna');
    await until(() => sync.seen.crashes.length >= 2, { what: 'two failures' });
    await query(asAdmin(shop.databaseUrl), 'ALTER TABLE cursors_away RENAME TO segment_cursors');
    expect((await bought).code).toBe('committed');
  });

  test('can be stopped at once during its pause', async () => {
    await shop.sell({ stock: 10 });
    await query(asAdmin(shop.databaseUrl), 'ALTER TABLE sales RENAME TO sales_away');
    /** Whether a sync stops before its pause ends. A busy machine may delay it. A sync that waits for the end never does. */
    const stopsWithinItsPause = async () => {
      const sync = await shop.startSync();
      const longPause = () => sync.seen.crashes.find(({ retryMs }) => retryMs >= 800);
      const { atMs, retryMs } = (await until(longPause, { what: 'a long pause' }))!;
      await sync.stop();
      return performance.now() < atMs + retryMs;
    };
    await until(stopsWithinItsPause, { what: 'it stops within its pause', timeoutMs: 60_000 });
  });
});

describe('a change of state between a scan and its repair', () => {
  test('is not undone by the reconciler', async () => {
    const sale = await shop.sell({ stock: 10 });
    let pauseNow = false;
    const states: unknown[] = [];
    const backend = intercept(shop.backend, async (call, [record]) => {
      if (call === 'sales.setState') states.push((record as { state: string }).state);
      if (call !== 'sales.matches' || !pauseNow) return;
      pauseNow = false;
      await shop.service.change(sale.id, { action: 'pause' }, BY);
    });
    const sync = await shop.startSync({ backend });
    await sync.ready;
    pauseNow = true;
    await until(() => !pauseNow, { what: 'a sweep' });
    const seen = sync.seen.sweeps;
    await until(() => sync.seen.sweeps > seen + 1, { what: 'another sweep' });
    expect(states).not.toContain('open');
    const [version] = await shop.backend.sales.versions([sale.id]);
    expect(version!.state).toBe('paused');
  });

  test('that the backend has missed is applied, and so is a change of rules', async () => {
    const sale = await shop.sell({ stock: 10 });
    const sync = await shop.startSync();
    await sync.ready;
    const version = async () => (await shop.backend.sales.versions([sale.id]))[0]!;
    await shop.db.raw('UPDATE sales SET require_token = true');
    await until(async () => (await version()).rules!.includes('token'), {
      what: 'the backend has the rules of Postgres',
    });
    await shop.db.raw("UPDATE sales SET state = 'paused'");
    await until(async () => (await version()).state === 'paused', {
      what: 'the backend has the state of Postgres',
    });
  });
});

describe('closed sales', () => {
  /** Notes which sales a lock is asked for, or a log is read of. */
  class WatchedLocks extends LocalLocks {
    readonly asked: string[] = [];

    override tryLocks(saleIds: readonly string[]): Promise<ReadonlySet<string>> {
      this.asked.push(...saleIds);
      return super.tryLocks(saleIds);
    }
  }

  test('that are drained cost no locks and no log reads, and their segments are compared', async () => {
    const [closed, open] = [await shop.sell({ stock: 10 }), await shop.sell({ stock: 10 })];
    const till = await shop.startEngine();
    const locks = new WatchedLocks();
    const [read, compared]: [string[], string[]] = [[], []];
    const backend = intercept(shop.backend, (call, [argument]) => {
      const ids = () => (argument as { saleId: string }[]).map(({ saleId }) => saleId);
      if (call === 'log.readLog') read.push(...ids());
      if (call === 'sales.matches') compared.push(...ids());
    });
    const sync = await shop.startSync({ backend, locks });
    expect((await till.buy(closed.id, 'anna')).code).toBe('committed');
    await shop.service.change(closed.id, { action: 'close' }, BY);
    await until(() => shop.isUnlocked(closed.id, locks), { what: 'the closed sale is released' });
    const seen = sync.seen.sweeps;
    await until(() => sync.seen.sweeps > seen, { what: 'the sweep under way is over' });
    for (const list of [locks.asked, read, compared]) list.length = 0;
    await until(() => sync.seen.sweeps > seen + 2, { what: 'two more sweeps' });
    expect(locks.asked).toEqual([]);
    expect(new Set(read)).toEqual(new Set());
    expect(new Set(compared)).toEqual(new Set([open.id, closed.id]));
  });

  test('whose logs hold orders when a sync starts are released only when these are in Postgres', async () => {
    const { id } = await shop.sell({ stock: 10, segments: 2 });
    const till = await shop.startEngine();
    const outcomes = await till.buyAll(id, buyers(6), { awaitCommit: false });
    expect(new Set(outcomes.map(({ code }) => code))).toEqual(new Set(['accepted']));
    await shop.service.change(id, { action: 'close' }, BY);
    const locks = new WatchedLocks();
    const { seen } = await shop.startSync({ locks });
    await until(() => seen.sweeps > 1, { what: 'two sweeps' });
    await until(() => shop.isUnlocked(id, locks), { what: 'the closed sale is released' });
    expect(seen.orders).toBe(6);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, differences: [], committedOrders: 6 });
  });

  test('with a pending resize are resized before they are released', async () => {
    const { id } = await shop.sell({ stock: 10, segments: 2 });
    // The process that requested it dies, and the sale is closed before any sync has begun the resize.
    await makeChange(shop.db, id, { action: 'resize', segments: 3 }, BY);
    await shop.service.change(id, { action: 'close' }, BY);
    const locks = new WatchedLocks();
    const { seen } = await shop.startSync({ locks });
    await until(async () => (await shop.service.show(id)).segments === 3, { what: 'it has three segments' });
    await until(() => shop.isUnlocked(id, locks), { what: 'the closed sale is released' });
    expect(seen.failures).toEqual([]);
    expect((await shop.service.ledger(id)).ledger).toMatchObject([
      { action: 'create' },
      { action: 'resize', applied: true },
      { action: 'close', applied: true },
    ]);
    expect(await shop.service.verify(id)).toMatchObject({ ok: true, differences: [] });
  });
});
