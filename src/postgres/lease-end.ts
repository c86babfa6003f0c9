/** The end of a lease of worker numbers, and what follows from it: whether it is over, and the time by which order ids are named. */
import { NotExecuted } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';

/**
 * When a lease is over, on two clocks of this machine, whichever comes first; and the same moment on Postgres' clock.
 * All threads have the same clocks.
 */
export interface LeaseEnd {
  /** Milliseconds since the Unix epoch, on this machine's wall clock. */
  readonly wallMs: number;
  /** On the clock of `monotonicMs`. */
  readonly monotonicMs: number;
  /** Milliseconds since the Unix epoch, on Postgres' clock. */
  readonly postgresMs: number;
}

export const OVER: LeaseEnd = { wallMs: 0, monotonicMs: 0, postgresMs: 0 };

/** Call it before the query to Postgres: then the lease ends here no later than there. */
export function endFromNow(leaseMs: number): Omit<LeaseEnd, 'postgresMs'> {
  return { wallMs: Date.now() + leaseMs, monotonicMs: monotonicMs() + leaseMs };
}

export function isLeased(end: LeaseEnd): boolean {
  return Date.now() < end.wallMs && monotonicMs() < end.monotonicMs;
}

/**
 * The time that order ids carry, in milliseconds since the Unix epoch: Postgres' time when the lease was given, plus the
 * monotonic time since then. The holder's wall clock would not do: it can be set, and the next holder of the number could
 * reach the same second. From renewal to renewal this time never goes back.
 */
export function namingTimeMs({ postgresMs, monotonicMs: endMs }: LeaseEnd): number {
  return postgresMs - (endMs - monotonicMs());
}

/** @throws NotExecuted when the lease is over: another worker may use the number by now */
export function assertLeased(end: LeaseEnd): void {
  if (isLeased(end)) return;
  throw new NotExecuted(
    `the lease of this worker's number was good until ${new Date(end.wallMs).toISOString()} and could not be renewed`,
  );
}
