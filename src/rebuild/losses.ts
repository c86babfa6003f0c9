/**
 * How many orders the backend has lost for good: they were taken, they are not in Postgres, and no log holds them.
 *
 * Known are entries that somebody was told of, each with the count of orders up to it: by the segment itself, by the lane
 * that found it short, by a sync's earlier reads. Saved are the orders that the cursor counts: those up to it, and those
 * that a rebuild, this one or one that broke off, has found behind it. What was known and is not saved is lost. An entry
 * whose first order is not in Postgres has lost that one at least, also where the counts fit because others have bought
 * under the lost numbers.
 *
 * It is a lower bound: orders of which nobody was told that is asked here leave no trace, and those of others hide as many.
 */
import type { Knex } from 'knex';
import type { KnownEntry, LogHead } from '../engine/contract.ts';
import { readCursors } from '../postgres/cursors.ts';
import { knownOrders } from './known-orders.ts';

export interface Loss {
  readonly segment: number;
  /** At least so many. */
  readonly orders: number;
}

/**
 * The losses of a sale that is frozen and salvaged, before its cursors are set back.
 * @param heads by segment, of the generation in which the cursors count
 * @param newest by segment, what else is known
 */
export async function lossesOf(
  db: Knex,
  saleId: string,
  heads: readonly (LogHead | undefined)[],
  newest: readonly KnownEntry[],
): Promise<Loss[]> {
  const cursors = await readCursors(db, saleId);
  const known = heads.map((head, i) => [head, head?.lost, newest[i]].filter(isEntry));
  const kept = await knownOrders(
    db,
    known.flat().map(({ tail }) => tail),
  );
  return cursors.flatMap(({ segment, orders }) => {
    const missing = (known[segment] ?? []).map((entry) =>
      Math.max(entry.orders - orders, kept.has(entry.tail) ? 0 : 1),
    );
    const lost = Math.max(0, ...missing);
    return lost > 0 ? [{ segment, orders: lost }] : [];
  });
}

function isEntry(entry: KnownEntry | undefined): entry is KnownEntry {
  return entry !== undefined && entry.seq > 0;
}
