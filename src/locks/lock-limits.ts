/** Limits of the locks, each with its unit in the name, and the relations that must hold between them. */

/** A lock whose holder has died is free after this time. */
export const DEFAULT_TTL_MS = 10_000;
const MIN_TTL_MS = 100;
const MAX_TTL_MS = 600_000;

/** The watchdog renews this often within a ttl. */
const RENEWALS_PER_TTL = 3;
/** A command's answer may take this part of the ttl, so that after a lost renewal there is time for another. */
const ANSWERS_PER_TTL = 4;
/**
 * A holder stops trusting its lock this part of the ttl before Redis frees it, because clocks drift and timers are
 * late.
 */
const MARGINS_PER_TTL = 10;
/** Upper limit of that answer time, for long ttls. */
const ANSWER_MAX_MS = 1_000;

export const DEFAULT_WAIT_MS = 10_000;
export const MAX_WAIT_MS = 600_000;
/** Callers of one process that may wait for one lock; more are refused. */
export const MAX_WAITERS = 10_000;
/** Without a message, a waiter tries again after this time at the latest: messages can be lost. */
export const FALLBACK_POLL_MS = 500;
/** Pause before a command that has failed is sent again. */
export const RETRY_PAUSE_MS = 20;
/**
 * One process passes a lock among its own waiters for this long at most. Then it releases it, so that other processes
 * get it.
 */
export const KEEP_MAX_MS = 100;
/** After such a release the process waits for this long, if others listen, so that the message can wake them. */
export const YIELD_MS = 5;
/**
 * The newest token is kept this long after the last use of a lock. Without it, every write under that lock is
 * refused.
 */
export const FENCE_KEPT_MS = 24 * 3_600_000;
/** An unused subscription is kept this long: often another caller soon waits for the same lock. */
export const LINGER_MS = 1_000;
/** A subscriber sends no commands, so without a heartbeat it would not notice a dead connection. */
export const HEARTBEAT_MS = 2_000;

export const MAX_NAME_CHARACTERS = 512;

/** What follows from a ttl, all in milliseconds. */
export interface LockTimes {
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  readonly answerWithinMs: number;
  /** How long a confirmed lock may be trusted, counted from when the confirmed command was sent. */
  readonly trustMs: number;
}

/** @throws RangeError if the ttl is out of range */
export function lockTimes(ttlMs: number): LockTimes {
  if (!Number.isInteger(ttlMs) || ttlMs < MIN_TTL_MS || ttlMs > MAX_TTL_MS) {
    throw new RangeError(`ttlMs is ${ttlMs}, but must be a whole number from ${MIN_TTL_MS} to ${MAX_TTL_MS}`);
  }
  return {
    ttlMs,
    renewEveryMs: ttlMs / RENEWALS_PER_TTL,
    answerWithinMs: Math.min(ttlMs / ANSWERS_PER_TTL, ANSWER_MAX_MS),
    trustMs: ttlMs - ttlMs / MARGINS_PER_TTL,
  };
}

for (const ttlMs of [MIN_TTL_MS, DEFAULT_TTL_MS, MAX_TTL_MS]) {
  const { renewEveryMs, answerWithinMs, trustMs } = lockTimes(ttlMs);
  if (renewEveryMs >= ttlMs / 2)
    throw new Error(`a ttl of ${ttlMs} ms is renewed only every ${renewEveryMs} ms`);
  if (renewEveryMs + 2 * answerWithinMs > trustMs) {
    throw new Error(`a ttl of ${ttlMs} ms leaves no room for a lost renewal and another one`);
  }
  if (RETRY_PAUSE_MS >= answerWithinMs) throw new Error(`a ttl of ${ttlMs} ms leaves no room for a pause`);
}
if (FENCE_KEPT_MS <= 2 * MAX_TTL_MS) throw new Error('a fence must outlive every lock that is renewed');
