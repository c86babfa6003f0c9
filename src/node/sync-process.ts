/** `stockade sync`: what carries the order logs in a node, by itself, with an ops port that tells how it does. */
import { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import { Teardown } from '../lib/teardown.ts';
import { Expiry } from '../orders/expiry.ts';
import { Sync } from '../sync/sync.ts';
import { startEventRelay } from './event-relay.ts';
import { watchExpiry } from './observability/expiry-watch.ts';
import { whyNotSyncing } from './observability/readiness.ts';
import { watchSync } from './observability/sync-watch.ts';
import { openOpsPort } from './operations/ops-port.ts';
import { openDataDir } from './process/data-dir.ts';
import type { Log } from './process/log.ts';
import { watchProcess } from './process/process-metrics.ts';
import { ShopWatch } from './shop-watch.ts';
import { keepFromEviction } from './stores/eviction-watch.ts';
import { prepareDatabase } from './stores/prepare-database.ts';
import { digestKey, settingDigests, settingsOfSync } from './stores/shared-settings.ts';
import { StoreWatch } from './stores/store-watch.ts';
import { openStores } from './stores/stores.ts';

export interface RunningSyncProcess {
  readonly opsUrl: string;
  /** Resolves with the reason if sync can't go on; a loop that fails and starts again is no reason. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/** @throws the stores' errors if they can't be reached, ConfigError if Redis may evict keys, or StockadeError `port_in_use` */
export async function startSyncProcess(config: Config, log: Log): Promise<RunningSyncProcess> {
  const teardown = new Teardown((error) => log.error({ err: error }, 'an orderly end failed'));
  try {
    openDataDir(config, log);
    const stores = await openStores(config, teardown);
    const metrics = new Registry();
    watchProcess(metrics);
    await keepFromEviction({ config, log, registry: metrics }, teardown);
    await prepareDatabase(stores.db, log);
    await stores.ownership.claim();
    const settings = settingDigests(config, settingsOfSync(), await digestKey(stores.db));
    const shop = ShopWatch.begin({ stores, settings, log, registry: metrics }, teardown);
    const { db, backend, locks } = stores;
    const events = watchSync(log, metrics);
    const claim = () => stores.ownership.claim();
    const { syncBatchRows: batchRows, rebalanceEveryMs } = config;
    const sync = new Sync({ db, backend, locks, events, batchRows, rebalanceEveryMs, claim });
    await sync.start();
    teardown.add(() => sync.stop());
    const expiry = new Expiry({ db, backend, events: watchExpiry(log, metrics) });
    expiry.start();
    teardown.add(() => expiry.stop());
    startEventRelay({ config, log, stores, registry: metrics, isLoadHigh: () => sync.isBehind }, teardown);
    const watch = new StoreWatch(stores);
    let stopping = false;
    const ops = await openOpsPort(config, log, {
      metrics: () => metrics.metrics(),
      settingsDiffer: () => shop.differences,
      notReady: async () => (stopping ? 'stopping' : whyNotSyncing(watch)),
    });
    teardown.add(() => ops.stop(), config.shutdownGraceMs);
    return {
      opsUrl: ops.url,
      failed: Promise.race([stores.failed, shop.strayed]),
      async stop() {
        stopping = true;
        await teardown.release();
      },
    };
  } catch (error) {
    await teardown.release();
    throw error;
  }
}
