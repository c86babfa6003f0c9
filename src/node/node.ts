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
import { httpUrl, isUnprotected, notesInPublic, paysInPublic } from '../config/values/hosts.ts';
import type { Board } from '../engine/board/board.ts';
import type { Teardown } from '../lib/teardown.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { SaleOperations } from '../operations/sale-operations.ts';
import type { LeaseEnd } from '../postgres/lease-end.ts';
import { orderIdKey } from '../postgres/shared-keys.ts';
import { WorkerLeases } from '../postgres/worker-leases.ts';
import { ConsoleFeed } from './console/console-feed.ts';
import { nodeSources } from './console/node-sources.ts';
import { lostOrderNames } from './lost-order-names.ts';
import { NodeMetrics } from './observability/node-metrics.ts';
import { whyNotSelling } from './observability/readiness.ts';
import { operationsOn } from './operations/operations.ts';
import { openOpsPort } from './operations/ops-port.ts';
import { openProbePort, type ProbedProcess } from './operations/probe-port.ts';
import { secureDataDir } from './process/data-dir.ts';
import { workersPossible } from './process/http-server.ts';
import { type Log, writesToStderr } from './process/log.ts';
import { connectionsWithin, openFilesLimit } from './process/open-files.ts';
import { claimPort } from './process/ports.ts';
import { startOrRelease } from './process/start.ts';
import type { SaleDirectory } from './sale-directory.ts';
import { openDirectory, openShop, startBackgroundWork } from './shop.ts';
import { settingsOfNode } from './stores/shared-settings.ts';
import { StoreWatch } from './stores/store-watch.ts';
import { redisOptions, type Stores } from './stores/stores.ts';
import { type AdmissionSettings, admissionSettings } from './worker/admission.ts';
import { watchLoad } from './worker/load.ts';
import { startThread } from './worker/threads.ts';
import { type RunningWorker, startWorker, type WorkerParts, type WorkerSettings } from './worker/worker.ts';

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
  /** Resolves with the reason if a part fails that the node can't run without. */
  readonly failed: Promise<Error>;
  /** Requests at both ports that are not answered yet; `undefined` if a worker does not report its number at once. */
  underWay(): Promise<number | undefined>;
  /** From now on `/readyz` says that the node stops; it sells as before. */
  leave(): void;
  stop(): Promise<void>;
}

/** @throws as `openShop`, and StockadeError `port_in_use`, `no_worker_numbers` */
export function startNode(config: Config, log: Log): Promise<RunningNode> {
  return startOrRelease(log, (teardown) => start(config, log, teardown));
}

async function start(wanted: Config, log: Log, teardown: Teardown): Promise<RunningNode> {
  const config = { ...wanted, workers: await workersPossible(wanted, log) };
  warnOfUnprotectedKeys(config, log);
  secureDataDir(config, log);
  warnOfPublicPayment(config, log);
  warnOfPublicNotes(config, log);
  const probed: ProbedProcess = { stage: 'starting' };
  const probeUrl = await openProbePort(config, log, probed, teardown);
  const parts = { config, log, registry: new Registry() };
  const { stores, watch: shop } = await openShop(parts, settingsOfNode(config), teardown);
  const workers: RunningWorker[] = [];
  const drainables: Drainable[] = [];
  if (config.sync) await startBackgroundWork({ ...parts, stores, load: watchLoad(workers) }, teardown);
  const { board, directory } = await openDirectory(stores, teardown);
  const metrics = new NodeMetrics(parts.registry, {
    board,
    backend: stores.backend,
    directory,
    workers: () => Promise.all(workers.map((worker) => worker.metrics())),
  });

  const uncommitted = lostOrderNames(stores.db, log);
  const failures = [
    stores.failed,
    shop.storesChanged,
    ...(await startWorkers(
      { config, log, stores, board, directory, uncommitted, workers, drainables },
      teardown,
    )),
  ];
  const port = workers[0]!.port;
  const watch = new StoreWatch(stores);
  const services = operationsOn(stores, (purchase) => workers[0]!.buy(purchase));
  const notReady = async () => (probed.stage === 'stopping' ? 'stopping' : whyNotSelling(watch, workers));
  const consoles = new ConsoleFeed(
    nodeSources({
      ...{ db: stores.db, backend: stores.backend, sales: services.sales, notReady },
      registry: parts.registry,
      workers: () => Promise.all(workers.map((worker) => worker.metrics())),
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
  Object.assign(probed, { stage: 'running', notReady });
  const leave = () => {
    probed.stage = 'stopping';
  };
  return {
    publicUrl: httpUrl(config.host, port),
    opsUrl: ops.url,
    opsToken: ops.token,
    probeUrl,
    backendName: stores.backendName,
    databaseName: stores.databaseName,
    sales: services.sales,
    failed: Promise.race(failures),
    async underWay() {
      const counts = Promise.all(workers.map((worker) => worker.metrics()));
      const known = await withTimeout(UNDER_WAY_WAIT_MS, counts).catch(() => undefined);
      return known?.reduce((sum, { underWay }) => sum + underWay, ops.underWay());
    },
    leave,
    async stop() {
      leave();
      consoles.stop();
      await teardown.release();
    },
  };
}

/** A worker or the ops port: it answers the requests under way before it stops. */
type Drainable = Pick<RunningWorker, 'stopListening' | 'stop'>;

interface WorkerStart {
  readonly config: Config;
  readonly log: Log;
  readonly stores: Stores;
  readonly board: Board;
  readonly directory: SaleDirectory;
  readonly uncommitted: WorkerParts['uncommitted'];
  /** Each worker is added when it has started, so that the metrics cover those that run. */
  readonly workers: RunningWorker[];
  /** Each worker, and the ops port, is added when it has opened. All are drained at the same time: they share one grace time. */
  readonly drainables: Drainable[];
}

/** @returns promises that resolve with the reason when a part fails */
async function startWorkers(parts: WorkerStart, teardown: Teardown): Promise<Promise<Error>[]> {
  const { config, log, stores, workers, drainables } = parts;
  const leases = await WorkerLeases.take(stores.db, config.workers);
  teardown.add(() => leases.release());
  teardown.add(() => Promise.all(drainables.map((each) => each.stop())), config.shutdownGraceMs);
  teardown.add(() => Promise.all(drainables.map((each) => each.stopListening())));
  const shared = {
    orderIdKey: await orderIdKey(stores.db),
    admission: await admissionSettings(config, stores.db),
  };
  const failures: Promise<Error>[] = [leases.lost];
  const maxConnections = connectionsOf(config, log);
  const port = await claimPort(config.host, config.port);
  for (const worker of leases.numbers) {
    const settings = workerSettings({ ...config, maxConnections }, port, worker, leases.end, shared);
    if (config.redisUrl) {
      const thread = await inThread(parts, settings);
      workers.push(thread);
      failures.push(thread.failed);
    } else workers.push(await startWorker({ ...parts, ...stores, settings }));
    drainables.push(workers.at(-1)!);
  }
  const renewed = (leaseEnd: LeaseEnd) => {
    for (const worker of workers) worker.renewed(leaseEnd);
  };
  leases.onRenewed(renewed);
  // The leases may have been renewed while the workers started.
  renewed(leases.end);
  return failures;
}

function warnOfUnprotectedKeys({ buyerAuth, jwtJwksUrl }: Config, log: Log): void {
  if (buyerAuth !== 'jwt' || jwtJwksUrl === undefined || !isUnprotected(jwtJwksUrl.reveal())) return;
  log.warn(
    { jwksUrl: jwtJwksUrl },
    "the keys that verify buyers' tokens are fetched without TLS from another machine: use https in JWT_JWKS_URL",
  );
}

function warnOfPublicPayment(config: Config, log: Log): void {
  if (!paysInPublic(config)) return;
  log.warn(
    { host: config.host },
    'PUBLIC_PAYMENT=1: every buyer who reaches HOST can mark orders paid and redeemed without paying: unset it',
  );
}

function warnOfPublicNotes(config: Config, log: Log): void {
  if (!notesInPublic(config)) return;
  log.warn(
    { host: config.host },
    'PUBLIC_ORDER_NOTES=1: every buyer who reaches HOST can store a reference and metadata with its orders: unset it, unless only the shop’s own systems reach HOST',
  );
}

/** MAX_CONNECTIONS, or less if the process may not have that many files open. */
function connectionsOf({ maxConnections }: Config, log: Log): number {
  const openFiles = openFilesLimit();
  const possible = connectionsWithin(openFiles);
  if (possible >= maxConnections) return maxConnections;
  log.warn(
    { openFiles, maxConnections, possible },
    'the limit of open files allows fewer connections than MAX_CONNECTIONS',
  );
  return possible;
}

function inThread(
  { config, log, stores, board, directory, uncommitted, workers }: WorkerStart,
  settings: WorkerSettings,
) {
  return startThread(
    {
      // Not by its leased number, which is another one after each start.
      name: `worker-${workers.length}`,
      settings,
      redis: redisOptions(config),
      strategy: config.strategy,
      lockWork: config.lockWork,
      databaseUrl: stores.databaseUrl,
      board: board.buffer,
      logLevel: config.logLevel,
      logToStderr: writesToStderr(log),
    },
    directory,
    uncommitted,
  );
}

function workerSettings(
  config: Config,
  port: number,
  worker: number,
  leaseEnd: LeaseEnd,
  shared: { readonly orderIdKey: Uint8Array; readonly admission: AdmissionSettings },
): WorkerSettings {
  const jwt = config.buyerAuth === 'jwt';
  return {
    host: config.host,
    port,
    isShared: config.workers > 1,
    httpServer: config.httpServer,
    corsOrigins: config.corsOrigins,
    jwt: jwt
      ? {
          secret: config.jwtSecret?.reveal(),
          jwksUrl: config.jwtJwksUrl?.reveal(),
          audience: config.jwtAudience,
          issuer: config.jwtIssuer,
          timeoutMs: config.requestDeadlineMs,
        }
      : undefined,
    publicPayment: config.publicPayment,
    publicOrderNotes: config.publicOrderNotes,
    isBehindGateway: config.trustBuyerHeader,
    requestDeadlineMs: config.requestDeadlineMs,
    laneCapacity: config.laneCapacity,
    maxConnections: Math.ceil(config.maxConnections / config.workers),
    shutdownGraceMs: config.shutdownGraceMs,
    worker,
    leaseEnd,
    ...shared,
  };
}
