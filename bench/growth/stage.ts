/**
 * The setup of one point: a database of its own and an empty Redis, sales with their initial buyers, an engine and a
 * sync.
 */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import pLimit from 'p-limit';
import { settings } from '../../src/config/settings.ts';
import { Board } from '../../src/engine/board/board.ts';
import type { Backend } from '../../src/engine/contract.ts';
import { OrderIds } from '../../src/engine/order-id.ts';
import { Engine } from '../../src/engine/purchase/engine.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { parseSale } from '../../src/engine/sale/sale-json.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { SaleDirectory } from '../../src/node/sale-directory.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { LocalLocks } from '../../src/postgres/sale-locks.ts';
import { rebuildSale } from '../../src/rebuild/rebuild.ts';
import { insertSale } from '../../src/sales/sale-rows.ts';
import { SaleService } from '../../src/shop/sale-service.ts';
import { BenchFailure } from '../support/failure.ts';
import { Meter } from '../support/meter.ts';
import type { StoreServers } from '../support/stores.ts';
import { Crowd } from './crowd.ts';
import type { Setting } from './dimensions.ts';
import { HeldSync } from './held-sync.ts';

const WORKER = 1;
const ORDER_ID_KEY_BYTES = 32;
/** Costs are measured, not latencies: a stall of the machine must not end the run. */
const TAKE_TIMEOUT_MS = 10_000;
const REQUEST_DEADLINE_MS = 30_000;
const LANE_CAPACITY = 10_000;
const MAX_LOG_ORDERS = 1_000_000;
const BOARD_SALES = 16_384;
const PARALLEL_SALES = 8;
/** Ids for the orders of initial buyers, as long as the product's. */
const HELD_ORDERS_FROM = '100000000000000000';

export interface Stage {
  readonly db: Database;
  readonly backend: Backend;
  readonly engine: Engine;
  readonly sync: HeldSync;
  readonly admin: Redis;
  readonly meter: Meter;
  readonly crowd: Crowd;
  readonly saleIds: readonly string[];
}

export async function setStage(stores: StoreServers, setting: Setting, teardown: Teardown): Promise<Stage> {
  const admin = new Redis(stores.redis.url);
  teardown.add(() => admin.disconnect());
  await emptyRedis(admin);
  const databaseUrl = await stores.postgres.createDatabase('bench');
  const db = openDatabase({ url: databaseUrl, maxConnections: Number(settings.pgPoolMax.fallback) });
  teardown.add(() => db.destroy());
  await migrate(db);
  // Autovacuum would run in some samples and not in others.
  await db.raw('ALTER TABLE orders SET (autovacuum_enabled = false)');
  const backend = await RedisBackend.open({
    url: stores.redis.url,
    keyPrefix: '',
    takeTimeoutMs: TAKE_TIMEOUT_MS,
    maxLogOrders: MAX_LOG_ORDERS,
  });
  teardown.add(() => backend.close());
  const saleIds = Array.from({ length: setting.sales }, (_, i) => `sale-${i + 1}`);
  await pLimit(PARALLEL_SALES).map(saleIds, (id, i) => createSale(db, backend, id, i, setting));
  const engine = await startEngine(backend, saleIds, teardown);
  const sync = await HeldSync.start(db, databaseUrl, backend, teardown);
  const meter = new Meter(admin, stores);
  return { db, backend, engine, sync, admin, meter, crowd: new Crowd(setting, saleIds), saleIds };
}

async function emptyRedis(admin: Redis): Promise<void> {
  await admin.flushall();
  // A rewrite of the AOF would begin in some samples and not in others.
  await admin.config('SET', 'auto-aof-rewrite-percentage', '0');
}

/**
 * Creates a sale whose initial buyers are in Postgres. Redis learns of them by a rebuild, as after a loss of its
 * data.
 */
async function createSale(
  db: Database,
  backend: Backend,
  id: string,
  number: number,
  { stock, buyers, segments }: Setting,
): Promise<void> {
  await insertSale(db, parseSale({ id, stock: stock + buyers, segments }), { actor: 'bench', reason: '' });
  // The first generation of a sale is built without looking for buyers.
  await rebuildSale(db, backend, id);
  await db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer)
     SELECT ?::bigint + n, ?, 'holder-' || lpad(n::text, 7, '0'), 1, true FROM generate_series(1, ?) AS n`,
    [String(BigInt(HELD_ORDERS_FROM) + BigInt(number) * BigInt(buyers)), id, buyers],
  );
  await db.raw('UPDATE sales SET stock = stock - ?, live_orders = ? WHERE id = ?', [buyers, buyers, id]);
  await rebuildSale(db, backend, id);
}

/** With a directory that polls the epochs of all sales, as in a node. */
async function startEngine(
  backend: Backend,
  saleIds: readonly string[],
  teardown: Teardown,
): Promise<Engine> {
  const board = new Board(BOARD_SALES);
  const directory = new SaleDirectory(backend, board, async () => true);
  await directory.start();
  teardown.add(() => directory.stop());
  const ids = new OrderIds({ key: randomBytes(ORDER_ID_KEY_BYTES), worker: WORKER });
  const engine = await Engine.start({
    backend,
    directory,
    board,
    worker: WORKER,
    nextOrderId: () => ids.next(),
    requestDeadlineMs: REQUEST_DEADLINE_MS,
    laneCapacity: LANE_CAPACITY,
  });
  teardown.add(() => engine.close());
  for (const id of saleIds) await engine.view(id);
  return engine;
}

/** @throws BenchFailure if a sale does not add up, or an order was refused */
export async function verifyAll({ db, backend, saleIds }: Stage): Promise<void> {
  const service = new SaleService(db, backend, new LocalLocks());
  await pLimit(PARALLEL_SALES).map(saleIds, async (saleId) => {
    const report = await service.verify(saleId);
    if (report.ok && report.rejectedOrders === 0) return;
    throw new BenchFailure(`verify of sale ${saleId} found a difference: ${JSON.stringify(report)}`);
  });
}
