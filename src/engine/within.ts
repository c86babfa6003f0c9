import { StockadeError } from './errors.ts';

/**
 * The work's result. The work itself goes on when it is late, and nobody hears of its end.
 * @throws the work's error, or StockadeError `timed_out`
 */
export async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new StockadeError('timed_out', `no answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
