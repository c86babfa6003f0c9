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

/** What the engine reports, for callers that log or store it. */
type Hooks = Pick<EngineOptions, 'onFault' | 'onForeign' | 'onUncommitted'>;

export interface OwnEngine {
  readonly engine: Engine;
  /** Resolves with the reason if the lease of its worker number is lost; the engine sells nothing from then on. */
  readonly lost: Promise<Error>;
}

/** @throws StockadeError `no_worker_numbers`; with `strategy: 'lock'` also the errors of Redis */
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
  // The grace lets purchases under way be answered first.
  teardown.add(() => engine.close(), config.requestDeadlineMs);
  return { engine, lost: leases.lost };
}

/** The backend of the stores, unless takes run under locks: those need connections of their own. */
async function engineBackend(stores: Stores, config: Config, teardown: Teardown): Promise<Backend> {
  const { strategy, lockWork } = config;
  if (strategy !== 'lock') return stores.backend;
  const backend = await openEngineBackend({ strategy, lockWork, redis: redisOptions(config) });
  teardown.add(() => backend.close());
  return backend;
}

/**
 * Makes purchases without a node, for commands that work on the stores. Of these only a late payment buys, so the first
 * purchase starts the engine.
 */
export function engineOnDemand(stores: Stores, config: Config, teardown: Teardown): Buy {
  let starting: Promise<Engine> | undefined;
  const start = async () => {
    const sales = await openDirectory(stores, teardown, 1);
    return (await startOwnEngine(stores, { ...config, lockWork: undefined }, sales, teardown)).engine;
  };
  return async (purchase) => {
    starting ??= start();
    return (await starting).purchase(purchase);
  };
}
