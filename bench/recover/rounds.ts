/**
 * The run: one sale with many orders in Postgres. Each round empties Redis, and measures the time until the sale
 * sells again.
 */
import { Redis } from 'ioredis';
import { note } from '../../src/cli/terminal/output.ts';
import { settings } from '../../src/config/settings.ts';
import type { Backend } from '../../src/engine/contract.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { LocalLocks } from '../../src/postgres/sale-locks.ts';
import { holdingPages } from '../../src/rebuild/load.ts';
import { rebuildSale } from '../../src/rebuild/rebuild.ts';
import { readSale } from '../../src/sales/sale-rows.ts';
import { SaleService } from '../../src/shop/sale-service.ts';
import { BenchFailure } from '../support/failure.ts';
import { type StoreServers, startStoreServers } from '../support/stores.ts';
import type { RecoverParameters } from './options.ts';

/** Milliseconds. */
export interface Round {
  readonly read: number;
  readonly rebuild: number;
  /** The time of a second rebuild, for the half that an interrupted first one had left. */
  readonly continued: number;
}

interface Stage {
  readonly db: Database;
  readonly backend: Backend;
  readonly redis: Redis;
  readonly parameters: RecoverParameters;
}

const SALE_ID = 'bench';
const UNITS_LEFT = 1_000;
const TAKE_TIMEOUT_MS = 10_000;

/** @throws BenchFailure if a buyer is missing after a rebuild, or if the sale does not add up */
export async function runRounds(parameters: RecoverParameters): Promise<Round[]> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    note('Starting Redis and Postgres, and selling');
    const stage = await setStage(await startStoreServers(teardown), parameters, teardown);
    const rounds: Round[] = [];
    for (let number = 1; number <= parameters.rounds; number++) {
      const round = await runRound(stage);
      const [read, rebuild] = [round.read, round.rebuild].map((ms) => (ms / 1_000).toFixed(2));
      note(`round ${number} of ${parameters.rounds}: read ${read} s, rebuild ${rebuild} s`);
      rounds.push(round);
    }
    return rounds;
  } finally {
    await teardown.release();
  }
}

async function setStage(
  stores: StoreServers,
  parameters: RecoverParameters,
  teardown: Teardown,
): Promise<Stage> {
  const url = await stores.postgres.createDatabase('bench');
  const db = openDatabase({ url, maxConnections: Number(settings.pgPoolMax.fallback) });
  teardown.add(() => db.destroy());
  await migrate(db);
  const backend = await RedisBackend.open({
    url: stores.redis.url,
    keyPrefix: '',
    takeTimeoutMs: TAKE_TIMEOUT_MS,
    maxLogOrders: parameters.orders,
  });
  teardown.add(() => backend.close());
  const redis = new Redis(stores.redis.url);
  teardown.add(async () => redis.disconnect());
  const { orders, segments } = parameters;
  const sale = { id: SALE_ID, stock: orders + UNITS_LEFT, segments };
  await new SaleService(db, backend, new LocalLocks()).create(sale, 'bench');
  // Ids and buyers in different orders, as in a sale.
  await db.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, one_per_buyer)
     SELECT n, ?, md5(n::text), 1, true FROM generate_series(1, ?) AS n`,
    [SALE_ID, orders],
  );
  await db.raw('UPDATE sales SET stock = ?, live_orders = ? WHERE id = ?', [UNITS_LEFT, orders, SALE_ID]);
  return { db, backend, redis, parameters };
}

async function runRound(stage: Stage): Promise<Round> {
  const read = await timed(() => readAll(stage));
  await stage.redis.flushall();
  const rebuild = await timed(() => rebuildSale(stage.db, stage.backend, SALE_ID));
  await check(stage);
  await stage.redis.flushall();
  await breakOffAtHalf(stage);
  const continued = await timed(() => rebuildSale(stage.db, stage.backend, SALE_ID));
  await check(stage);
  return { read, rebuild, continued };
}

async function readAll({ db, parameters }: Stage): Promise<void> {
  const { sale } = (await readSale(db, SALE_ID))!;
  let orders = 0;
  for await (const page of holdingPages(db, sale, '')) orders += page.orders;
  if (orders !== parameters.orders) throw new BenchFailure(`${orders} orders were read`);
}

async function breakOffAtHalf({ db, backend, parameters }: Stage): Promise<void> {
  const half = new Error('half of it is loaded');
  const progress = ({ step, done }: { step: string; done: number }) => {
    if (step === 'load' && done >= parameters.orders / 2) throw half;
  };
  try {
    await rebuildSale(db, backend, SALE_ID, undefined, { progress });
  } catch (error) {
    if (error !== half) throw error;
  }
}

async function check({ db, backend, redis, parameters }: Stage): Promise<void> {
  let buyers = 0;
  for (let segment = 0; segment < parameters.segments; segment++) {
    buyers += await redis.hlen(`{${SALE_ID}:${segment}}:buyers`);
  }
  if (buyers !== parameters.orders) throw new BenchFailure(`the segments hold ${buyers} buyers`);
  const report = await new SaleService(db, backend, new LocalLocks()).verify(SALE_ID);
  if (!report.ok) throw new BenchFailure(`verify found a difference: ${JSON.stringify(report)}`);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}
