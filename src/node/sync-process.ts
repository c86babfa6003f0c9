/** `stockade sync`: the background work of a node without the rest, and an ops port for its metrics and readiness. */
import { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import type { Teardown } from '../lib/teardown.ts';
import { whyNotSyncing } from './observability/readiness.ts';
import { openOpsPort } from './operations/ops-port.ts';
import { secureDataDir } from './process/data-dir.ts';
import type { Log } from './process/log.ts';
import { watchProcess } from './process/process-metrics.ts';
import { startOrRelease } from './process/start.ts';
import { openShop, startBackgroundWork } from './shop.ts';
import { settingsOfSync } from './stores/shared-settings.ts';
import { StoreWatch } from './stores/store-watch.ts';

export interface RunningSyncProcess {
  readonly opsUrl: string;
  /** Resolves with the reason if the process can't go on. A loop that fails and starts again does not count. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/** @throws as `openShop`, and StockadeError `port_in_use` */
export function startSyncProcess(config: Config, log: Log): Promise<RunningSyncProcess> {
  return startOrRelease(log, (teardown) => start(config, log, teardown));
}

async function start(config: Config, log: Log, teardown: Teardown): Promise<RunningSyncProcess> {
  secureDataDir(config, log);
  const registry = new Registry();
  watchProcess(registry);
  const parts = { config, log, registry };
  const { stores, watch: shop } = await openShop(parts, settingsOfSync(), teardown);
  await startBackgroundWork({ ...parts, stores }, teardown);
  const watch = new StoreWatch(stores);
  let stopping = false;
  const ops = await openOpsPort(config, log, {
    metrics: () => registry.metrics(),
    settingsDiffer: () => shop.differences,
    notReady: async () => (stopping ? 'stopping' : whyNotSyncing(watch)),
  });
  teardown.add(() => ops.stop(), config.shutdownGraceMs);
  return {
    opsUrl: ops.url,
    failed: Promise.race([stores.failed, shop.storesChanged]),
    async stop() {
      stopping = true;
      await teardown.release();
    },
  };
}
