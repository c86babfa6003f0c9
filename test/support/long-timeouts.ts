/**
 * Timeouts for what tests start, unless the test is about a timeout: longer than a busy machine ever stalls. So a purchase that
 * should be committed is committed, and a batch is unconfirmed only if the test has caused that.
 */
export const LONG_TIMEOUTS = { requestDeadlineMs: 20_000, takeTimeoutMs: 5_000 };

/** The same for what is started with an environment. */
export const LONG_TIMEOUTS_ENV = {
  REQUEST_DEADLINE_MS: String(LONG_TIMEOUTS.requestDeadlineMs),
  TAKE_TIMEOUT_MS: String(LONG_TIMEOUTS.takeTimeoutMs),
};
