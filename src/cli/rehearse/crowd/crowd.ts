/** Runs the threads of the crowd. */
import { randomInt } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { monotonicMs } from '../../../lib/monotonic.ts';
import {
  type CrowdMessage,
  type CrowdOrders,
  type CrowdProgress,
  type CrowdResult,
  together,
} from './protocol.ts';

/** The compiled file: a thread can't load TypeScript, so a rehearsal runs from dist. */
const WORKER = new URL('./worker.js', import.meta.url);
/** A thread sends no more than this, requests a second. If even that is too much for the machine, the report says so. */
const RATE_OF_THREAD = 4_000;
/** Until all threads have begun. */
const BEGIN_MS = 500;

export type Crowd = Omit<CrowdOrders, 'part' | 'parts' | 'seed' | 'startAtMs'>;

export interface CrowdWatch {
  /** When the first request is due, by `monotonicMs`. */
  started(startAtMs: number): void;
  progress(progress: CrowdProgress): void;
}

/** @returns what was answered, when all requests have ended. @throws the signal's reason if it is aborted first */
export async function sendCrowd(crowd: Crowd, signal: AbortSignal, watch: CrowdWatch): Promise<CrowdResult> {
  signal.throwIfAborted();
  const parts = Math.max(
    1,
    Math.min(availableParallelism(), Math.ceil(crowd.crowding.rate / RATE_OF_THREAD)),
  );
  const seed = randomInt(2 ** 31);
  const startAtMs = monotonicMs() + BEGIN_MS;
  watch.started(startAtMs);
  const progress = new Map<number, CrowdProgress>();
  const workers = Array.from(
    { length: parts },
    (_, part) =>
      new Worker(WORKER, { workerData: { ...crowd, part, parts, seed, startAtMs } satisfies CrowdOrders }),
  );
  const heard = (part: number, one: CrowdProgress) => {
    progress.set(part, one);
    const all = [...progress.values()];
    const sum = (figure: keyof CrowdProgress) => all.reduce((total, each) => total + each[figure], 0);
    watch.progress({ sent: sum('sent'), ended: sum('ended'), orders: sum('orders') });
  };
  try {
    return together(
      await Promise.all(workers.map((worker, part) => resultOf(worker, signal, (one) => heard(part, one)))),
    );
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

function resultOf(
  worker: Worker,
  signal: AbortSignal,
  heard: (progress: CrowdProgress) => void,
): Promise<CrowdResult> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    worker.on('message', (message: CrowdMessage) => {
      if (message.kind === 'progress') heard(message.progress);
      else {
        signal.removeEventListener('abort', stop);
        resolve(message.result);
      }
    });
    worker.once('error', reject);
    worker.once('exit', (code) =>
      reject(new Error(`a thread of the crowd ended early, with exit code ${code}`)),
    );
  });
}
