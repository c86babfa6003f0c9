import { onTestFinished, vi } from 'vitest';

/** Until the test has finished, each reading of the wall clock is two minutes later than the one before. */
export function setClockAhead(): void {
  const { now } = Date;
  let aheadMs = 0;
  vi.spyOn(Date, 'now').mockImplementation(() => {
    aheadMs += 120_000;
    return now() + aheadMs;
  });
  onTestFinished(() => void vi.restoreAllMocks());
}
