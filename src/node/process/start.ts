import type { Teardown } from '../../lib/teardown.ts';
import type { Log } from './log.ts';
import { loggedTeardown } from './logged-teardown.ts';

/** Starts a process with its teardown. If the start fails, everything that was started until then is released. */
export async function startOrRelease<T>(log: Log, start: (teardown: Teardown) => Promise<T>): Promise<T> {
  const teardown = loggedTeardown(log);
  try {
    return await start(teardown);
  } catch (error) {
    await teardown.release();
    throw error;
  }
}
