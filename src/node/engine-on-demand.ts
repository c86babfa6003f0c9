import type { Config } from '../config/config.ts';
import { Board } from '../engine/board/board.ts';
import { OrderIds } from '../engine/order-id.ts';
import { Engine } from '../engine/purchase/engine.ts';
import type { Teardown } from '../lib/teardown.ts';
import type { Buy } from '../orders/late-payment.ts';
import { assertLeased, namingTimeMs } from '../postgres/lease-end.ts';
import { orderIdKey } from '../postgres/shared-keys.ts';
import { WorkerLeases } from '../postgres/worker-leases.ts';
import { readSale } from '../sales/sale-rows.ts';
import { SaleDirectory } from './sale-directory.ts';
import { redisOptions, type Stores } from './stores/stores.ts';
import { openEngineBackend } from './worker/open-engine-backend.ts';

/**
 * Buys without a node, for a command that works on the stores: only a late payment has to, so the engine, with a worker
 * number of its own, is started by the first purchase.
 */
export function engineOnDemand(stores: Stores, config: Config, teardown: Teardown): Buy {
  let starting: Promise<Engine> | undefined;
  return async (purchase) => {
    starting ??= startEngine(stores, config, teardown);
    return (await starting).purchase(purchase);
  };
}

async function startEngine(stores: Stores, config: Config, teardown: Teardown): Promise<Engine> {
  const { db } = stores;
  const backend =
    config.strategy === 'lock'
      ? await openEngineBackend({ strategy: 'lock', lockWork: undefined, redis: redisOptions(config) })
      : stores.backend;
  if (backend !== stores.backend) teardown.add(() => backend.close());
  const leases = await WorkerLeases.take(db, 1);
  teardown.add(() => leases.release());
  const board = new Board(1);
  const directory = new SaleDirectory(backend, board, async (id) => (await readSale(db, id)) !== undefined);
  await directory.start();
  teardown.add(() => directory.stop());
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
  teardown.add(() => engine.close());
  return engine;
}
