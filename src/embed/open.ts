/** Opens an embedded shop: it does what a node does for its buyers, without a port and in the caller's thread. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/purchase/engine.ts';
import type { Teardown } from '../lib/teardown.ts';
import { lostOrderNames } from '../node/lost-order-names.ts';
import { watchHead } from '../node/observability/head-watch.ts';
import { operationsOn } from '../node/operations/operations.ts';
import { startOwnEngine } from '../node/own-engine.ts';
import type { Log } from '../node/process/log.ts';
import { startOrRelease } from '../node/process/start.ts';
import { startQueueHead } from '../node/queue-head.ts';
import { openDirectory, openShop, type ShopParts, startBackgroundWork } from '../node/shop.ts';
import { settingsOfNode } from '../node/stores/shared-settings.ts';
import type { Stores } from '../node/stores/stores.ts';
import { busyShareOf, watchLoad } from '../node/worker/load.ts';
import { QueueWork } from '../node/worker/queue-work.ts';
import type { Buy } from '../orders/late-payment.ts';
import type { PlaceParts } from './embedded-places.ts';
import { EmbeddedShop } from './embedded-shop.ts';
import { receiverOf } from './event-receiver.ts';
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
  const settings = settingsOfNode(config, SHARED_OPTIONS);
  const handlesEvents = onOrderEvents !== undefined;
  const { stores, watch } = await openShop(parts, { settings, handlesEvents }, teardown);
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
  const buy: Buy = (purchase) => engine.purchase(purchase);
  const places = placeParts(stores, engine, parts, teardown);
  startQueueHead(stores, buy, watchHead(log, parts.registry), teardown);
  return new EmbeddedShop({
    buy,
    places,
    ...operationsOn(stores, buy),
    metrics: () => parts.registry.metrics(),
    failures: [stores.failed, watch.storesChanged, lost],
    graceMs: config.shutdownGraceMs,
    release: () => teardown.release(),
  });
}

function placeParts(
  { backend, db }: Stores,
  engine: Engine,
  { config, log }: ShopParts,
  teardown: Teardown,
): PlaceParts {
  const { requestDeadlineMs } = config;
  const fault = (error: unknown) => log.error({ err: error }, 'work on a queue failed');
  const { queue, acceptOffer } = new QueueWork({ backend, db, requestDeadlineMs, fault });
  teardown.add(() => queue.stop());
  const readRecord = async (saleId: string) => (await engine.view(saleId))?.record;
  return { queue, acceptOffer, readRecord, deadlineMs: requestDeadlineMs, fault };
}
