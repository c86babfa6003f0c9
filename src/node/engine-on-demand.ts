import type { Config } from '../config/config.ts';
import { Board } from '../engine/board.ts';
import { Engine } from '../engine/engine.ts';
import { OrderIds } from '../engine/order-id.ts';
import type { Buy } from '../sync/orders/late-payment.ts';
import { readSale } from '../sync/sale-rows.ts';
import { assertLeased, namingTimeMs, orderIdKey, WorkerLeases } from '../sync/worker-leases.ts';
import { openEngineBackend } from './open-engine-backend.ts';
import type { Releasers } from './releasers.ts';
import { SaleDirectory } from './sale-directory.ts';
import { redisOptions, type Stores } from './stores.ts';

/**
 * Buys without a node, for a command that works on the stores: only a late payment has to, so the engine, with a worker
 * number of its own, is started by the first purchase.
 */
export function engineOnDemand(stores: Stores, config: Config, releasers: Releasers): Buy {
  let starting: Promise<Engine> | undefined;
  return async (purchase) => {
    starting ??= startEngine(stores, config, releasers);
    return (await starting).purchase(purchase);
  };
}

async function startEngine(stores: Stores, config: Config, releasers: Releasers): Promise<Engine> {
  const { db } = stores;
  const backend =
    config.strategy === 'lock'
      ? await openEngineBackend({ strategy: 'lock', lockWork: undefined, redis: redisOptions(config) })
      : stores.backend;
  if (backend !== stores.backend) releasers.add(() => backend.close());
  const leases = await WorkerLeases.take(db, 1);
  releasers.add(() => leases.release());
  const board = new Board(1);
  const directory = new SaleDirectory(backend, board, async (id) => (await readSale(db, id)) !== undefined);
  await directory.start();
  releasers.add(() => directory.stop());
  const worker = leases.numbers[0]!;
  const ids = new OrderIds({ key: await orderIdKey(db), worker, now: () => namingTimeMs(leases.end) });
  const engine = await Engine.start({
    backend,
    directory,
    board,
    worker,
    nextOrderId: () => {
      assertLeased(leases.end);
      return ids.next();
    },
    requestDeadlineMs: config.requestDeadlineMs,
    laneCapacity: config.laneCapacity,
  });
  releasers.add(() => engine.close());
  return engine;
}
