/** Bounds of the locks, each with its unit in the name, and the relations that must hold between them. */

/** A lock whose holder has died is free after this time. */
export const DEFAULT_TTL_MS = 10_000;
const MIN_TTL_MS = 100;
const MAX_TTL_MS = 600_000;

/** The watchdog renews this often within a ttl. */
const RENEWALS_PER_TTL = 3;
/** A command may be answered this late, as a part of the ttl: so that a renewal can be lost, and another one sent. */
const ANSWERS_PER_TTL = 4;
/** A holder stops trusting its lock by this part of the ttl before Redis lets it go: clocks drift, timers are late. */
const MARGINS_PER_TTL = 10;
/** With a long ttl there is no need to wait that long for an answer. */
const ANSWER_MAX_MS = 1_000;

export const DEFAULT_WAIT_MS = 10_000;
export const MAX_WAIT_MS = 600_000;
/** Waiters of one process for one lock; more are refused. */
export const MAX_WAITERS = 10_000;
/** A waiter that has heard nothing asks again after this time at the latest: messages get lost. */
export const FALLBACK_POLL_MS = 500;
/** Pause before a command that has failed is sent again. */
export const RETRY_PAUSE_MS = 20;
/** One process hands a lock from waiter to waiter for this long at most; then it is released, so that others get it. */
export const KEEP_MAX_MS = 100;
/** Then it waits for this long, if others listen. They are woken by a message, which must not come too late. */
export const YIELD_MS = 5;
/** The newest token is kept this long after the last use of a lock. Without it no write under that lock is let in. */
export const FENCE_KEPT_MS = 24 * 3_600_000;
/** A channel on which nobody waits any more is listened to for a while: often somebody soon waits again. */
export const LINGER_MS = 1_000;
/** A subscriber sends nothing by itself, and would never notice that its connection is dead. */
export const HEARTBEAT_MS = 2_000;

export const MAX_NAME_CHARACTERS = 512;

/** What follows from a ttl, all in milliseconds. */
export interface LockTimes {
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  readonly answerWithinMs: number;
  /** A confirmed lock may be trusted for this long, counted from before the confirmation was asked for. */
  readonly trustMs: number;
}

/** @throws RangeError if the ttl is out of range */
export function lockTimes(ttlMs: number): LockTimes {
  if (!Number.isInteger(ttlMs) || ttlMs < MIN_TTL_MS || ttlMs > MAX_TTL_MS) {
    throw new RangeError(`ttlMs is ${ttlMs}: must be a whole number from ${MIN_TTL_MS} to ${MAX_TTL_MS}`);
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
