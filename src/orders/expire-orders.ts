/**
 * The two transactions of the expiry (migrations/031-expiry-beside-locks.sql). An operator's change may have locked the row of a
 * sale for long, and batches of sync lock that of a hot sale for most of the time. So a page does not wait for a sale, and the orders of
 * a sale that was locked wait for it in a transaction of their own.
 */
import { type Database, LOCK_NOT_AVAILABLE, rows, sqlState } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';

export interface ExpiredOrders {
  readonly orderIds: readonly string[];
  /** When the first of them was due; `undefined` if there are none. */
  readonly dueSince: Date | undefined;
}

export interface ExpiredPage extends ExpiredOrders {
  /** The due orders of each sale that somebody had locked: they have not expired. */
  readonly locked: ReadonlyMap<string, readonly string[]>;
}

interface ExpiredRow {
  readonly order_ids: string[];
  readonly due_since: Date | null;
}

/**
 * Expires orders that were not paid in time, the longest overdue ones first.
 * @param most orders that it looks at, locked ones included
 * @param leftOut ids of sales whose orders it does not look at
 */
export async function expireOrders(
  db: Database,
  most: number,
  leftOut: readonly string[] = [],
): Promise<ExpiredPage> {
  const [row] = await despiteDeadlocks(() =>
    rows<ExpiredRow & { locked_ids: string[]; locked_sales: string[] }>(
      db,
      `SELECT order_ids::text[], due_since, locked_ids::text[], locked_sales
        FROM stockade_expire_orders(?, string_to_array(?, ','))`,
      [most, leftOut.join()],
    ),
  );
  const { locked_ids, locked_sales } = row!;
  const locked = new Map<string, string[]>();
  for (const [i, saleId] of locked_sales.entries()) {
    const ofSale = locked.get(saleId) ?? [];
    ofSale.push(locked_ids[i]!);
    locked.set(saleId, ofSale);
  }
  return { ...expiredOf(row!), locked };
}

/**
 * Expires those of the orders that are still due, once the sale is not locked.
 * @returns `undefined` if it was locked for longer than `waitMs`
 */
export async function expireInSale(
  db: Database,
  saleId: string,
  orderIds: readonly string[],
  waitMs: number,
): Promise<ExpiredOrders | undefined> {
  try {
    const [row] = await despiteDeadlocks(() =>
      rows<ExpiredRow>(
        db,
        "SELECT order_ids::text[], due_since FROM stockade_expire_given(string_to_array(?, ',')::bigint[], ?, ?)",
        [orderIds.join(), saleId, waitMs],
      ),
    );
    return expiredOf(row!);
  } catch (error) {
    if (sqlState(error) === LOCK_NOT_AVAILABLE) return undefined;
    throw error;
  }
}

const expiredOf = ({ order_ids, due_since }: ExpiredRow): ExpiredOrders => ({
  orderIds: order_ids,
  dueSince: due_since ?? undefined,
});
