import { Worker } from 'node:worker_threads';
import type { Directory } from '../../engine/board/directory.ts';
import type { TakenOrder } from '../../engine/purchase/uncommitted-orders.ts';
import { PortCalls, ThreadEnd } from '../../lib/port-calls.ts';
import { TEARDOWN_LIMIT_MS } from '../../lib/teardown.ts';
import { withTimeout } from '../../lib/with-timeout.ts';
import { directoryHandlers } from './directory-link.ts';
import { busyShareOf } from './load.ts';
import type { RunningWorker, WorkerMetrics, WorkerParts } from './worker.ts';
import type { ThreadData } from './worker-thread.ts';

/**
 * Size of V8's young generation. A purchase lives for a few milliseconds, and thousands are under way. With the default of
 * 16 MB, V8 would copy them and promote them to the old generation before they are garbage.
 */
const YOUNG_GENERATION_MB = 96;

/**
 * Time for a worker to close its connections after its last request. It is below TEARDOWN_LIMIT_MS, so that a thread that
 * takes longer is terminated before the teardown goes on without it.
 */
const THREAD_END_MS = 2_000;

if (THREAD_END_MS >= TEARDOWN_LIMIT_MS) {
  throw new Error(
    `THREAD_END_MS ${THREAD_END_MS} must be below TEARDOWN_LIMIT_MS, which is ${TEARDOWN_LIMIT_MS}`,
  );
}

/** The main thread's handle on a worker in a thread of its own. */
export interface WorkerThread extends RunningWorker {
  /** Resolves with the reason if the thread ends before it was stopped. */
  readonly failed: Promise<Error>;
}

export async function startThread(
  data: ThreadData,
  directory: Directory,
  uncommitted: WorkerParts['uncommitted'],
): Promise<WorkerThread> {
  const thread = new Worker(new URL('./worker-thread.js', import.meta.url), {
    workerData: data,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB },
  });
  // A call that fails says nothing about what the worker does: only an exit ends its use of the board.
  const exited = new Promise<void>((resolve) => thread.on('exit', () => resolve()));
  const calls: PortCalls = new PortCalls(thread, {
    threw: ({ message, stack }: { message: string; stack?: string }) =>
      end.fail(Object.assign(new Error(message), { stack })),
    ...directoryHandlers(directory, (name, argument) => calls.call<void>(name, argument).catch(() => exited)),
    uncommitted: ({ saleId, orders }: { saleId: string; orders: readonly TakenOrder[] }) =>
      uncommitted(saleId, orders),
  });
  const end = new ThreadEnd(thread, `worker ${data.settings.worker}`, calls);
  const port = await Promise.race([
    calls.call<number>('start'),
    end.failed.then((error) => Promise.reject(error)),
  ]).catch(async (error: unknown) => {
    end.expect();
    // Otherwise the thread would keep its connections and its port after the failed start.
    await thread.terminate();
    throw error;
  });
  return {
    number: data.settings.worker,
    port,
    failed: end.failed,
    notReady: () => calls.call<string | undefined>('notReady'),
    buy: (purchase) => calls.call('buy', purchase),
    metrics: () => calls.call<WorkerMetrics>('metrics'),
    busyShare: busyShareOf(thread.performance),
    renewed: (leaseEnd) => void calls.call('renewed', leaseEnd).catch(() => {}),
    stopListening: () => calls.call<void>('stopListening').catch(() => {}),
    async stop() {
      end.expect();
      const limitMs = data.settings.shutdownGraceMs + THREAD_END_MS;
      await withTimeout(limitMs, calls.call('stop')).catch(() => {});
      await thread.terminate();
    },
  };
}
