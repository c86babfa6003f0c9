/** Opens an embedded shop: it does what a node does for its buyers, without a port and in the caller's thread. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import type { Receiver } from '../events/order-event.ts';
import type { Teardown } from '../lib/teardown.ts';
import { lostOrderNames } from '../node/lost-order-names.ts';
import { operationsOn } from '../node/operations/operations.ts';
import { startOwnEngine } from '../node/own-engine.ts';
import type { Log } from '../node/process/log.ts';
import { startOrRelease } from '../node/process/start.ts';
import { openDirectory, openShop, startBackgroundWork } from '../node/shop.ts';
import { busyShareOf, watchLoad } from '../node/worker/load.ts';
import { EmbeddedShop } from './embedded-shop.ts';
import { logTo } from './log.ts';
import { configOf, type OpenOptions, type OrderEventHandler, SHARED_OPTIONS } from './options.ts';
import type { Shop } from './shop.ts';

/**
 * Opens a shop in this process. Without options it sells from memory, and its orders are in a temporary PGlite. With
 * `redisUrl` and `databaseUrl` it shares its sales with all nodes and programs that use the same stores.
 *
 * It migrates the tables to this version, claims the stores for this shop, and resolves when every open sale can be sold.
 *
 * @throws ConfigError for wrong options, with all faults at once, and for a Redis that may evict keys
 * @throws ForeignStores if Redis and Postgres do not belong together
 * @throws StockadeError with the code `data_dir_in_use`, `no_sessions`, `migrations_pending`, `missing_rights` or `no_worker_numbers`
 * @throws the stores' own errors if they can't be reached
 */
export async function open(options: OpenOptions = {}): Promise<Shop> {
  const config = configOf(options);
  const log = logTo(options.logger);
  return startOrRelease(log, async (teardown) => {
    const placed = { ...config, dataDir: dataDirOf(options, config, teardown) };
    return assemble(placed, log, options.onOrderEvents, teardown);
  });
}

/** @returns a temporary folder if PGlite needs one and no option names it; `close` removes it */
function dataDirOf({ databaseUrl, dataDir }: OpenOptions, config: Config, teardown: Teardown): string {
  if (databaseUrl !== undefined || dataDir !== undefined) return config.dataDir;
  const temporary = mkdtempSync(join(tmpdir(), 'stockade-'));
  teardown.add(() => rmSync(temporary, { recursive: true, force: true }));
  return temporary;
}

async function assemble(
  config: Config,
  log: Log,
  onOrderEvents: OrderEventHandler | undefined,
  teardown: Teardown,
): Promise<Shop> {
  const parts = { config, log, registry: new Registry() };
  const { stores, watch } = await openShop(parts, SHARED_OPTIONS, teardown);
  const load = watchLoad([{ busyShare: busyShareOf(performance) }]);
  const receiver = onOrderEvents && receiverOf(onOrderEvents);
  if (config.sync) await startBackgroundWork({ ...parts, stores, load, receiver }, teardown);
  const sales = await openDirectory(stores, teardown);
  const { engine, lost } = await startOwnEngine(stores, config, sales, teardown, {
    onUncommitted: lostOrderNames(stores.db, log),
    onFault: (error, saleId, segment) =>
      log.error({ err: error, saleId, segment }, 'a batch of purchases failed'),
    onForeign: (error) =>
      log.warn({ err: error }, 'ignored a message in Redis that this version does not send'),
  });
  return new EmbeddedShop({
    buy: (purchase) => engine.purchase(purchase),
    ...operationsOn(stores, (purchase) => engine.purchase(purchase)),
    metrics: () => parts.registry.metrics(),
    failures: [stores.failed, watch.storesChanged, lost],
    graceMs: config.shutdownGraceMs,
    release: () => teardown.release(),
  });
}

function receiverOf(handle: OrderEventHandler): Receiver {
  return { deliver: async (events, signal) => handle(events, signal) };
}
