/**
 * Who rebuilds a sale. As the lock on a sale (sale-locks.ts), of which it is independent, it only spares work: two who load
 * the same sale, or who begin one generation after the other, harm nothing (rebuild.ts).
 */
import type { SaleLocks } from '../postgres/sale-locks.ts';

/** @returns what `work` returns, or `undefined`, and nothing was done, if another rebuilds the sale now */
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
