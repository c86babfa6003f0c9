/** Starts the workers of a node: in threads of their own on Redis, in this thread on the in-process backend. */
import type { Config } from '../config/config.ts';
import type { Board } from '../engine/board/board.ts';
import type { Teardown } from '../lib/teardown.ts';
import type { LeaseEnd } from '../postgres/lease-end.ts';
import { orderIdKey } from '../postgres/shared-keys.ts';
import { WorkerLeases } from '../postgres/worker-leases.ts';
import { type Log, writesToStderr } from './process/log.ts';
import { possibleConnections } from './process/open-files.ts';
import { onOwnPort } from './process/ports.ts';
import type { SaleDirectory } from './sale-directory.ts';
import { redisOptions, type Stores } from './stores/stores.ts';
import { admissionSettings } from './worker/admission.ts';
import { startThread } from './worker/threads.ts';
import type { RunningWorker, WorkerParts } from './worker/worker.ts';
import { type WorkerSettings, workerSettings } from './worker/worker-settings.ts';

/** A worker or the ops port: it answers the requests under way before it stops. */
export type Drainable = Pick<RunningWorker, 'stopListening' | 'stop'>;

export interface WorkerStart {
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
export async function startWorkers(parts: WorkerStart, teardown: Teardown): Promise<Promise<Error>[]> {
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
  const maxConnections = possibleConnections(config, log);
  await onOwnPort(config.host, config.port, async (port) => {
    for (const worker of leases.numbers) {
      const settings = workerSettings(
        { ...config, maxConnections },
        { port, worker, leaseEnd: leases.end, ...shared },
      );
      if (config.redisUrl) {
        const thread = await inThread(parts, settings);
        workers.push(thread);
        failures.push(thread.failed);
      } else {
        const { startWorker } = await import('./worker/worker.ts');
        workers.push(await startWorker({ ...parts, ...stores, settings }));
      }
      drainables.push(workers.at(-1)!);
    }
  });
  const renewed = (leaseEnd: LeaseEnd) => {
    for (const worker of workers) worker.renewed(leaseEnd);
  };
  leases.onRenewed(renewed);
  // The leases may have been renewed while the workers started.
  renewed(leases.end);
  return failures;
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
