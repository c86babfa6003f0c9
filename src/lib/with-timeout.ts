import { setTimeout as delay } from 'node:timers/promises';
import { StockadeError } from '../engine/errors.ts';
import { monotonicMs } from './monotonic.ts';

/**
 * The work's result, if it comes in time. A timed-out operation continues; its result is discarded.
 *
 * The event loop may itself be late. After a long turn it runs timers before it reads the answers that have arrived meanwhile.
 * So the timeout takes effect only after the loop has read its sockets once more, and an answer that it reads then still
 * counts.
 * @throws the work's error, or StockadeError `timed_out`
 */
export async function withTimeout<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let afterReading: NodeJS.Immediate | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new StockadeError('timed_out', `no answer within ${timeoutMs} ms`));
    timer = setTimeout(() => {
      afterReading = setImmediate(giveUp);
    }, timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    clearImmediate(afterReading);
  }
}

/** Whether an answer did not come in time. */
export const isTimeout = (error: unknown): error is StockadeError =>
  error instanceof StockadeError && error.code === 'timed_out';

/** A change was sent to a store, and its connection has failed: it may still arrive there and take effect. */
export class ReplyLost extends Error {
  constructor(cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(`the reply to a change is lost: ${why}`, { cause });
  }
}

/**
 * Resolves when a change that has failed can't take effect any more, so that its outcome may be told as unknown.
 * @param latestMs when it may take effect at the latest, by `monotonicMs`
 */
export async function settled(error: unknown, latestMs: number): Promise<void> {
  const isOpen = error instanceof ReplyLost || isTimeout(error);
  if (!isOpen) return;
  // A timer may come before its time: it counts from the beginning of its turn of the event loop.
  for (let left = latestMs - monotonicMs(); left >= 0; left = latestMs - monotonicMs()) await delay(left + 1);
}
