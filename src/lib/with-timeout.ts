import { StockadeError } from '../engine/errors.ts';

/**
 * The work's result. The work itself goes on when it is late, and nobody hears of its end.
 *
 * The event loop may be late itself: after a turn that took too long, timers come before the answers that have arrived in
 * the meantime. So what has come by then still counts: the work is given up behind the reading, in the same turn.
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
