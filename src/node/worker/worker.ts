/**
 * One worker: an engine and its buyers' port. Runs in the main thread on the in-process backend, and in a thread of its
 * own for each worker on Redis (worker-thread.ts).
 */
import { getHeapStatistics } from 'node:v8';
import { parseOrigins } from '../../admission/origins.ts';
import type { PurchaseTokens } from '../../admission/purchase-token.ts';
import type { Config } from '../../config/config.ts';
import type { Board } from '../../engine/board/board.ts';
import type { Directory } from '../../engine/board/directory.ts';
import type { Backend, Outcome, Purchase } from '../../engine/contract.ts';
import { QUEUE_SHARE } from '../../engine/limits.ts';
import { countRefills } from '../../engine/purchase/counted-refills.ts';
import type { Engine } from '../../engine/purchase/engine.ts';
import type { TakenOrder } from '../../engine/purchase/uncommitted-orders.ts';
import { unitsLeft } from '../../engine/sale/units-left.ts';
import {
  type Authenticate,
  headerIdentity,
  type JwtOptions,
  jwtIdentity,
} from '../../http/identity/identity.ts';
import { onlyFromThisMachine } from '../../http/identity/local-site.ts';
import { servePublic } from '../../http/public/public-server.ts';
import type { RateLimitCounts } from '../../http/public/rate-limits.ts';
import type { PublicSale } from '../../http/public/sale-route.ts';
import { type ConnectionCounts, Connections } from '../../http/server/connections.ts';
import { Cors } from '../../http/server/cors.ts';
import { RequestStats, type RequestStatsData } from '../../http/server/request-stats.ts';
import { Bulkhead } from '../../lib/bulkhead.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { readOrder } from '../../orders/order-reader.ts';
import { OrderService } from '../../orders/order-service.ts';
import { readOwnOrders, readOwnOrdersOfSale } from '../../orders/own-orders.ts';
import type { Database } from '../../postgres/database.ts';
import { isLeased, type LeaseEnd } from '../../postgres/lease-end.ts';
import { OlderNodes } from '../../postgres/older-nodes.ts';
import { chooseHttpServer } from '../process/http-server.ts';
import type { Log } from '../process/log.ts';
import { AcceptedOrders } from './accepted-orders.ts';
import { type AdmissionSettings, openAdmission, TokenCounts } from './admission.ts';
import { busyShareOf } from './load.ts';
import { type EngineParts, startEngine } from './start-engine.ts';

/** A worker's settings. They cross a thread boundary, so they are plain values only. */
export interface WorkerSettings {
  readonly host: string;
  readonly port: number;
  /** Other workers listen on the same port. */
  readonly isShared: boolean;
  readonly httpServer: Config['httpServer'];
  readonly corsOrigins: string | undefined;
  /** `undefined` if the `X-Buyer-Id` header names the buyer. */
  readonly jwt: JwtOptions | undefined;
  readonly publicPayment: boolean;
  readonly publicOrderNotes: boolean;
  /** TRUST_BUYER_HEADER: a gateway in front of this port sets that header. */
  readonly isBehindGateway: boolean;
  readonly requestDeadlineMs: number;
  readonly laneCapacity: number;
  /** This worker's share of MAX_CONNECTIONS. */
  readonly maxConnections: number;
  readonly shutdownGraceMs: number;
  readonly worker: number;
  readonly orderIdKey: Uint8Array;
  readonly leaseEnd: LeaseEnd;
  readonly admission: AdmissionSettings;
}

export interface WorkerParts {
  readonly settings: WorkerSettings;
  readonly backend: Backend;
  readonly directory: Directory;
  readonly board: Board;
  readonly db: Database;
  readonly log: Log;
  /** As `EngineOptions.onUncommitted`. */
  readonly uncommitted: (saleId: string, orders: readonly TakenOrder[]) => void;
}

export interface WorkerMetrics {
  readonly requests: RequestStatsData;
  readonly limits: RateLimitCounts;
  /** Requests for purchase tokens by outcome. */
  readonly tokens: Readonly<Record<string, number>>;
  /** Batches that needed a refill. */
  readonly refills: number;
  readonly connections: ConnectionCounts;
  /** Requests that are not answered yet. */
  readonly underWay: number;
  /** Heap of the thread, including garbage that is not collected yet. */
  readonly heapBytes: number;
  /** Those of a worker in a thread of its own. */
  readonly thread?: readonly object[];
  readonly lanes: readonly { readonly saleId: string; readonly queued: number; readonly waiting: number }[];
}

export interface RunningWorker {
  readonly number: number;
  readonly port: number;
  /** Why it can't sell now, as the end of a sentence that begins with "worker 7"; `undefined` if it can. */
  notReady(): Promise<string | undefined>;
  /** The purchase's outcome, as for a buyer of this worker. */
  buy(purchase: Purchase): Promise<Outcome>;
  metrics(): Promise<WorkerMetrics>;
  /** Share of the time since the last call, 0 to 1, in which its thread was busy. */
  busyShare(): number;
  /** The worker's number was renewed. */
  renewed(leaseEnd: LeaseEnd): void;
  /** Accepts no new connections. Call it on all workers of a port before one of them is stopped (http/server/listener.ts). */
  stopListening(): Promise<void>;
  /** Answers the requests under way, then closes everything. */
  stop(): Promise<void>;
}

/** How many single orders are read or changed at a time: enough to keep both connections to Postgres busy. */
const PARALLEL_ORDER_WORK = 16;
const WAITING_ORDER_WORK_MAX = 4_096;

export async function startWorker(parts: WorkerParts): Promise<RunningWorker> {
  const { settings, backend, db, log } = parts;
  const stats = new RequestStats();
  const tokenCounts = new TokenCounts();
  const {
    limits,
    connections: bound,
    tokens,
    challenge,
  } = await openAdmission(settings.admission, (error) =>
    log.error({ err: error }, 'the challenge failed, so a buyer got no purchase token'),
  );
  let { leaseEnd } = settings;
  const counted = countRefills(backend);
  const engine = await startEngine({
    ...engineParts(parts, tokens, stats),
    backend: counted.backend,
    leaseEnd: () => leaseEnd,
  });
  const buy = (purchase: Purchase) => engine.purchase(purchase);
  const connections = new Connections(settings.maxConnections, bound);
  const orderWork = {
    parallel: PARALLEL_ORDER_WORK,
    maxWaiting: WAITING_ORDER_WORK_MAX,
    maxWaitMs: settings.requestDeadlineMs * QUEUE_SHARE,
  };
  const bulkhead = new Bulkhead(orderWork);
  const orders = new OrderService({
    db,
    backend,
    // A late payment waits for the commit of its purchase. Meanwhile it must not use up the room of other orders.
    buy: (purchase) => bulkhead.aside(() => buy(purchase)),
  });
  const readBulkhead = new Bulkhead(orderWork);
  const accepted = new AcceptedOrders({
    db,
    engine,
    guarded: (work) => readBulkhead.run(work),
    saleMs: settings.requestDeadlineMs / 4,
  });
  const olderNodes = new OlderNodes(db);
  const server = await chooseHttpServer(settings.httpServer);
  const listener = await servePublic(
    {
      authenticate: limits.limitBuyers(authentication(settings, log)),
      gate: limits.gate,
      cors: corsOf(settings),
      publicPayment: settings.publicPayment,
      publicOrderNotes: settings.publicOrderNotes,
      olderNodesRun: () => olderNodes.areRunning(),
      engine,
      tokens,
      challenge,
      readRecord: async (saleId) => (await engine.view(saleId))?.record,
      tokenAnswered: (outcome) => tokenCounts.answered(outcome),
      answered: (outcome, ms) => stats.answered(outcome, ms),
      // Half of the deadline for the counters: if they can't be read, there is time to show the sale without them.
      readSale: (saleId) => publicSale(engine, backend, saleId, settings.requestDeadlineMs / 2),
      readOrder: (orderId) => bulkhead.run(() => readOrder(db, orderId)),
      changeOrder: (orderId, change, buyerId) =>
        bulkhead.run(() => orders.changeOrder(orderId, change, buyerId)),
      ownOrders: (buyerId, query) => bulkhead.run(() => readOwnOrders(db, buyerId, query)),
      ownOrdersOfSale: (saleId, buyerId, query) =>
        bulkhead.run(() =>
          readOwnOrdersOfSale(db, { saleId, buyerId }, query, () => engine.recordOf(saleId, buyerId)),
        ),
      findAccepted: (buyerId, orderId) => accepted.find(buyerId, orderId),
      readDeadlineMs: settings.requestDeadlineMs,
      fault: (error) => log.error({ err: error }, 'a request failed'),
    },
    server.open,
    settings,
    connections,
  );
  return {
    number: settings.worker,
    port: listener.port,
    async notReady() {
      if (!backend.takes.ready) return 'has no connection to Redis';
      return isLeased(leaseEnd) ? undefined : 'could not renew the lease of its number';
    },
    busyShare: busyShareOf(performance),
    buy,
    metrics: async () => ({
      requests: stats.data(),
      limits: limits.counts(),
      tokens: tokenCounts.data(),
      refills: counted.refills(),
      lanes: [...engine.laneDepths()],
      connections: connections.counts(),
      underWay: listener.underWay(),
      heapBytes: getHeapStatistics().used_heap_size,
    }),
    renewed(end) {
      leaseEnd = end;
    },
    async stopListening() {
      listener.stopListening();
    },
    async stop() {
      const deadline = monotonicMs() + settings.shutdownGraceMs;
      await listener.drain(settings.shutdownGraceMs);
      // After the drain every connection is closed, so no client needs the outcome of a purchase that is still under way.
      await withTimeout(Math.max(0, deadline - monotonicMs()), engine.close()).catch(() => {});
    },
  };
}

function engineParts(
  { settings, directory, board, log, uncommitted }: WorkerParts,
  tokens: Pick<PurchaseTokens, 'check'>,
  stats: RequestStats,
): Omit<EngineParts, 'backend' | 'leaseEnd'> {
  return {
    directory,
    board,
    worker: settings.worker,
    orderIdKey: settings.orderIdKey,
    requestDeadlineMs: settings.requestDeadlineMs,
    laneCapacity: settings.laneCapacity,
    checkToken: (purchase, generation) => {
      const verdict = tokens.check(purchase.token ?? '', purchase, generation);
      return verdict === 'genuine' ? undefined : verdict;
    },
    onBatch: (orders) => stats.batchSent(orders),
    onUncommitted: uncommitted,
    onFault: (error, saleId, segment) =>
      log.error({ err: error, saleId, segment }, 'a batch of purchases failed'),
    onForeign: (error) =>
      log.warn({ err: error }, 'ignored a message in Redis that this version does not send'),
  };
}

function authentication({ jwt, isBehindGateway }: WorkerSettings, log: Log): Authenticate {
  // Without a gateway, the settings allow the port on the loopback only (config/relations.ts).
  if (!jwt) return isBehindGateway ? headerIdentity() : onlyFromThisMachine(headerIdentity());
  return jwtIdentity(jwt, (error) => log.error({ err: error }, "buyers' tokens can't be checked"));
}

async function publicSale(
  engine: Engine,
  backend: Backend,
  saleId: string,
  snapshotMs: number,
): Promise<PublicSale | undefined> {
  const view = await engine.view(saleId);
  if (!view) return undefined;
  const { sale, generation } = view.record;
  const reading = backend.sales.snapshot(sale.id, sale.segments, generation);
  const segments = await withTimeout(snapshotMs, reading).catch(() => []);
  return { record: view.record, remaining: unitsLeft(segments) };
}

function corsOf({ corsOrigins }: WorkerSettings): Cors | undefined {
  const origins = corsOrigins === undefined ? undefined : parseOrigins(corsOrigins);
  return origins && new Cors(origins);
}
