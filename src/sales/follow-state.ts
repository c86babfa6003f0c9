import type { Backend } from '../engine/contract.ts';
import type { Database } from '../postgres/database.ts';
import { readSale } from './sale-rows.ts';

/**
 * Gives the backend the state that the sale has in Postgres. The row is locked until the backend has it: whoever changes
 * the state meanwhile comes after, so that an older state is never written over a newer one.
 */
export async function followState(db: Database, backend: Backend, saleId: string): Promise<void> {
  await db.transaction(async (trx) => {
    await trx.raw('SELECT 1 FROM sales WHERE id = ? FOR SHARE', [saleId]);
    const row = await readSale(trx, saleId);
    if (row) await backend.sales.setState(row);
  });
}
