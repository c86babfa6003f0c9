/** Entry of a worker thread on the Redis backend. */
import { parentPort, workerData } from 'node:worker_threads';
import type { Config } from '../config/config.ts';
import { Board } from '../engine/board.ts';
import type { Backend } from '../engine/contract.ts';
import type { SaleView } from '../engine/directory.ts';
import { LockedBackend } from '../engine/lock/locked-backend.ts';
import { RedisBackend, type RedisBackendOptions } from '../engine/redis/redis-backend.ts';
import { openDatabase } from '../sync/database.ts';
import { DirectoryLink } from './directory-link.ts';
import { createLog } from './log.ts';
import { PortCalls } from './port-calls.ts';
import { type RunningWorker, startWorker, type WorkerSettings } from './worker.ts';

export interface ThreadData {
  readonly settings: WorkerSettings;
  readonly redis: RedisBackendOptions;
  readonly strategy: Config['strategy'];
  readonly databaseUrl: string;
  readonly board: SharedArrayBuffer;
  readonly logLevel: Config['logLevel'];
  readonly logToStderr: boolean;
}

/** Workers read single orders for their owners; everything else of Postgres is the main thread's. */
const WORKER_CONNECTIONS = 2;

const data = workerData as ThreadData;
const calls = new PortCalls(parentPort!, {
  start: () => start(),
  metrics: () => worker!.metrics(),
  notReady: () => worker!.notReady(),
  renewed: (expiresAtMs: number) => worker!.renewed(expiresAtMs),
  changed: (view: SaleView) => directory.changed(view),
  stopListening: () => worker!.stopListening(),
  stop: () => stop(),
});
const directory = new DirectoryLink(calls);
const db = openDatabase({ url: data.databaseUrl, maxConnections: WORKER_CONNECTIONS });
let backend: Backend | undefined;
let worker: RunningWorker | undefined;

async function start(): Promise<number> {
  backend = await (data.strategy === 'lock' ? LockedBackend : RedisBackend).open(data.redis);
  const { settings } = data;
  const log = createLog(data, { stderr: data.logToStderr }).child({ worker: settings.worker });
  worker = await startWorker({ settings, backend, directory, board: new Board(data.board), db, log });
  return worker.port;
}

async function stop(): Promise<void> {
  await worker?.stop();
  await backend?.close();
  await db.destroy();
}
