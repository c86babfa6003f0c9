/**
 * Counts the orders that the backend has lost for good: they were taken, they are not in Postgres, and no log holds
 * them.
 *
 * Known entries come from the segment itself, from the lane that noticed the loss, and from earlier reads of a sync;
 * each has the count of orders up to it. The cursor counts the saved orders: those up to it, and those after it that
 * a rebuild has salvaged, this one or an earlier one that broke off. Known orders that are not saved are lost. If the
 * first order of a known entry is not in Postgres, at least that order is lost, even if the counts fit because later
 * orders reused the lost sequence numbers.
 *
 * It is a lower bound: an order leaves no trace if none of these sources knows its entry, and orders that reuse lost
 * sequence numbers mask as many losses.
 */
import type { Knex } from 'knex';
import type { KnownEntry, LogHead } from '../engine/contract.ts';
import { readCursors } from '../postgres/cursors.ts';
import { knownOrders } from './known-orders.ts';

/** As in `Witness` (rebuild.ts). */
interface SeenEntries {
  readonly newest: readonly KnownEntry[];
  readonly older?: readonly (readonly KnownEntry[])[];
}

export interface Loss {
  readonly segment: number;
  /** Lower bound of the lost orders. */
  readonly orders: number;
}

/**
 * The losses of a sale that is frozen and salvaged, before its cursors are reset. The transaction must hold the lock on
 * the sale's row: a batch that commits later would save orders that are counted as lost.
 * @param heads by segment, of the generation of the cursors
 * @param seen by segment, entries known from elsewhere
 */
export async function lossesOf(
  trx: Knex.Transaction,
  saleId: string,
  heads: readonly (LogHead | undefined)[],
  seen: SeenEntries,
): Promise<Loss[]> {
  const { newest, older = [] } = seen;
  const known = heads.map((head, i) => [head, head?.lost, newest[i], ...(older[i] ?? [])].filter(isEntry));
  if (known.flat().length === 0) return [];
  const cursors = await readCursors(trx, saleId);
  const kept = await knownOrders(
    trx,
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
