/**
 * The lock for rebuilding a sale. Like the lock on a sale (sale-locks.ts), of which it is independent, it only saves
 * double work: two processes that load the same sale, or begin one generation after the other, do no harm
 * (rebuild.ts).
 */
import type { SaleLocks } from '../postgres/sale-locks.ts';

/** @returns the result of `work`, or `undefined`, and nothing was done, if another process rebuilds the sale now */
export async function ifFreeToRebuild<T>(
  locks: SaleLocks,
  saleId: string,
  work: () => Promise<T>,
): Promise<{ readonly value: T } | undefined> {
  // No sale has such an id: SALE_ID_PATTERN.
  const name = `rebuild:${saleId}`;
  if (!(await locks.tryLock(name))) return undefined;
  try {
    return { value: await work() };
  } finally {
    await locks.unlock(name);
  }
}
