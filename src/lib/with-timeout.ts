import { StockadeError } from '../engine/errors.ts';

/**
 * The work's result, if it comes in time. A timed-out operation continues; its result is discarded.
 *
 * The event loop may itself be late: after a long turn, timers run before the answers that have arrived meanwhile are
 * read. So the timeout takes effect only after the next reading of sockets, and an answer that has arrived by then
 * still counts.
 * @throws the work's error, or StockadeError `timed_out`
 */
export async function withTimeout<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let behindReading: NodeJS.Immediate | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new StockadeError('timed_out', `no answer within ${timeoutMs} ms`));
    timer = setTimeout(() => {
      behindReading = setImmediate(giveUp);
    }, timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    clearImmediate(behindReading);
  }
}
