/**
 * A whole node: stores, sync, directory and board in the main thread; workers with the buyers' port; the operators' port.
 *
 *   stores -> migrate -> worker numbers -> sync (every sale is in the backend) -> directory -> workers -> ops port
 *
 * It ends the other way round, both ports at once: what they have accepted is answered before sync, the directory and the
 * stores go.
 */
import type { Config } from '../config/config.ts';
import { httpUrl, isUnprotected, paysInPublic } from '../config/values/hosts.ts';
import { Board } from '../engine/board/board.ts';
import { Teardown } from '../lib/teardown.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import type { SaleOperations } from '../operations/sale-operations.ts';
import { Expiry } from '../orders/expiry.ts';
import type { LeaseEnd } from '../postgres/lease-end.ts';
import { orderIdKey } from '../postgres/shared-keys.ts';
import { WorkerLeases } from '../postgres/worker-leases.ts';
import { readSale } from '../sales/sale-rows.ts';
import { Sync } from '../sync/sync.ts';
import { startEventRelay } from './event-relay.ts';
import { lostOrderNames } from './lost-order-names.ts';
import { watchExpiry } from './observability/expiry-watch.ts';
import { NodeMetrics } from './observability/node-metrics.ts';
import { whyNotSelling } from './observability/readiness.ts';
import { watchSync } from './observability/sync-watch.ts';
import { boundedEvents } from './operations/bounded-events.ts';
import { boundedOperations } from './operations/bounded-operations.ts';
import { boundedOrders } from './operations/bounded-orders.ts';
import { openOpsPort } from './operations/ops-port.ts';
import { openDataDir } from './process/data-dir.ts';
import { workersPossible } from './process/http-server.ts';
import { type Log, writesToStderr } from './process/log.ts';
import { connectionsWithin, openFilesLimit } from './process/open-files.ts';
import { claimPort } from './process/ports.ts';
import { SaleDirectory } from './sale-directory.ts';
import { ShopWatch } from './shop-watch.ts';
import { keepFromEviction } from './stores/eviction-watch.ts';
import { prepareDatabase } from './stores/prepare-database.ts';
import { digestKey, settingDigests, settingsOfNode } from './stores/shared-settings.ts';
import { StoreWatch } from './stores/store-watch.ts';
import { openStores, redisOptions, type Stores } from './stores/stores.ts';
import { type AdmissionSettings, admissionSettings } from './worker/admission.ts';
import { watchLoad } from './worker/load.ts';
import { startThread } from './worker/threads.ts';
import { type RunningWorker, startWorker, type WorkerParts, type WorkerSettings } from './worker/worker.ts';

/** Sales that the board has room for in a node's life; those beyond are answered without it. */
const BOARD_SALES = 65_536;

/** A stop does not wait for longer to be able to say how much it waits for. */
const UNDER_WAY_WAIT_MS = 200;

export interface RunningNode {
  readonly publicUrl: string;
  readonly opsUrl: string;
  readonly opsToken: string;
  readonly backendName: string;
  readonly databaseName: string;
  readonly operations: SaleOperations;
  /** Resolves with the reason if a part ends that the node can't do without. */
  readonly failed: Promise<Error>;
  /** Requests at both ports that are not answered yet; `undefined` if the workers don't say so at once. */
  underWay(): Promise<number | undefined>;
  stop(): Promise<void>;
}

/** @throws the stores' errors, ConfigError if Redis may evict keys, or StockadeError `port_in_use`, `data_dir_in_use`, `no_worker_numbers` */
export async function startNode(config: Config, log: Log): Promise<RunningNode> {
  const teardown = new Teardown((error) => log.error({ err: error }, 'an orderly end failed'));
  try {
    return await start(config, log, teardown);
  } catch (error) {
    await teardown.release();
    throw error;
  }
}

async function start(wanted: Config, log: Log, teardown: Teardown): Promise<RunningNode> {
  const config = { ...wanted, workers: await workersPossible(wanted, log) };
  warnOfUnprotectedKeys(config, log);
  openDataDir(config, log);
  warnOfPublicPayment(config, log);
  const stores = await openStores(config, teardown);
  const workers: RunningWorker[] = [];
  const board = new Board(BOARD_SALES);
  const directory = new SaleDirectory(
    stores.backend,
    board,
    async (saleId) => (await readSale(stores.db, saleId)) !== undefined,
  );
  const metrics = new NodeMetrics({
    board,
    backend: stores.backend,
    views: directory.views,
    workers: () => Promise.all(workers.map((worker) => worker.metrics())),
  });
  await keepFromEviction({ config, log, registry: metrics.registry }, teardown);
  await prepareDatabase(stores.db, log);
  await stores.ownership.claim();
  const settings = settingDigests(config, settingsOfNode(config), await digestKey(stores.db));
  const shop = ShopWatch.begin({ stores, settings, log, registry: metrics.registry }, teardown);

  const ports: Port[] = [];
  if (config.sync) {
    const { db, backend, locks } = stores;
    const claim = () => stores.ownership.claim();
    const events = watchSync(log, metrics.registry);
    const load = watchLoad(workers);
    const backpressure = { isLoadHigh: load.isHigh, maxMs: config.syncYieldMs };
    const { syncBatchRows: batchRows, rebalanceEveryMs } = config;
    const sync = new Sync({ db, backend, locks, events, batchRows, rebalanceEveryMs, backpressure, claim });
    await sync.start();
    teardown.add(() => sync.stop());
    await sync.ready;
    const expiry = new Expiry({ db, backend, events: watchExpiry(log, metrics.registry) });
    expiry.start();
    teardown.add(() => expiry.stop());
    const isLoadHigh = () => sync.isBehind || load.isElevated();
    startEventRelay({ config, log, stores, registry: metrics.registry, isLoadHigh }, teardown);
  }
  await directory.start();
  teardown.add(() => directory.stop());

  const outlived = lostOrderNames(stores.db, log);
  const failures = [
    stores.failed,
    shop.strayed,
    ...(await startWorkers({ config, log, stores, board, directory, outlived, workers, ports }, teardown)),
  ];
  const port = workers[0]!.port;
  const watch = new StoreWatch(stores);
  let stopping = false;
  const operations = boundedOperations(stores);
  const ops = await openOpsPort(config, log, {
    operations,
    orders: boundedOrders(stores, (purchase) => workers[0]!.buy(purchase)),
    events: boundedEvents(stores),
    metrics: () => metrics.text(),
    settingsDiffer: () => shop.differences,
    notReady: async () => (stopping ? 'stopping' : whyNotSelling(watch, workers)),
  });
  ports.push(ops);
  return {
    publicUrl: httpUrl(config.host, port),
    opsUrl: ops.url,
    opsToken: ops.token,
    backendName: stores.backendName,
    databaseName: stores.databaseName,
    operations,
    failed: Promise.race(failures),
    async underWay() {
      const counts = Promise.all(workers.map((worker) => worker.metrics()));
      const known = await withTimeout(UNDER_WAY_WAIT_MS, counts).catch(() => undefined);
      return known?.reduce((sum, { underWay }) => sum + underWay, ops.underWay());
    },
    async stop() {
      stopping = true;
      await teardown.release();
    },
  };
}

/** What takes requests, and has to answer those that are under way at the end. */
type Port = Pick<RunningWorker, 'stopListening' | 'stop'>;

interface WorkerStart {
  readonly config: Config;
  readonly log: Log;
  readonly stores: Stores;
  readonly board: Board;
  readonly directory: SaleDirectory;
  readonly outlived: WorkerParts['outlived'];
  /** Filled as they start: the metrics ask those that are there. */
  readonly workers: RunningWorker[];
  /** Filled as they open, and drained together: one grace is enough for all. */
  readonly ports: Port[];
}

/** @returns promises of their failures */
async function startWorkers(parts: WorkerStart, teardown: Teardown): Promise<Promise<Error>[]> {
  const { config, log, stores, workers, ports } = parts;
  const leases = await WorkerLeases.take(stores.db, config.workers);
  teardown.add(() => leases.release());
  teardown.add(() => Promise.all(ports.map((port) => port.stop())), config.shutdownGraceMs);
  teardown.add(() => Promise.all(ports.map((port) => port.stopListening())));
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
    ports.push(workers.at(-1)!);
  }
  const renewed = (leaseEnd: LeaseEnd) => {
    for (const worker of workers) worker.renewed(leaseEnd);
  };
  leases.onRenewed(renewed);
  // Once while they started, perhaps.
  renewed(leases.end);
  return failures;
}

function warnOfUnprotectedKeys({ buyerAuth, jwtJwksUrl }: Config, log: Log): void {
  if (buyerAuth !== 'jwt' || jwtJwksUrl === undefined || !isUnprotected(jwtJwksUrl.reveal())) return;
  log.warn(
    { jwksUrl: jwtJwksUrl },
    "the keys of the buyers' tokens are fetched without TLS from another machine: use https in JWT_JWKS_URL",
  );
}

function warnOfPublicPayment(config: Config, log: Log): void {
  if (!paysInPublic(config)) return;
  log.warn(
    { host: config.host },
    'PUBLIC_PAYMENT=1: every buyer who reaches HOST can mark an order paid and redeemed without paying: unset it',
  );
}

/** MAX_CONNECTIONS, or less where the process may not have so many files open. */
function connectionsOf({ maxConnections }: Config, log: Log): number {
  const openFiles = openFilesLimit();
  const possible = connectionsWithin(openFiles);
  if (possible >= maxConnections) return maxConnections;
  log.warn({ openFiles, maxConnections, possible }, 'fewer connections are served than MAX_CONNECTIONS says');
  return possible;
}

function inThread(
  { config, log, stores, board, directory, outlived }: WorkerStart,
  settings: WorkerSettings,
) {
  return startThread(
    {
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
    outlived,
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
