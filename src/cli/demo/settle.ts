import { setTimeout as delay } from 'node:timers/promises';
import type { SaleOperations, VerifyReport } from '../../operations/sale-operations.ts';

const POLL_MS = 100;
export const SETTLE_LIMIT_MS = 30_000;

/**
 * Waits until every accepted order is committed: until two reports in a row are fine, have the same number of orders, and
 * have at least the accepted ones. After the limit it returns the last report as it is.
 */
export async function settle(
  sales: Pick<SaleOperations, 'verify'>,
  saleId: string,
  accepted: number,
  signal: AbortSignal,
  limitMs = SETTLE_LIMIT_MS,
): Promise<VerifyReport> {
  const deadline = performance.now() + limitMs;
  let before = -1;
  for (;;) {
    signal.throwIfAborted();
    const report = await sales.verify(saleId);
    const settled = report.ok && report.committedOrders >= accepted && report.committedOrders === before;
    if (settled || performance.now() >= deadline) return report;
    before = report.committedOrders;
    await delay(POLL_MS);
  }
}
