import type { Backend } from '../engine/contract.ts';
import { type Database, rows } from '../postgres/database.ts';
import { readSale } from './sale-rows.ts';

export interface FollowOptions {
  /** Changes nothing if another transaction has the sale's row locked. Default: waits for it. */
  readonly ifUnlocked?: boolean;
}

/**
 * Sets the sale's state in the backend to that in Postgres. The row stays locked until the backend has it, so that a
 * later change of state comes after this one, and an older state never overwrites a newer one.
 * @returns false if the row is locked; then nothing was done
 */
export async function followState(
  db: Database,
  backend: Backend,
  saleId: string,
  { ifUnlocked = false }: FollowOptions = {},
): Promise<boolean> {
  return db.transaction(async (trx) => {
    const unless = ifUnlocked ? 'SKIP LOCKED' : '';
    const mine = await rows(trx, `SELECT 1 FROM sales WHERE id = ? FOR SHARE ${unless}`, [saleId]);
    const row = await readSale(trx, saleId);
    if (row && mine.length === 0) return false;
    if (row) await backend.sales.setState(row);
    return true;
  });
}
