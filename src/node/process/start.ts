import type { Teardown } from '../../lib/teardown.ts';
import type { Log } from './log.ts';
import { loggedTeardown } from './logged-teardown.ts';

/**
 * Starts a process with its teardown. If the start fails, everything that was started until then is released. If `unlessAsked` ends the
 * start, nothing is released: at that point there are only connections, which end with the process. Closing a connection to a server
 * that hangs would take seconds.
 */
export async function startOrRelease<T>(
  log: Log,
  start: (teardown: Teardown) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const teardown = loggedTeardown(log);
  try {
    return await start(teardown);
  } catch (error) {
    if (!signal?.aborted || error !== signal.reason) await teardown.release();
    throw error;
  }
}

/**
 * The result of a part of a start, unless the process is asked to end before the result comes. Then the part goes on until the process
 * ends, and its result is discarded.
 * @throws the part's error, or the signal's reason
 */
export async function unlessAsked<T>(signal: AbortSignal | undefined, part: () => Promise<T>): Promise<T> {
  if (!signal) return part();
  signal.throwIfAborted();
  let asked = () => {};
  const end = new Promise<never>((_, reject) => {
    asked = () => reject(signal.reason);
    signal.addEventListener('abort', asked);
  });
  try {
    return await Promise.race([part(), end]);
  } finally {
    signal.removeEventListener('abort', asked);
  }
}
