/** `stockade sync`: the background work of a node without the rest, and an ops port for its metrics and readiness. */
import { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import type { Teardown } from '../lib/teardown.ts';
import { whyNotSyncing } from './observability/readiness.ts';
import { spansJson } from './observability/worker-metrics.ts';
import { openTraces } from './open-traces.ts';
import { openOpsPort } from './operations/ops-port.ts';
import { openProbePort } from './operations/probe-port.ts';
import { secureDataDir } from './process/data-dir.ts';
import type { Log } from './process/log.ts';
import { addBuildInfo, textOf, watchThread } from './process/process-metrics.ts';
import { Stage } from './process/stage.ts';
import { startOrRelease } from './process/start.ts';
import { openShop, startBackgroundWork } from './shop.ts';
import { settingsOfSync } from './stores/shared-settings.ts';
import { StoreWatch } from './stores/store-watch.ts';

export interface RunningSyncProcess {
  readonly opsUrl: string;
  readonly probeUrl: string | undefined;
  /** Resolves with the reason if the process can't go on. A loop that fails and starts again does not count. */
  readonly failed: Promise<Error>;
  stop(): Promise<void>;
}

/**
 * @param signal gives up a start that waits for the stores
 * @throws as `openShop`, and StockadeError `port_in_use`
 */
export function startSyncProcess(config: Config, log: Log, signal: AbortSignal): Promise<RunningSyncProcess> {
  return startOrRelease(log, (teardown) => start(config, log, teardown, signal), signal);
}

async function start(
  config: Config,
  log: Log,
  teardown: Teardown,
  signal: AbortSignal,
): Promise<RunningSyncProcess> {
  secureDataDir(config, log);
  const stage = new Stage();
  const probeUrl = await openProbePort(config, log, stage, teardown);
  const registry = new Registry();
  addBuildInfo(registry);
  const threadMetrics = watchThread('main');
  const parts = { config, log, registry };
  const { stores, watch: shop } = await openShop(parts, { settings: settingsOfSync(), signal }, teardown);
  const traces = await openTraces(config, log, teardown);
  await startBackgroundWork({ ...parts, stores, traces }, teardown);
  const watch = new StoreWatch(stores);
  const ops = await openOpsPort(config, log, {
    metrics: async () =>
      `${await registry.metrics()}\n${await textOf([await threadMetrics(), spansJson(traces?.counts)])}`,
    settingsDiffer: () => shop.differences,
    notReady: () => stage.notReady(),
  });
  teardown.add(() => ops.stop(), config.shutdownGraceMs);
  stage.run(() => whyNotSyncing(watch));
  return {
    opsUrl: ops.url,
    probeUrl,
    failed: Promise.race([stores.failed, shop.storesChanged]),
    async stop() {
      stage.stop();
      await teardown.release();
    },
  };
}
