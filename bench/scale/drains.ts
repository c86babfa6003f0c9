/**
 * Several processes `stockade sync` drain the same backlog. They have their sales already, and stand still while the logs are
 * filled: as syncs that were away from a shop that went on selling.
 */
import { randomBytes } from 'node:crypto';
import { note } from '../../src/cli/terminal/output.ts';
import { settings } from '../../src/config/settings.ts';
import { RedisBackend } from '../../src/engine/redis/redis-backend.ts';
import { splitEvenly } from '../../src/engine/sale/split-evenly.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { LocalLocks } from '../../src/postgres/sale-locks.ts';
import { SaleService } from '../../src/shop/sale-service.ts';
import { measureCpu } from '../support/cpu-meter.ts';
import { BenchFailure } from '../support/failure.ts';
import { fillLogs } from '../support/fill-logs.ts';
import { checkpoint } from '../support/stores.ts';
import type { ScaleParameters } from './options.ts';
import type { Place } from './stores.ts';
import { cpuSecondsOfSyncs, drained, salesOfEachSync, startSyncs } from './syncs.ts';

const SEGMENTS = 8;
/** Filling is not measured: a stall of the machine must not end it. */
const TAKE_TIMEOUT_MS = 10_000;

/** Processor time is in microseconds per order; `undefined` where the system does not report it. */
export interface Drain {
  readonly ordersPerSecond: number;
  /** Of all syncs together. */
  readonly nodeCpuMicros: number | undefined;
  readonly redisCpuMicros: number | undefined;
  readonly postgresCpuMicros: number | undefined;
  /** The largest share of the sales that one sync had at the beginning, from 0 to 1. */
  readonly largestShare: number;
}

export async function measureDrain(syncs: number, place: Place, parameters: ScaleParameters): Promise<Drain> {
  const teardown = new Teardown((error) => note(`a step of the shutdown failed: ${error}`));
  try {
    return await drainOnce(syncs, place, parameters, teardown);
  } finally {
    await teardown.release();
  }
}

async function drainOnce(
  syncs: number,
  { redis, postgres }: Place,
  { orders, sales, eventsStreamMax }: ScaleParameters,
  teardown: Teardown,
): Promise<Drain> {
  const databaseUrl = await postgres.createDatabase('bench');
  const keyPrefix = `bench-${randomBytes(6).toString('hex')}:`;
  const db = openDatabase({ url: databaseUrl, maxConnections: Number(settings.pgPoolMax.fallback) });
  teardown.add(() => db.destroy());
  await migrate(db);
  const options = { url: redis.url, keyPrefix, takeTimeoutMs: TAKE_TIMEOUT_MS, maxLogOrders: orders };
  const backend = await RedisBackend.open(options);
  teardown.add(() => backend.close());
  const service = new SaleService(db, backend, new LocalLocks());
  const filled = await Promise.all(
    splitEvenly(orders, sales).map(async (count, i) => {
      // Enough units for all buyers in every segment, however unevenly the buyers are distributed.
      const sale = { id: `sale-${i + 1}`, stock: SEGMENTS * count, segments: SEGMENTS, perBuyerLimit: 1 };
      const { generation } = await service.create(sale, 'bench');
      return { ...sale, generation, count };
    }),
  );
  const flags = { 'redis-url': redis.url, 'database-url': databaseUrl, 'key-prefix': keyPrefix };
  const processes = await startSyncs(
    syncs,
    { ...flags, 'events-stream-max': String(eventsStreamMax) },
    teardown,
  );
  const holders = await salesOfEachSync(db, sales, syncs);
  for (const { program } of processes) await program.pause();
  for (const sale of filled) await fillLogs(backend, sale, sale.count);
  await checkpoint(postgres);

  const used = measureCpu({
    node: () => cpuSecondsOfSyncs(processes),
    redis: () => redis.cpuSeconds(),
    postgres: () => postgres.cpuSeconds(),
  });
  const began = performance.now();
  for (const { program } of processes) program.resume();
  await drained(db, orders, processes);
  const seconds = (performance.now() - began) / 1_000;
  const cpu = used();
  for (const { id, count } of filled) {
    const report = await service.verify(id);
    if (report.ok && report.committedOrders === count && report.rejectedOrders === 0) continue;
    throw new BenchFailure(`verify of sale ${id} found a difference: ${JSON.stringify(report)}`);
  }
  const micros = (spent: number | undefined) => spent && (spent / orders) * 1e6;
  return {
    ordersPerSecond: orders / seconds,
    nodeCpuMicros: micros(cpu.node),
    redisCpuMicros: micros(cpu.redis),
    postgresCpuMicros: micros(cpu.postgres),
    largestShare: Math.max(...holders) / sales,
  };
}
