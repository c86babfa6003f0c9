import { Worker } from 'node:worker_threads';
import type { Scenario } from './scenario.ts';
import type { CrowdProgress, CrowdResult } from './tally.ts';

export type { CrowdProgress };

export interface CrowdOrders {
  readonly url: string;
  readonly saleId: string;
  readonly scenario: Scenario;
  /** More and more requests come within this time, as far as answers are that fast. Missing: all as fast as answers come. */
  readonly withinMs?: number;
}

export type CrowdMessage =
  | { readonly kind: 'progress'; readonly progress: CrowdProgress }
  | { readonly kind: 'done'; readonly result: CrowdResult };

/** The compiled file: a thread can't load TypeScript, so the demo runs from dist. */
const WORKER = new URL('./crowd-worker.js', import.meta.url);

/** Sends all requests to the node and returns what was answered. @throws the signal's reason if it is aborted first */
export async function sendCrowd(
  orders: CrowdOrders,
  signal: AbortSignal,
  onProgress: (progress: CrowdProgress) => void,
): Promise<CrowdResult> {
  const worker = new Worker(WORKER, { workerData: orders });
  const result = new Promise<CrowdResult>((resolve, reject) => {
    worker.on('message', (message: CrowdMessage) => {
      if (message.kind === 'done') resolve(message.result);
      else onProgress(message.progress);
    });
    worker.once('error', reject);
    worker.once('exit', (code) =>
      reject(new Error(`the crowd's thread ended early, with exit code ${code}`)),
    );
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    if (signal.aborted) reject(signal.reason);
  });
  try {
    return await result;
  } finally {
    await worker.terminate();
  }
}
