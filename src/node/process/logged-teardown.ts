import { Teardown } from '../../lib/teardown.ts';
import type { Log } from './log.ts';

/** A teardown that logs each step that fails or is late. */
export function loggedTeardown(log: Log): Teardown {
  return new Teardown((error) => log.error({ err: error }, 'a step of the shutdown failed'));
}
