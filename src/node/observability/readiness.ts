/** Whether a process can do its work now, in the words of `/readyz`. Each check takes a bounded time. */
import { withTimeout } from '../../lib/with-timeout.ts';
import { notAnswering } from '../../operations/operation-faults.ts';
import type { StoreWatch } from '../stores/store-watch.ts';
import type { RunningWorker } from '../worker/worker.ts';

const WORKER_ANSWER_MS = 2_000;

/** Why a node can't sell; `undefined` if it can. Postgres is not checked, because a node sells without it. */
export async function whyNotSelling(
  watch: Pick<StoreWatch, 'backendAway'>,
  workers: readonly Pick<RunningWorker, 'number' | 'notReady'>[],
): Promise<string | undefined> {
  const away = watch.backendAway().then((name) => name && `${name} does not answer`);
  const reasons = await Promise.all([away, ...workers.map(whyWorkerIsNotReady)]);
  return reasons.find((reason) => reason !== undefined);
}

/** Why sync can't copy orders to Postgres; `undefined` if it can. */
export async function whyNotSyncing(watch: Pick<StoreWatch, 'away'>): Promise<string | undefined> {
  const away = await watch.away();
  return away.length === 0 ? undefined : notAnswering(away);
}

/** Each worker has its own connection, so it may have lost Redis while the main thread still reaches it. */
async function whyWorkerIsNotReady(
  worker: Pick<RunningWorker, 'number' | 'notReady'>,
): Promise<string | undefined> {
  const asked = withTimeout(WORKER_ANSWER_MS, worker.notReady());
  const reason = await asked.catch(() => 'does not answer');
  return reason && `worker ${worker.number} ${reason}`;
}
