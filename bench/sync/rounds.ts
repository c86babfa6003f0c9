/** The run: each round has a database and a sale of its own, fills the logs, and measures both ways into Postgres. */
import { note } from '../../src/cli/terminal/output.ts';
import { settings } from '../../src/config/settings.ts';
import type { Backend, TakeOrder } from '../../src/engine/contract.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { type Database, openDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { LocalLocks } from '../../src/postgres/sale-locks.ts';
import { SaleService } from '../../src/shop/sale-service.ts';
import { cpuSecondsOf } from '../../test/support/servers/process/process-table.ts';
import { measureCpu } from '../support/cpu-meter.ts';
import { BenchFailure } from '../support/failure.ts';
import { count } from '../support/figures.ts';
import { fillLogs } from '../support/fill-logs.ts';
import { type StoreServers, startStoreServers } from '../support/stores.ts';
import { insertBare } from './bare-insert.ts';
import { createBareOrders } from './bare-orders.ts';
import { drain } from './drain.ts';
import type { SyncParameters } from './options.ts';

export interface Measurement {
  readonly rowsPerSecond: number;
  /** Rows in one transaction, on average. */
  readonly rowsPerTransaction: number;
  /** Processor time per row, in microseconds; `undefined` where the system does not report it. */
  readonly nodeCpuMicros: number | undefined;
  readonly redisCpuMicros: number | undefined;
  readonly postgresCpuMicros: number | undefined;
}

export interface Round {
  readonly bare: Measurement;
  readonly sync: Measurement;
}

interface Stage {
  readonly stores: StoreServers;
  readonly db: Database;
  readonly databaseUrl: string;
  readonly backend: Backend;
  readonly saleId: string;
  readonly orders: readonly TakeOrder[];
  readonly parameters: SyncParameters;
}

const SALE_ID = 'bench';
/** Filling is not measured: a stall of the machine must not end it. */
const TAKE_TIMEOUT_MS = 10_000;

/** @throws BenchFailure if sync reported a fault, or if the sale does not add up */
export async function runRounds(parameters: SyncParameters): Promise<Round[]> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    note('Starting Redis and Postgres');
    const stores = await startStoreServers(teardown);
    const rounds: Round[] = [];
    for (let number = 1; number <= parameters.rounds; number++) {
      const round = await runRound(stores, number, parameters);
      note(
        `round ${number} of ${parameters.rounds}: bare ${count(round.bare.rowsPerSecond)} rows/s, ` +
          `sync ${count(round.sync.rowsPerSecond)} rows/s`,
      );
      rounds.push(round);
    }
    return rounds;
  } finally {
    await teardown.release();
  }
}

async function runRound(stores: StoreServers, number: number, parameters: SyncParameters): Promise<Round> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    const stage = await setStage(stores, number, parameters, teardown);
    // The two take turns to be first, so that effects of the order (caches, a busy disk) hit both equally often.
    const bareFirst = number % 2 === 1;
    const first = bareFirst ? await measureBare(stage) : await measureSync(stage);
    const second = bareFirst ? await measureSync(stage) : await measureBare(stage);
    await verify(stage);
    return bareFirst ? { bare: first, sync: second } : { bare: second, sync: first };
  } finally {
    await teardown.release();
  }
}

async function setStage(
  stores: StoreServers,
  number: number,
  parameters: SyncParameters,
  teardown: Teardown,
): Promise<Stage> {
  const databaseUrl = await stores.postgres.createDatabase('bench');
  const db = openDatabase({ url: databaseUrl, maxConnections: Number(settings.pgPoolMax.fallback) });
  teardown.add(() => db.destroy());
  await migrate(db);
  await createBareOrders(db);
  const backend = await RedisBackend.open({
    url: stores.redis.url,
    keyPrefix: `round-${number}:`,
    takeTimeoutMs: TAKE_TIMEOUT_MS,
    maxLogOrders: parameters.orders,
  });
  teardown.add(() => backend.close());
  const { segments } = parameters;
  // Enough units for all buyers in every segment, however unevenly the buyers are distributed.
  const sale = { id: SALE_ID, stock: segments * parameters.orders, segments, perBuyerLimit: 1 };
  const { generation } = await new SaleService(db, backend, new LocalLocks()).create(sale, 'bench');
  const orders = await fillLogs(backend, { ...sale, generation }, parameters.orders);
  return { stores, db, databaseUrl, backend, saleId: SALE_ID, orders, parameters };
}

async function measureBare(stage: Stage): Promise<Measurement> {
  const { db, saleId, orders, parameters } = stage;
  return timed(stage, async (done) => {
    await insertBare(db, saleId, orders, parameters.batchRows);
    done();
    return Math.ceil(orders.length / parameters.batchRows);
  });
}

async function measureSync(stage: Stage): Promise<Measurement> {
  const { orders, parameters } = stage;
  const task = { ...stage, ...parameters, orders: orders.length };
  return timed(stage, async (done) => (await drain(task, done)).transactions);
}

/** @param work calls `done` at the end of what is measured, and returns the number of its transactions */
async function timed(
  { stores: { redis, postgres }, db, orders }: Stage,
  work: (done: () => void) => Promise<number>,
): Promise<Measurement> {
  // Flushes earlier writes now, so that they don't count.
  await db.raw('CHECKPOINT');
  const used = measureCpu({
    node: () => cpuSecondsOf(process.pid),
    redis: () => redis.cpuSeconds(),
    postgres: () => postgres.cpuSeconds(),
  });
  const began = performance.now();
  let ended = began;
  let seconds: ReturnType<typeof used> | undefined;
  const transactions = await work(() => {
    ended = performance.now();
    seconds = used();
  });
  const micros = (spent: number | undefined) =>
    spent === undefined ? undefined : (spent / orders.length) * 1e6;
  return {
    rowsPerSecond: (orders.length / (ended - began)) * 1_000,
    rowsPerTransaction: orders.length / transactions,
    nodeCpuMicros: micros(seconds?.node),
    redisCpuMicros: micros(seconds?.redis),
    postgresCpuMicros: micros(seconds?.postgres),
  };
}

async function verify({ db, backend, saleId, orders }: Stage): Promise<void> {
  const report = await new SaleService(db, backend, new LocalLocks()).verify(saleId);
  if (report.ok && report.committedOrders === orders.length && report.rejectedOrders === 0) return;
  throw new BenchFailure(`verify of sale ${saleId} found a difference: ${JSON.stringify(report)}`);
}
