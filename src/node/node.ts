/**
 * A whole node: a shop (shop.ts) in the main thread; workers with the buyers' port; the operators' port. It starts its
 * parts in this order:
 *
 *   probe port -> shop (every sale is in the backend) -> worker numbers -> workers -> ops port
 *
 * It stops them in the reverse order, both ports together: each port answers the requests that it has accepted before sync,
 * the directory and the stores are closed.
 */
import { Registry } from 'prom-client';
import type { Config } from '../config/config.ts';
import { httpUrl } from '../config/values/hosts.ts';
import type { Teardown } from '../lib/teardown.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { SaleOperations, SaleStatus } from '../operations/sale-operations.ts';
import type { Buy } from '../orders/late-payment.ts';
import { ConsoleFeed } from './console/console-feed.ts';
import { nodeSources } from './console/node-sources.ts';
import { lostOrderNames } from './lost-order-names.ts';
import { watchHead } from './observability/head-watch.ts';
import { NodeMetrics } from './observability/node-metrics.ts';
import { whyNotSelling } from './observability/readiness.ts';
import { WorkerReports } from './observability/worker-reports.ts';
import { openTraces } from './open-traces.ts';
import { operationsOn } from './operations/operations.ts';
import { openOpsPort } from './operations/ops-port.ts';
import { openProbePort } from './operations/probe-port.ts';
import { secureDataDir } from './process/data-dir.ts';
import { workersPossible } from './process/http-server.ts';
import type { Log } from './process/log.ts';
import { Stage } from './process/stage.ts';
import { startOrRelease } from './process/start.ts';
import { startQueueHead } from './queue-head.ts';
import { openDirectory, openShop, startBackgroundWork } from './shop.ts';
import { settingsOfNode } from './stores/shared-settings.ts';
import { StoreWatch } from './stores/store-watch.ts';
import { warnOfExposure } from './warnings.ts';
import { watchLoad } from './worker/load.ts';
import type { RunningWorker } from './worker/worker.ts';
import { type Drainable, startWorkers } from './workers.ts';

/** At a stop, the workers have this long to say how many requests they still have to answer. */
const UNDER_WAY_WAIT_MS = 200;

export interface RunningNode {
  readonly publicUrl: string;
  readonly opsUrl: string;
  readonly opsToken: string;
  readonly probeUrl: string | undefined;
  readonly backendName: string;
  readonly databaseName: string;
  readonly sales: SaleOperations;
  /** Units left in each segment of a sale, at one instant, as the backend counts them. */
  unitsLeft(sale: Pick<SaleStatus, 'id' | 'segments' | 'generation'>): Promise<readonly number[]>;
  /** Resolves with the reason if a part fails that the node can't run without. */
  readonly failed: Promise<Error>;
  /** Requests at both ports that are not answered yet, without streams; `undefined` if a worker does not report its number at once. */
  underWay(): Promise<number | undefined>;
  /** From now on `/readyz` says that the node stops; it sells as before. */
  leave(): void;
  stop(): Promise<void>;
}

/**
 * @param signal gives up a start that waits for the stores
 * @throws as `openShop`, and StockadeError `port_in_use`, `no_worker_numbers`
 */
export function startNode(config: Config, log: Log, signal?: AbortSignal): Promise<RunningNode> {
  return startOrRelease(log, (teardown) => start(config, log, teardown, signal), signal);
}

async function start(
  wanted: Config,
  log: Log,
  teardown: Teardown,
  signal: AbortSignal | undefined,
): Promise<RunningNode> {
  const config = { ...wanted, workers: await workersPossible(wanted, log) };
  secureDataDir(config, log);
  warnOfExposure(config, log);
  const stage = new Stage();
  const probeUrl = await openProbePort(config, log, stage, teardown);
  const parts = { config, log, registry: new Registry() };
  const { stores, watch: shop } = await openShop(
    parts,
    { settings: settingsOfNode(config), signal },
    teardown,
  );
  const workers: RunningWorker[] = [];
  const workerMetrics = () => Promise.all(workers.map((worker) => worker.metrics()));
  const traces = await openTraces(config, log, teardown);
  if (config.sync)
    await startBackgroundWork({ ...parts, stores, load: watchLoad(workers), traces }, teardown);
  const { board, directory } = await openDirectory(stores, teardown);
  const reports = new WorkerReports(workers, parts.registry);
  const metrics = new NodeMetrics(parts.registry, {
    ...{ board, backend: stores.backend, directory },
    workers: () => reports.read(),
    spans: () => traces?.counts,
  });
  const drainables: Drainable[] = [];
  const uncommitted = lostOrderNames(stores.db, log);
  const workersFailed = await startWorkers(
    { config, log, stores, board, directory, uncommitted, workers, drainables },
    teardown,
  );
  const buy: Buy = (purchase) => workers[0]!.buy(purchase);
  startQueueHead(stores, buy, watchHead(log, parts.registry), teardown);
  const services = operationsOn(stores, buy);
  const notReady = () => stage.notReady();
  const consoles = new ConsoleFeed(
    nodeSources({
      ...{ db: stores.db, backend: stores.backend, sales: services.sales, notReady },
      registry: parts.registry,
      workers: workerMetrics,
      processes: () => shop.processes(),
    }),
  );
  const ops = await openOpsPort(config, log, {
    ...services,
    console: consoles,
    metrics: () => metrics.text(),
    settingsDiffer: () => shop.differences,
    notReady,
  });
  drainables.push(ops);
  const watch = new StoreWatch(stores);
  stage.run(() => whyNotSelling(watch, workers));
  return {
    publicUrl: httpUrl(config.host, workers[0]!.port),
    opsUrl: ops.url,
    opsToken: ops.token,
    probeUrl,
    backendName: stores.backendName,
    databaseName: stores.databaseName,
    sales: services.sales,
    async unitsLeft({ id, segments, generation }) {
      const snapshots = await stores.backend.sales.snapshot(id, segments, generation);
      return snapshots.map(({ counters }) => counters?.left ?? 0);
    },
    failed: Promise.race([stores.failed, shop.storesChanged, ...workersFailed]),
    async underWay() {
      const known = await withTimeout(UNDER_WAY_WAIT_MS, workerMetrics()).catch(() => undefined);
      const atOps = Math.max(0, ops.underWay() - consoles.consoles);
      return known?.reduce((sum, { underWay }) => sum + underWay, atOps);
    },
    leave: () => stage.stop(),
    async stop() {
      stage.stop();
      consoles.stop();
      await teardown.release();
    },
  };
}
