/**
 * Timeouts for what tests start, unless the test is about a timeout: longer than a busy machine ever stalls. So a purchase that
 * should be committed is committed, and a batch is unconfirmed only if the test has caused that.
 */
export const LONG_TIMEOUTS = { requestDeadlineMs: 20_000, takeTimeoutMs: 5_000 };
