/**
 * One worker: an engine and its buyers' port. Runs in the main thread on the in-process backend, and in a thread of its
 * own for each worker on Redis (worker-thread.ts).
 */
import { getHeapStatistics } from 'node:v8';
import type { PurchaseTokens } from '../../admission/purchase-token.ts';
import type { Board } from '../../engine/board/board.ts';
import type { Directory } from '../../engine/board/directory.ts';
import type { Backend, Outcome, Purchase } from '../../engine/contract.ts';
import type { TakenOrder } from '../../engine/purchase/uncommitted-orders.ts';
import { servePublic } from '../../http/public/public-server.ts';
import type { RateLimitCounts } from '../../http/public/rate-limits.ts';
import { type ConnectionCounts, Connections } from '../../http/server/connections.ts';
import {
  type PlaceAnswerCounts,
  PlaceAnswers,
  RequestStats,
  type RequestStatsData,
} from '../../http/server/request-stats.ts';
import type { ListenerCounts } from '../../http/streams/listeners.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import type { Database } from '../../postgres/database.ts';
import { isLeased, type LeaseEnd } from '../../postgres/lease-end.ts';
import type { WatchedQueue } from '../../queue/buyers/queue-watch.ts';
import { NO_SPANS, type SpanCounts } from '../../traces/span-queue.ts';
import { Traces } from '../../traces/traces.ts';
import { chooseHttpServer } from '../process/http-server.ts';
import type { Log } from '../process/log.ts';
import { openAdmission, TokenCounts } from './admission.ts';
import { busyShareOf } from './load.ts';
import { publicHost } from './public-host.ts';
import { QueueWork } from './queue-work.ts';
import { type EngineParts, startEngine } from './start-engine.ts';
import type { WorkerSettings } from './worker-settings.ts';

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
  readonly listeners: ListenerCounts;
  readonly spans: SpanCounts;
  /** Requests that are not answered yet, without streams. */
  readonly underWay: number;
  /** Heap of the thread, including garbage that is not collected yet. */
  readonly heapBytes: number;
  /** The metrics of its thread, as prom-client exports them; missing if the worker runs in the main thread. */
  readonly thread?: readonly object[];
  readonly lanes: readonly { readonly saleId: string; readonly queued: number; readonly waiting: number }[];
  readonly places: PlaceWork;
}

/** What a worker does for those who have places in queues. */
export interface PlaceWork {
  readonly answers: PlaceAnswerCounts;
  /** Open streams of places. */
  readonly listeners: number;
  /** The queues that somebody asks for now. */
  readonly queues: readonly WatchedQueue[];
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

export async function startWorker(parts: WorkerParts): Promise<RunningWorker> {
  const { settings, backend, db, log } = parts;
  const stats = new RequestStats();
  const tokenCounts = new TokenCounts();
  const placeAnswers = new PlaceAnswers();
  const admission = await openAdmission(settings.admission, (error) =>
    log.error({ err: error }, 'the challenge failed, so a buyer got no purchase token'),
  );
  const traces = await Traces.open(settings.traces, log);
  let { leaseEnd } = settings;
  let refills = 0;
  const engine = await startEngine({
    ...engineParts(parts, admission.tokens, stats),
    leaseEnd: () => leaseEnd,
    onRefill: () => {
      refills++;
    },
  });
  const connections = new Connections(settings.maxConnections, admission.connections);
  const server = await chooseHttpServer(settings.httpServer);
  const queueWork = new QueueWork({
    ...{ backend, db, requestDeadlineMs: settings.requestDeadlineMs },
    fault: (error) => log.error({ err: error }, 'work on a queue failed'),
  });
  const counts = { stats, tokenCounts, placeAnswers };
  const host = publicHost({ ...parts, ...counts, engine, admission, traces, queueWork });
  const listener = await servePublic(host, server.open, settings, connections);
  return {
    number: settings.worker,
    port: listener.port,
    async notReady() {
      if (!backend.takes.ready) return 'has no connection to Redis';
      return isLeased(leaseEnd) ? undefined : 'could not renew the lease of its number';
    },
    busyShare: busyShareOf(performance),
    buy: (purchase) => engine.purchase(purchase),
    metrics: async () => {
      const listeners = listener.listeners();
      return {
        requests: stats.data(),
        limits: admission.limits.counts(),
        tokens: tokenCounts.data(),
        refills,
        lanes: [...engine.laneDepths()],
        places: {
          answers: placeAnswers.data(),
          listeners: listener.placeListeners(),
          queues: queueWork.queue.watched(),
        },
        connections: connections.counts(),
        listeners,
        spans: traces?.counts ?? NO_SPANS,
        // A stop ends streams at once, and waits for the others.
        underWay: Math.max(0, listener.underWay() - listeners.open),
        heapBytes: getHeapStatistics().used_heap_size,
      };
    },
    renewed(end) {
      leaseEnd = end;
    },
    async stopListening() {
      listener.stopListening();
    },
    async stop() {
      const deadline = monotonicMs() + settings.shutdownGraceMs;
      await listener.drain(settings.shutdownGraceMs);
      await queueWork.queue.stop();
      // After the drain every connection is closed, so no client needs the outcome of a purchase that is still under way.
      await withTimeout(Math.max(0, deadline - monotonicMs()), engine.close()).catch(() => {});
      await traces?.close();
    },
  };
}

function engineParts(
  { settings, backend, directory, board, log, uncommitted }: WorkerParts,
  tokens: Pick<PurchaseTokens, 'check'>,
  stats: RequestStats,
): Omit<EngineParts, 'leaseEnd'> {
  return {
    backend,
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
