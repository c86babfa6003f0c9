import { randomBytes } from 'node:crypto';
import { settings } from '../../src/config/settings.ts';
import { Board } from '../../src/engine/board/board.ts';
import { openRedis } from '../../src/engine/cluster/open-redis.ts';
import { OrderIds } from '../../src/engine/order-id.ts';
import { Engine } from '../../src/engine/purchase/engine.ts';
import { Teardown } from '../../src/lib/teardown.ts';
import { SaleDirectory } from '../../src/node/sale-directory.ts';
import { openDatabase } from '../../src/postgres/database.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { LocalLocks } from '../../src/postgres/sale-locks.ts';
import { SaleService } from '../../src/shop/sale-service.ts';
import { Sync } from '../../src/sync/sync.ts';
import { RedisCluster } from '../../test/support/servers/redis-cluster.ts';
import { BenchFailure } from '../support/failure.ts';
import { startStoreServers } from '../support/stores.ts';
import { SyncWatch } from '../support/sync-watch.ts';
import { buyAll, crowdOf } from './crowd.ts';
import type { RebalanceParameters } from './options.ts';

const SALE = 'tickets';
const ORDER_ID_KEY_BYTES = 32;
const TAKE_TIMEOUT_MS = 10_000;
const REQUEST_DEADLINE_MS = 30_000;
const MAX_LOG_ORDERS = 1_000_000;
/** Additional time for the end of a cluster: three servers, on busy cores. */
const CLUSTER_END_MS = 20_000;

export type Place = 'one Redis' | 'cluster';

export interface Way {
  readonly place: Place;
  readonly timer: boolean;
}

export interface Round {
  readonly ordersPerSecond: number;
  /** Per 1,000 orders. */
  readonly refills: number;
  /** Moves by the timer. */
  readonly moves: number;
  /** Milliseconds until the answer. */
  readonly p50: number;
  readonly p99: number;
  readonly p999: number;
}

export interface WayResult {
  readonly way: Way;
  readonly rounds: readonly Round[];
}

const WAYS: readonly Way[] = [
  { place: 'one Redis', timer: false },
  { place: 'one Redis', timer: true },
  { place: 'cluster', timer: false },
  { place: 'cluster', timer: true },
];

/** Variants take turns, so that a machine that becomes slower affects all of them. */
export async function runAll(parameters: RebalanceParameters): Promise<WayResult[]> {
  const teardown = new Teardown((error) => console.error(error));
  try {
    const stores = await startStoreServers(teardown);
    const cluster = await RedisCluster.start();
    teardown.add(() => cluster[Symbol.asyncDispose](), CLUSTER_END_MS);
    const urls = { 'one Redis': [stores.redis.url], cluster: cluster.urls };
    const crowd = crowdOf(parameters);
    const results = WAYS.map((way) => ({ way, rounds: [] as Round[] }));
    for (let round = 0; round <= parameters.rounds; round++) {
      for (const { way, rounds } of results) {
        const databaseUrl = await stores.postgres.createDatabase('bench');
        const measured = await runRound(way, { urls: urls[way.place], databaseUrl, crowd, parameters });
        // The first round of each variant warms up.
        if (round > 0) rounds.push(measured);
      }
    }
    return results;
  } finally {
    await teardown.release();
  }
}

interface RoundParts {
  readonly urls: readonly string[];
  readonly databaseUrl: string;
  readonly crowd: readonly string[];
  readonly parameters: RebalanceParameters;
}

async function runRound(way: Way, { urls, databaseUrl, crowd, parameters }: RoundParts): Promise<Round> {
  const teardown = new Teardown((error) => console.error(error));
  try {
    const db = openDatabase({ url: databaseUrl, maxConnections: Number(settings.pgPoolMax.fallback) });
    teardown.add(() => db.destroy());
    await migrate(db);
    const options = { takeTimeoutMs: TAKE_TIMEOUT_MS, maxLogOrders: MAX_LOG_ORDERS };
    const keyPrefix = `stockade:${randomBytes(6).toString('hex')}:`;
    const { backend } = await openRedis({ urls, keyPrefix, ...options });
    teardown.add(() => backend.close());
    const service = new SaleService(db, backend, new LocalLocks());
    await service.create({ id: SALE, stock: crowd.length, segments: parameters.segments }, 'bench');
    const { engine, refills } = await startEngine(backend, teardown);
    const watch = new SyncWatch();
    let moves = 0;
    const transferred = (info: { moves: number }) => {
      moves += info.moves;
    };
    const events = { ...watch.events, transferred };
    const batchRows = Number(settings.syncBatchRows.fallback);
    const rebalanceEveryMs = way.timer ? parameters.everyMs : 0;
    const sync = new Sync({ db, backend, locks: new LocalLocks(), events, batchRows, rebalanceEveryMs });
    await sync.start();
    teardown.add(() => sync.stop());
    await sync.ready;

    const began = performance.now();
    const waits = await buyAll(engine, SALE, crowd, parameters.buyers);
    const seconds = (performance.now() - began) / 1_000;
    await watch.applied(crowd.length);
    const proof = await service.verify(SALE);
    if (!proof.ok) throw new BenchFailure(`verify found a difference: ${JSON.stringify(proof)}`);
    waits.sort();
    const percentile = (share: number) =>
      waits[Math.min(waits.length - 1, Math.floor(waits.length * share))]!;
    return {
      ordersPerSecond: crowd.length / seconds,
      refills: (refills() / crowd.length) * 1_000,
      moves,
      p50: percentile(0.5),
      p99: percentile(0.99),
      p999: percentile(0.999),
    };
  } finally {
    await teardown.release();
  }
}

async function startEngine(backend: Awaited<ReturnType<typeof openRedis>>['backend'], teardown: Teardown) {
  const board = new Board(1);
  const directory = new SaleDirectory(backend, board, async () => true);
  await directory.start();
  teardown.add(() => directory.stop());
  const ids = new OrderIds({ key: randomBytes(ORDER_ID_KEY_BYTES), worker: 1 });
  let refills = 0;
  const engine = await Engine.start({
    backend,
    directory,
    board,
    worker: 1,
    nextOrderId: () => ids.next(),
    requestDeadlineMs: REQUEST_DEADLINE_MS,
    laneCapacity: 100_000,
    onRefill: () => {
      refills++;
    },
  });
  teardown.add(() => engine.close());
  return { engine, refills: () => refills };
}
