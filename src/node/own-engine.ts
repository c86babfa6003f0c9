/** An engine in this thread, with a worker number of its own. */
import type { Config } from '../config/config.ts';
import type { Backend } from '../engine/contract.ts';
import type { Engine, EngineOptions } from '../engine/purchase/engine.ts';
import type { Teardown } from '../lib/teardown.ts';
import type { Buy } from '../orders/late-payment.ts';
import { orderIdKey } from '../postgres/shared-keys.ts';
import { WorkerLeases } from '../postgres/worker-leases.ts';
import { type KnownSales, openDirectory } from './shop.ts';
import { redisOptions, type Stores } from './stores/stores.ts';
import { openEngineBackend } from './worker/open-engine-backend.ts';
import { startEngine } from './worker/start-engine.ts';

/** What a part of the engine tells, where somebody wants to hear it. */
type Hooks = Pick<EngineOptions, 'onFault' | 'onForeign' | 'onUncommitted'>;

export interface OwnEngine {
  readonly engine: Engine;
  /** Resolves with the reason if its worker number is somebody else's now: it takes nothing any more. */
  readonly lost: Promise<Error>;
}

/** @throws StockadeError `no_worker_numbers`; Redis' errors, with `strategy: 'lock'` */
export async function startOwnEngine(
  stores: Stores,
  config: Config,
  { board, directory }: KnownSales,
  teardown: Teardown,
  hooks: Hooks = {},
): Promise<OwnEngine> {
  const backend = await engineBackend(stores, config, teardown);
  const leases = await WorkerLeases.take(stores.db, 1);
  teardown.add(() => leases.release());
  const engine = await startEngine({
    backend,
    directory,
    board,
    worker: leases.numbers[0]!,
    orderIdKey: await orderIdKey(stores.db),
    leaseEnd: () => leases.end,
    requestDeadlineMs: config.requestDeadlineMs,
    laneCapacity: config.laneCapacity,
    ...hooks,
  });
  // Purchases under way are answered first.
  teardown.add(() => engine.close(), config.requestDeadlineMs);
  return { engine, lost: leases.lost };
}

/** Takes under locks need connections of their own. */
async function engineBackend(stores: Stores, config: Config, teardown: Teardown): Promise<Backend> {
  const { strategy, lockWork } = config;
  if (strategy !== 'lock') return stores.backend;
  const backend = await openEngineBackend({ strategy, lockWork, redis: redisOptions(config) });
  teardown.add(() => backend.close());
  return backend;
}

/**
 * Buys without a node, for a command that works on the stores: only a late payment has to, so the engine is started by the
 * first purchase.
 */
export function engineOnDemand(stores: Stores, config: Config, teardown: Teardown): Buy {
  let starting: Promise<Engine> | undefined;
  const start = async () => {
    const sales = await openDirectory(stores, 1, teardown);
    return (await startOwnEngine(stores, { ...config, lockWork: undefined }, sales, teardown)).engine;
  };
  return async (purchase) => {
    starting ??= start();
    return (await starting).purchase(purchase);
  };
}
