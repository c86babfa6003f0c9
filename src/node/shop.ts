/**
 * Starts the parts of a shop's process.
 *
 *   stores -> no eviction -> migrate -> claim -> watch -> sync, expiry, events -> directory -> engines -> ports -> head of the queues
 *   └──────────────────── openShop ─────────────────┘    startBackgroundWork      openDirectory
 *
 * A node (node.ts) starts all of them, with an engine in each worker. A shop embedded in another program (../embed/) has one
 * engine and no port. `stockade sync` (sync-process.ts) does the background work and sells nothing. Commands on the stores
 * (services.ts) claim nothing, because they work beside processes that have done so.
 */
import type { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import type { SettingName } from '../config/settings.ts';
import { DeletionFinisher } from '../deletion/deletion-finisher.ts';
import { Board } from '../engine/board/board.ts';
import type { Receiver } from '../events/order-event.ts';
import type { Teardown } from '../lib/teardown.ts';
import { Expiry } from '../orders/expiry.ts';
import { Archiver } from '../rebuild/archiver.ts';
import { readSale } from '../sales/sale-rows.ts';
import { Sync } from '../sync/sync.ts';
import type { Traces } from '../traces/traces.ts';
import { startEventRelay } from './event-relay.ts';
import { watchArchiver } from './observability/archiver-watch.ts';
import { watchDeletions } from './observability/deletion-watch.ts';
import { watchExpiry } from './observability/expiry-watch.ts';
import { watchSync } from './observability/sync-watch.ts';
import type { Log } from './process/log.ts';
import { unlessAsked } from './process/start.ts';
import { SaleDirectory } from './sale-directory.ts';
import { ShopWatch } from './shop-watch.ts';
import { refuseEviction } from './stores/eviction-watch.ts';
import { prepareDatabase } from './stores/prepare-database.ts';
import { digestKey, settingDigests } from './stores/shared-settings.ts';
import { openStores, type Stores } from './stores/stores.ts';
import type { Load } from './worker/load.ts';

export interface ShopParts {
  readonly config: Config;
  readonly log: Log;
  /** Where each part registers its metrics. */
  readonly registry: Registry;
}

export interface ShopStart {
  /** The settings that this process compares with those of the shop's other processes. */
  readonly settings: readonly SettingName[];
  /** Whether a function of this program gets the order events. */
  readonly handlesEvents?: boolean | undefined;
  /** Aborted when the process is asked to end. Later it has no effect. */
  readonly signal?: AbortSignal | undefined;
}

export interface Shop {
  readonly stores: Stores;
  readonly watch: ShopWatch;
}

/**
 * Opens the stores, migrates them, claims them for this shop and watches them. A server that hangs can keep this waiting, so a signal ends
 * it. The embedded database can't hang, and its thread has to be stopped in order.
 * @throws the signal's reason, the stores' errors if they can't be reached, ConfigError if Redis may evict keys, ForeignStores if the stores do
 * not belong together, StockadeError `no_sessions`, `migrations_pending`, `missing_rights`, `data_dir_in_use`
 */
export function openShop(parts: ShopParts, start: ShopStart, teardown: Teardown): Promise<Shop> {
  const open = () => openWhole(parts, start, teardown);
  return unlessAsked(parts.config.databaseUrl && start.signal, open);
}

async function openWhole(
  { config, log, registry }: ShopParts,
  { settings, handlesEvents }: ShopStart,
  teardown: Teardown,
): Promise<Shop> {
  const stores = await openStores(config, log, teardown);
  await refuseEviction({ config, log, registry }, teardown);
  await prepareDatabase(stores.db, log);
  await stores.ownership.claim();
  const digests = settingDigests(config, settings, await digestKey(stores.db), handlesEvents);
  const watch = ShopWatch.begin({ stores, settings: digests, log, registry }, teardown);
  return { stores, watch };
}

export interface BackgroundParts extends ShopParts {
  readonly stores: Stores;
  /** How busy buyers keep this process; absent if it serves none. */
  readonly load?: Load | undefined;
  /** Missing: commits are not traced. */
  readonly traces?: Traces | undefined;
  /** Gets the order events instead of the configured webhook. */
  readonly receiver?: Receiver | undefined;
}

/**
 * Starts sync, the expiry of unpaid orders, the archiver, the finisher of deletions, and the relay of order events. In a process
 * that serves buyers, it resolves when every sale is in the backend, and this work then leaves the processor to the buyers for
 * bounded times.
 */
export async function startBackgroundWork(parts: BackgroundParts, teardown: Teardown): Promise<void> {
  const { config, log, registry, stores, load, traces } = parts;
  const { db, backend, locks, ownership } = stores;
  const sync = new Sync({
    db,
    backend,
    locks,
    events: {
      ...watchSync(log, registry),
      ...(traces && { committed: (batch) => traces.committed(batch) }),
    },
    batchRows: config.syncBatchRows,
    rebalanceEveryMs: config.rebalanceEveryMs,
    backpressure: load && { isLoadHigh: load.isHigh, maxMs: config.syncYieldMs },
    claim: () => ownership.claim(),
  });
  await sync.start();
  teardown.add(() => sync.stop());
  if (load) await sync.ready;
  const expiry = new Expiry({ db, backend, events: watchExpiry(log, registry) });
  expiry.start();
  teardown.add(() => expiry.stop());
  const archiver = new Archiver({
    ...{ db, backend, locks, events: watchArchiver(log) },
    afterDays: config.archiveAfterDays,
    claim: () => ownership.claim(),
  });
  archiver.start();
  teardown.add(() => archiver.stop());
  const finisher = new DeletionFinisher({ db, locks, events: watchDeletions(log) });
  finisher.start();
  teardown.add(() => finisher.stop());
  const isLoadHigh = () => sync.isBehind || (load?.isElevated() ?? false);
  await startEventRelay({ ...parts, isLoadHigh }, teardown);
}

/** Sales that the board has room for while the process runs. Purchases of further sales always ask the backend. */
const BOARD_SALES = 65_536;

export interface KnownSales {
  readonly board: Board;
  readonly directory: SaleDirectory;
}

/** The directory of the sales that this process sells, and its sold-out board. @param maxSales the size of the board */
export async function openDirectory(
  { backend, db }: Stores,
  teardown: Teardown,
  maxSales = BOARD_SALES,
): Promise<KnownSales> {
  const board = new Board(maxSales);
  const isInBackend = async (saleId: string) => {
    const row = await readSale(db, saleId);
    return row !== undefined && row.archivedAt === undefined;
  };
  const directory = new SaleDirectory(backend, board, isInBackend);
  await directory.start();
  teardown.add(() => directory.stop());
  return { board, directory };
}
