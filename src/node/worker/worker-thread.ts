/** Entry of a worker thread on the Redis backend. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Config } from '../../config/config.ts';
import { WORKER_CONNECTIONS } from '../../config/postgres-connections.ts';
import { Board } from '../../engine/board/board.ts';
import type { SaleView } from '../../engine/board/directory.ts';
import type { OpenRedisOptions } from '../../engine/cluster/open-redis.ts';
import type { Backend, Purchase } from '../../engine/contract.ts';
import type { TakenOrder } from '../../engine/purchase/uncommitted-orders.ts';
import { PortCalls } from '../../lib/port-calls.ts';
import { openDatabase } from '../../postgres/database.ts';
import type { LeaseEnd } from '../../postgres/lease-end.ts';
import { createLog } from '../process/log.ts';
import { watchThread } from '../process/process-metrics.ts';
import { DirectoryLink } from './directory-link.ts';
import { openEngineBackend } from './open-engine-backend.ts';
import { type RunningWorker, startWorker } from './worker.ts';
import type { WorkerSettings } from './worker-settings.ts';

export interface ThreadData {
  /** The thread's name in metrics. */
  readonly name: string;
  readonly settings: WorkerSettings;
  readonly redis: OpenRedisOptions;
  readonly strategy: Config['strategy'];
  readonly lockWork: Config['lockWork'];
  readonly databaseUrl: string;
  readonly board: SharedArrayBuffer;
  readonly logLevel: Config['logLevel'];
  readonly logToStderr: boolean;
}

const data = workerData as ThreadData;
const threadMetrics = watchThread(data.name);
const calls = new PortCalls(parentPort!, {
  start: () => start(),
  metrics: async () => ({ ...(await worker!.metrics()), thread: await threadMetrics() }),
  notReady: () => worker!.notReady(),
  buy: (purchase: Purchase) => worker!.buy(purchase),
  renewed: (leaseEnd: LeaseEnd) => worker!.renewed(leaseEnd),
  changed: (view: SaleView) => directory.handlers.changed(view),
  gone: (saleId: string) => directory.handlers.gone(saleId),
  stopListening: () => worker!.stopListening(),
  stop: () => stop(),
});
// A thread that ends with open sockets makes Node abort the whole process. So the main thread is told, and stops the node in order.
process.on('uncaughtException', (error: unknown) => {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  void calls.call('threw', { message, stack }).catch(() => {});
});
const directory = new DirectoryLink(calls);
const db = openDatabase({ url: data.databaseUrl, maxConnections: WORKER_CONNECTIONS });
let backend: Backend | undefined;
let worker: RunningWorker | undefined;

async function start(): Promise<number> {
  backend = await openEngineBackend(data);
  const { settings } = data;
  const log = createLog(data, { stderr: data.logToStderr }).child({ worker: settings.worker });
  const board = new Board(data.board);
  const uncommitted = (saleId: string, orders: readonly TakenOrder[]) =>
    void calls.call('uncommitted', { saleId, orders }).catch(() => {});
  worker = await startWorker({ settings, backend, directory, board, db, log, uncommitted });
  return worker.port;
}

async function stop(): Promise<void> {
  await worker?.stop();
  await backend?.close();
  await db.destroy();
}
