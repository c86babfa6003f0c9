/** The records of deletions (table deleted_sales): who deleted which sale, why, how far it is, and in which generation. */
import type { Knex } from 'knex';
import { SALE_ID_PATTERN } from '../engine/limits.ts';
import type { Author } from '../engine/sale/author.ts';
import type { Deletion } from '../operations/delete-operations.ts';
import { type Database, rows } from '../postgres/database.ts';

/** A sale that is being deleted or was deleted. `generation` tells this deletion from others of sales with the same id. */
export interface DeletedSale {
  readonly saleId: string;
  readonly generation: number;
}

export async function writeDeletion(
  trx: Knex.Transaction,
  { saleId, generation }: DeletedSale,
  orders: number,
  { actor, reason }: Author,
): Promise<void> {
  await trx.raw('INSERT INTO deleted_sales (id, generation, orders, actor, reason) VALUES (?, ?, ?, ?, ?)', [
    saleId,
    generation,
    orders,
    actor,
    reason,
  ]);
}

export async function closeDeletion(
  trx: Knex.Transaction,
  { saleId, generation }: DeletedSale,
): Promise<void> {
  await trx.raw('UPDATE deleted_sales SET deleted_at = now() WHERE id = ? AND generation = ?', [
    saleId,
    generation,
  ]);
}

/** The newest deletion of a sale with this id. */
export async function readDeletion(db: Knex, saleId: string): Promise<Deletion> {
  if (!SALE_ID_PATTERN.test(saleId)) return { saleId, state: 'none' };
  const [row] = await rows<{
    orders: string;
    done: string;
    actor: string;
    reason: string;
    begun_at: Date;
    deleted_at: Date | null;
  }>(
    db,
    `SELECT orders, done, actor, reason, begun_at, deleted_at FROM deleted_sales
     WHERE id = ? ORDER BY generation DESC LIMIT 1`,
    [saleId],
  );
  if (!row) return { saleId, state: 'none' };
  const { actor, reason, begun_at, deleted_at } = row;
  const rest = { actor, reason, begunAt: begun_at.toISOString() };
  const counts = { orders: Number(row.orders), done: Number(row.done) };
  if (!deleted_at) return { saleId, state: 'deleting', ...counts, ...rest };
  return { saleId, state: 'deleted', ...counts, ...rest, deletedAt: deleted_at.toISOString() };
}

/** The deletion of this sale, if it has not ended. */
export async function readOpenDeletion(db: Knex, saleId: string): Promise<DeletedSale | undefined> {
  const [open] = await rows<{ generation: number }>(
    db,
    'SELECT generation FROM deleted_sales WHERE id = ? AND deleted_at IS NULL',
    [saleId],
  );
  return open && { saleId, generation: open.generation };
}

/** Deletions that have not ended, the oldest first. */
export async function readOpenDeletions(db: Database): Promise<DeletedSale[]> {
  return rows<DeletedSale>(
    db,
    `SELECT id AS "saleId", generation FROM deleted_sales WHERE deleted_at IS NULL ORDER BY begun_at`,
  );
}

/** A generation above all those in which the backend can have held a deleted sale with this id; 0 if none was deleted. */
export async function readDeletedGeneration(db: Knex, saleId: string): Promise<number> {
  const [row] = await rows<{ generation: number }>(
    db,
    'SELECT coalesce(max(generation), 0) AS generation FROM deleted_sales WHERE id = ?',
    [saleId],
  );
  return row!.generation;
}

/** A deleted sale that the backend must not hold. */
export interface GoneSale extends DeletedSale {
  readonly begunAt: Date;
}

/** At most `limit` deleted sales that were not made again, with ids after `after`, in the order of ids. */
export async function readGoneSales(db: Database, after: string, limit: number): Promise<GoneSale[]> {
  return rows<GoneSale>(
    db,
    `SELECT DISTINCT ON (d.id) d.id AS "saleId", d.generation, d.begun_at AS "begunAt" FROM deleted_sales d
     WHERE d.id > ? AND NOT EXISTS (SELECT 1 FROM sales s WHERE s.id = d.id AND s.deleting_since IS NULL)
     ORDER BY d.id, d.generation DESC LIMIT ?`,
    [after, limit],
  );
}
