import { StockadeError } from '../engine/errors.ts';

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
