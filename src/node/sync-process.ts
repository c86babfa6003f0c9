/** `stockade sync`: what carries the order logs in a node, by itself, with an ops port that tells how it does. */
import { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import { Teardown } from '../lib/teardown.ts';
import { whyNotSyncing } from './observability/readiness.ts';
import { openOpsPort } from './operations/ops-port.ts';
import { openDataDir } from './process/data-dir.ts';
import type { Log } from './process/log.ts';
import { watchProcess } from './process/process-metrics.ts';
import { carryOrders, openShop } from './shop.ts';
import { settingsOfSync } from './stores/shared-settings.ts';
import { StoreWatch } from './stores/store-watch.ts';

export interface RunningSyncProcess {
  readonly opsUrl: string;
  /** Resolves with the reason if sync can't go on; a loop that fails and starts again is no reason. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/** @throws as `openShop`, and StockadeError `port_in_use` */
export async function startSyncProcess(config: Config, log: Log): Promise<RunningSyncProcess> {
  const teardown = new Teardown((error) => log.error({ err: error }, 'an orderly end failed'));
  try {
    openDataDir(config, log);
    const registry = new Registry();
    watchProcess(registry);
    const parts = { config, log, registry };
    const { stores, watch: shop } = await openShop(parts, settingsOfSync(), teardown);
    await carryOrders({ ...parts, stores }, teardown);
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
