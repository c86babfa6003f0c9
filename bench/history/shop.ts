/** A shop of the bench: a database, its part of Redis, and the sales that sell in it. */
import { Redis } from 'ioredis';
import { settings } from '../../src/config/settings.ts';
import type { Backend } from '../../src/engine/contract.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import type { Teardown } from '../../src/lib/teardown.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { LocalLocks } from '../../src/postgres/sale-locks.ts';
import { rebuildSale } from '../../src/rebuild/rebuild.ts';
import { SaleService } from '../../src/shop/sale-service.ts';
import { Meter } from '../support/meter.ts';
import type { StoreServers } from '../support/stores.ts';
import type { HistoryParameters } from './options.ts';

const TAKE_TIMEOUT_MS = 10_000;
const MAX_LOG_ORDERS = 1_000_000;
const SEGMENTS = 8;
const UNITS_LEFT = 1_000_000;
/** Order ids of the selling sales: behind those of the history. */
const SELLING_FROM = 1n << 60n;

export interface BenchShop {
  readonly name: 'history' | 'empty';
  readonly db: Database;
  readonly databaseUrl: string;
  readonly keyPrefix: string;
  readonly backend: Backend;
  readonly service: SaleService;
  readonly meter: Meter;
  /** Ids of the sales that sell. */
  readonly selling: readonly string[];
  /** Id of their first order. */
  readonly firstOrder: bigint;
}

export async function openShop(
  name: BenchShop['name'],
  stores: StoreServers,
  teardown: Teardown,
): Promise<Omit<BenchShop, 'selling' | 'firstOrder'>> {
  const databaseUrl = await stores.postgres.createDatabase(name);
  const db = openDatabase({
    url: databaseUrl,
    maxConnections: Number(settings.pgPoolMax.fallback),
    queryTimeoutMs: 0,
  });
  teardown.add(() => db.destroy());
  await migrate(db);
  // Autovacuum would start in some rounds and not in others.
  await db.raw('ALTER TABLE orders SET (autovacuum_enabled = false)');
  const keyPrefix = `bench-${name}:`;
  const backend = await RedisBackend.open({
    url: stores.redis.url,
    keyPrefix,
    takeTimeoutMs: TAKE_TIMEOUT_MS,
    maxLogOrders: MAX_LOG_ORDERS,
  });
  teardown.add(() => backend.close());
  const admin = new Redis(stores.redis.url);
  teardown.add(async () => admin.disconnect());
  const service = new SaleService(db, backend, new LocalLocks());
  return { name, db, databaseUrl, keyPrefix, backend, service, meter: new Meter(admin, stores) };
}

/** Sales that have sold already, so that operations have something to read. */
export async function startSelling(
  shop: Omit<BenchShop, 'selling' | 'firstOrder'>,
  { selling, held }: HistoryParameters,
): Promise<BenchShop> {
  const { db, backend, service } = shop;
  const ids = Array.from({ length: selling }, (_, i) => `selling-${i + 1}`);
  for (const [number, id] of ids.entries()) {
    await service.create({ id, stock: held + UNITS_LEFT, segments: SEGMENTS }, 'bench');
    await db.raw(
      `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer, status)
       SELECT ?::bigint + n, ?, 'holder-' || lpad(n::text, 8, '0'), 1, true, CASE WHEN n % 2 = 0 THEN 'unpaid' ELSE 'paid' END FROM generate_series(1, ?::integer) AS n`,
      [String(SELLING_FROM + BigInt(number * held)), id, held],
    );
    await db.raw('UPDATE sales SET stock = stock - ?::integer, live_orders = ? WHERE id = ?', [
      held,
      held,
      id,
    ]);
    await rebuildSale(db, backend, id);
  }
  await db.raw('VACUUM ANALYZE orders');
  await db.raw('ANALYZE');
  return { ...shop, selling: ids, firstOrder: SELLING_FROM + 1n };
}
