import type { SaleState } from '../engine/contract.ts';
import type { StateTotal } from '../operations/console/console-operations.ts';
import { type Database, rows } from '../postgres/database.ts';

/** Counts the sales that are neither archived nor being deleted, by state. A state without sales is left out. */
export async function readSaleTotals(db: Database): Promise<StateTotal[]> {
  const found = await rows<{ state: SaleState; sales: string; unsold: string }>(
    db,
    `SELECT state, count(*) AS sales, sum(stock) AS unsold FROM sales
     WHERE archived_at IS NULL AND deleting_since IS NULL GROUP BY state`,
  );
  return found.map(({ state, sales, unsold }) => ({ state, sales: Number(sales), unsold: Number(unsold) }));
}
