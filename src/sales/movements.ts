/**
 * Applies operators' changes from Postgres to the backend. The process that makes the change applies it at once. If
 * that process dies, sync's reconciler applies the change.
 *
 *   changed in Postgres, open ──applied to the backend──> done ──marked──> applied
 *                       └──the sale is rebuilt, which loads the change──> applied
 *
 * | the process dies | a reader sees | how it is resolved |
 * |---|---|---|
 * | before the backend has the change | the old state, or some of the new units | the reconciler applies it, or a rebuild does |
 * | before the movement is marked | the change; the ledger says that it is open | applied once more, which changes nothing |
 *
 * Movements of a sale are applied in order, the oldest first: a segment credits each id once, and none that is older
 * than its last.
 */
import pLimit from 'p-limit';
import type { Backend } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import type { NotedAction } from '../engine/sale/sale-change.ts';
import { splitEvenly } from '../engine/sale/split-evenly.ts';
import { secondsSince } from '../postgres/age.ts';
import { type Database, rows } from '../postgres/database.ts';
import { type FollowOptions, followState } from './follow-state.ts';
import { closeMovement, type Movement, readOpenMovements } from './ledger.ts';
import { readSale, type SaleRow } from './sale-rows.ts';
import { undoWithdrawal } from './withdrawal.ts';

const PARALLEL_CREDITS = 16;
/** The process that makes a change applies it within this time. A withdrawal may be under way for the same time. */
export const OWN_TIME_S = 5;

/** The process that makes a withdrawal completes it, and a resize comes with the next generation (rebuild.ts). */
const NOT_FOLLOWED: readonly NotedAction[] = ['withdraw', 'resize'];

/**
 * Applies the open movements of a sale that can be applied.
 * @returns false if one could not be applied, because the sale's row is locked; then the later ones were left open, too
 * @throws StaleGeneration, the stores' errors
 */
export async function followMovements(
  db: Database,
  backend: Backend,
  saleId: string,
  options?: FollowOptions,
): Promise<boolean> {
  for (const movement of await readOpenMovements(db, saleId)) {
    if (NOT_FOLLOWED.includes(movement.action)) continue;
    if (!(await follow(db, backend, movement, options))) return false;
    await closeMovement(db, movement.id);
  }
  return true;
}

/** Sales with a change that was not applied in time by the process that made it. */
export async function readOverdueSales(db: Database): Promise<string[]> {
  const found = await rows<{ sale_id: string }>(
    db,
    `SELECT DISTINCT sale_id FROM stock_movements
     WHERE applied_at IS NULL AND action <> 'resize' AND ${secondsSince('moved_at')} > ?`,
    [OWN_TIME_S],
  );
  return found.map((row) => row.sale_id);
}

/**
 * Applies the movements of a sale that were left unfinished, and undoes its withdrawal if that was left unfinished too.
 * @throws as `followMovements`
 */
export async function finishMovements(
  db: Database,
  backend: Backend,
  saleId: string,
  options?: FollowOptions,
): Promise<void> {
  if (!(await followMovements(db, backend, saleId, options))) return;
  for (const movement of await readOpenMovements(db, saleId)) {
    if (movement.action !== 'withdraw' || movement.ageS <= OWN_TIME_S) continue;
    await undoWithdrawal(db, backend, movement, options);
  }
}

/** @returns false if the movement can't be applied now */
async function follow(
  db: Database,
  backend: Backend,
  { id, saleId, action, units, generation }: Movement,
  options?: FollowOptions,
): Promise<boolean> {
  if (action !== 'top-up' && action !== 'archive') return followState(db, backend, saleId, options);
  const row = await readSale(db, saleId);
  if (action === 'archive') {
    if (row) await removeRest(backend, row);
    return true;
  }
  // A generation that was begun since includes the units, and has closed the movement (ledger.ts, coverMovements).
  if (row?.generation !== generation) return true;
  const { sale } = row;
  await pLimit(PARALLEL_CREDITS).map(splitEvenly(units, sale.segments), (share, segment) =>
    backend.sales.credit({ saleId, segment, generation, movement: id, units: share }),
  );
  await backend.sales.reopen(saleId);
  return true;
}

/**
 * Removes what is left of an archived sale whose record is gone. With its record the backend may have sold since, because
 * it was restored from a copy: then a rebuild saves its orders first (rebuild.ts).
 */
async function removeRest(backend: Backend, { sale, generation }: SaleRow): Promise<void> {
  if (await backend.sales.read(sale.id)) throw new StaleGeneration(sale.id, generation);
  await backend.sales.archive({ saleId: sale.id, generation });
}
