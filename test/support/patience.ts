/**
 * How long what a test starts waits for the stores, unless the test is about that: longer than a busy machine ever stumbles.
 * So a purchase that is to be committed is committed, and a batch is in doubt only where a test has brought it about.
 */
export const PATIENCE = { requestDeadlineMs: 20_000, takeTimeoutMs: 5_000 };
