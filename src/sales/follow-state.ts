import type { Backend } from '../engine/contract.ts';
import type { Database } from '../postgres/database.ts';
import { readSale } from './sale-rows.ts';

/**
 * Sets the sale's state in the backend to that in Postgres. The row stays locked until the backend has it, so that a
 * later change of state comes after this one, and an older state never overwrites a newer one.
 */
export async function followState(db: Database, backend: Backend, saleId: string): Promise<void> {
  await db.transaction(async (trx) => {
    await trx.raw('SELECT 1 FROM sales WHERE id = ? FOR SHARE', [saleId]);
    const row = await readSale(trx, saleId);
    if (row) await backend.sales.setState(row);
  });
}
