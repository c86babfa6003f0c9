/** The run: on both backends, one sale grows from 8 to 32 segments and one shrinks from 32 to 4. */
import { randomBytes } from 'node:crypto';
import { note } from '../../src/cli/terminal/output.ts';
import { settings } from '../../src/config/settings.ts';
import { Board } from '../../src/engine/board/board.ts';
import type { Backend } from '../../src/engine/contract.ts';
import { MemoryBackend } from '../../src/engine/memory/memory-backend.ts';
import { OrderIds } from '../../src/engine/order-id.ts';
import { Engine } from '../../src/engine/purchase/engine.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { parseSale } from '../../src/engine/sale/sale-json.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { SaleDirectory } from '../../src/node/sale-directory.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { LocalLocks } from '../../src/postgres/sale-locks.ts';
import { rebuildSale } from '../../src/rebuild/rebuild.ts';
import { insertSale } from '../../src/sales/sale-rows.ts';
import { SaleService } from '../../src/shop/sale-service.ts';
import { Sync } from '../../src/sync/sync.ts';
import { BenchFailure } from '../support/failure.ts';
import { rounded } from '../support/figures.ts';
import { type StoreServers, startStoreServers } from '../support/stores.ts';
import { SyncWatch } from '../support/sync-watch.ts';
import { Crowd } from './crowd.ts';
import type { ResizeParameters } from './options.ts';

const RESIZES = [
  { from: 8, to: 32 },
  { from: 32, to: 4 },
] as const;
const SALE = 'sale';
/** Units in addition to those of the initial buyers: more than the bench can buy. */
const SPARE_UNITS = 10_000_000;
const REQUEST_DEADLINE_MS = 10_000;
const TAKE_TIMEOUT_MS = 5_000;
const MAX_LOG_ORDERS = 1_000_000;
const BY = { actor: 'bench', reason: '' };

export interface MeasuredResize {
  readonly backend: 'memory' | 'redis';
  readonly from: number;
  readonly to: number;
  readonly purchases: number;
  /** The longest purchase, and the 99.9th percentile. */
  readonly longestMs: number;
  readonly p999Ms: number;
  /** From the request for the resize to its answer. */
  readonly seconds: number;
}

/** @throws BenchFailure if a purchase was not committed, sync reported a fault, or a sale does not add up */
export async function runAll(parameters: ResizeParameters): Promise<MeasuredResize[]> {
  return withTeardown(async (teardown) => {
    note('Starting Redis and Postgres');
    const stores = await startStoreServers(teardown);
    const measured: MeasuredResize[] = [];
    for (const backend of ['memory', 'redis'] as const) {
      for (const { from, to } of RESIZES) {
        note(`${backend}: ${from} -> ${to} segments`);
        measured.push(await measure(stores, { backend, from, to }, parameters));
      }
    }
    return measured;
  });
}

async function measure(
  stores: StoreServers,
  { backend: name, from, to }: Pick<MeasuredResize, 'backend' | 'from' | 'to'>,
  { buyers, clients, purchases }: ResizeParameters,
): Promise<MeasuredResize> {
  return withTeardown(async (teardown) => {
    const url = await stores.postgres.createDatabase('bench');
    const db = openDatabase({ url, maxConnections: Number(settings.pgPoolMax.fallback) });
    teardown.add(() => db.destroy());
    await migrate(db);
    const backend = await openBackend(name, stores, `${from}-${to}:`);
    teardown.add(() => backend.close());
    await createSale(db, backend, from, buyers);
    const locks = new LocalLocks();
    const watch = new SyncWatch();
    const sync = new Sync({ db, backend, locks, events: watch.events, batchRows: 1_000 });
    await sync.start();
    teardown.add(() => sync.stop());
    await sync.ready;
    const service = new SaleService(db, backend, locks);
    const crowd = new Crowd(await startEngine(backend, teardown), SALE, clients);
    await crowd.more(purchases);
    const began = performance.now();
    await service.change(SALE, { action: 'resize', segments: to }, BY);
    const seconds = (performance.now() - began) / 1_000;
    await crowd.more(purchases);
    await crowd.stop();
    watch.assertSound();
    const report = await service.verify(SALE);
    if (!report.ok || report.rejectedOrders > 0) {
      throw new BenchFailure(`verify found a difference: ${JSON.stringify(report)}`);
    }
    const waits = crowd.waitsMs.sort((a, b) => a - b);
    return {
      backend: name,
      from,
      to,
      purchases: waits.length,
      longestMs: rounded(waits.at(-1)!, 0),
      p999Ms: rounded(waits[Math.floor(waits.length * 0.999)]!, 1),
      seconds: rounded(seconds, 1),
    };
  });
}

async function openBackend(
  name: MeasuredResize['backend'],
  { redis }: StoreServers,
  keyPrefix: string,
): Promise<Backend> {
  const maxLogOrders = MAX_LOG_ORDERS;
  if (name === 'memory') return new MemoryBackend({ maxLogOrders });
  return RedisBackend.open({ url: redis.url, keyPrefix, takeTimeoutMs: TAKE_TIMEOUT_MS, maxLogOrders });
}

async function createSale(db: Database, backend: Backend, segments: number, buyers: number): Promise<void> {
  await insertSale(db, parseSale({ id: SALE, stock: SPARE_UNITS + buyers, segments }), {
    actor: 'bench',
    reason: '',
  });
  await db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer)
     SELECT n, ?, 'holder-' || n, 1, true FROM generate_series(1, ?) AS n`,
    [SALE, buyers],
  );
  await db.raw('UPDATE sales SET stock = stock - ?, live_orders = ? WHERE id = ?', [buyers, buyers, SALE]);
  await rebuildSale(db, backend, SALE);
}

async function startEngine(backend: Backend, teardown: Teardown): Promise<Engine> {
  const board = new Board(1_024);
  const directory = new SaleDirectory(backend, board, async () => true);
  await directory.start();
  teardown.add(() => directory.stop());
  const ids = new OrderIds({ key: randomBytes(32), worker: 1 });
  const engine = await Engine.start({
    backend,
    directory,
    board,
    worker: 1,
    nextOrderId: () => ids.next(),
    requestDeadlineMs: REQUEST_DEADLINE_MS,
    laneCapacity: Number(settings.laneCapacity.fallback),
  });
  teardown.add(() => engine.close());
  return engine;
}

async function withTeardown<T>(work: (teardown: Teardown) => Promise<T>): Promise<T> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    return await work(teardown);
  } finally {
    await teardown.release();
  }
}
