/**
 * Makes the backend follow what operators have changed in Postgres: whoever has made the change does it at once, and sync's
 * sweep does it for those who died in between.
 *
 *   changed in Postgres, open ──the backend follows──> done ──marked──> applied
 *                       └──the sale is rebuilt: what is loaded has it all──> applied
 *
 * | it dies | a reader sees | who mends it |
 * |---|---|---|
 * | before the backend has followed | the old state, or some of the new units | the sweep, or a rebuild |
 * | before it is marked | all of it; the ledger says that it is open | the same once more, which changes nothing |
 *
 * Movements of a sale are followed one after the other, the oldest first: a segment credits each id once, and none that is
 * older than its last.
 */
import pLimit from 'p-limit';
import type { Backend } from '../engine/contract.ts';
import type { SaleAction } from '../engine/sale/sale-change.ts';
import { splitEvenly } from '../engine/sale/split-evenly.ts';
import { type Database, rows } from '../postgres/database.ts';
import { followState } from './follow-state.ts';
import { closeMovement, type Movement, readOpenMovements } from './ledger.ts';
import { readSale } from './sale-rows.ts';
import { undoWithdrawal } from './withdrawal.ts';

const PARALLEL_CREDITS = 16;
/** Whoever makes a change follows it up within this time. A withdrawal may be under way for as long. */
export const OWN_TIME_S = 5;

/** Withdrawals are their makers', and another number of segments comes with the next generation (rebuild.ts). */
const NOT_FOLLOWED: readonly SaleAction[] = ['withdraw', 'resize'];

/** Follows all that is open of a sale and can be followed. @throws StaleGeneration, the stores' errors */
export async function followMovements(db: Database, backend: Backend, saleId: string): Promise<void> {
  for (const movement of await readOpenMovements(db, saleId)) {
    if (NOT_FOLLOWED.includes(movement.action)) continue;
    await follow(db, backend, movement);
    await closeMovement(db, movement.id);
  }
}

/** Sales with a change that its maker has not followed up in time. */
export async function readForsakenSales(db: Database): Promise<string[]> {
  const found = await rows<{ sale_id: string }>(
    db,
    `SELECT DISTINCT sale_id FROM stock_movements
     WHERE applied_at IS NULL AND action <> 'resize' AND moved_at < now() - ? * interval '1 second'`,
    [OWN_TIME_S],
  );
  return found.map((row) => row.sale_id);
}

/** Follows up what others have left of a sale: their withdrawals are undone. @throws as `followMovements` */
export async function followForsaken(db: Database, backend: Backend, saleId: string): Promise<void> {
  await followMovements(db, backend, saleId);
  for (const movement of await readOpenMovements(db, saleId)) {
    if (movement.action === 'withdraw') await undoWithdrawal(db, backend, movement);
  }
}

async function follow(
  db: Database,
  backend: Backend,
  { id, saleId, action, units, generation }: Movement,
): Promise<void> {
  if (action !== 'top-up') return followState(db, backend, saleId);
  const row = await readSale(db, saleId);
  // A generation that was begun since has loaded the units, and has closed the movement (ledger.ts, coverMovements).
  if (row?.generation !== generation) return;
  const { sale } = row;
  await pLimit(PARALLEL_CREDITS).map(splitEvenly(units, sale.segments), (share, segment) =>
    backend.sales.credit({ saleId, segment, generation, movement: id, units: share }),
  );
  await backend.sales.reopen(saleId);
}
