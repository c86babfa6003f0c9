import type { Backend } from '../engine/contract.ts';
import { type Database, rows } from '../postgres/database.ts';
import { readSale } from './sale-rows.ts';

export interface FollowOptions {
  /** Changes nothing if another transaction has the sale's row locked. Default: waits for it. */
  readonly ifUnlocked?: boolean;
}

/**
 * Sets the sale's state in the backend to that in Postgres. The row stays locked until the backend has it, so that a
 * later change of state comes after this one.
 *
 * The lock is not enough. Postgres releases it when it ends the session of a process that is frozen or cut off, and what that process
 * has sent or sends then may arrive after a later change. So each change raises the sale's revision, and a backend that has a later one
 * changes nothing.
 * @returns false if the row is locked; then nothing was done
 */
export async function followState(
  db: Database,
  backend: Backend,
  saleId: string,
  { ifUnlocked = false }: FollowOptions = {},
): Promise<boolean> {
  const unless = ifUnlocked ? 'SKIP LOCKED' : '';
  const { isLocked, later } = await db.transaction(async (trx) => {
    const mine = await rows(trx, `SELECT 1 FROM sales WHERE id = ? FOR SHARE ${unless}`, [saleId]);
    const row = await readSale(trx, saleId);
    if (!row || mine.length === 0) return { isLocked: row !== undefined };
    const reached = await backend.sales.setState(row);
    return { isLocked: false, later: reached > row.revision ? reached : undefined };
  });
  if (later === undefined) return !isLocked;
  await raiseRevision(db, saleId, later, unless);
  return followState(db, backend, saleId, { ifUnlocked });
}

/** Postgres was set back, and has forgotten the changes that the backend knows. Its state is the valid one. */
async function raiseRevision(db: Database, saleId: string, later: number, unless: string): Promise<void> {
  await db.raw(
    `UPDATE sales SET revision = greatest(revision, ?) + 1 WHERE id = (SELECT id FROM sales WHERE id = ? FOR UPDATE ${unless})`,
    [later, saleId],
  );
}
