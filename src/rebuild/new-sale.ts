/**
 * Creates a sale in fewer steps than a rebuild needs (rebuild.ts): nobody can have bought or changed anything yet.
 *
 *   insert in its first generation -> load -> publish
 *
 * | the process dies | a reader sees | repaired by |
 * |---|---|---|
 * | before the insert commits | no sale | |
 * | before the publication | the sale in Postgres, and no record of it in the backend | the reconciler, which rebuilds it |
 */
import type { Knex } from 'knex';
import type { Backend, Sale } from '../engine/contract.ts';
import type { Author } from '../engine/sale/author.ts';
import { type Database, rows } from '../postgres/database.ts';
import { decodeSale, insertSale, type RawSale, type SaleRow } from '../sales/sale-rows.ts';
import { loadSegments } from './load.ts';
import { publishNew } from './rebuild.ts';

/**
 * @param after a generation of another sale with this id, which the backend had: the first one comes after it
 * @returns `undefined` if a sale with this id exists, which is left unchanged
 */
export function insertNewSale(
  db: Database,
  sale: Sale,
  author: Author,
  after = 0,
): Promise<SaleRow | undefined> {
  return db.transaction(async (trx) =>
    (await insertSale(trx, sale, author)) ? beginFirstGeneration(trx, sale.id, after) : undefined,
  );
}

/**
 * The first generation comes after those of a deleted sale with the same id, too. A statement of its own: if the insert had to wait
 * until that sale was gone, it could not see its generations.
 */
async function beginFirstGeneration(trx: Knex.Transaction, saleId: string, after: number): Promise<SaleRow> {
  const [begun] = await rows<RawSale>(
    trx,
    `WITH begun AS (
       UPDATE sales SET generation =
         1 + greatest(?::integer, (SELECT max(generation) FROM deleted_sales d WHERE d.id = sales.id))
       WHERE id = ? RETURNING *
     ), cursors AS (
       INSERT INTO segment_cursors (sale_id, segment, generation)
       SELECT id, n, generation FROM begun, generate_series(0, segments - 1) AS n
     )
     SELECT * FROM begun`,
    [after, saleId],
  );
  return decodeSale(begun!);
}

/** @param row a sale that `insertNewSale` has inserted @throws StaleGeneration if it was rebuilt meanwhile */
export async function buildNewSale(db: Database, backend: Backend, row: SaleRow): Promise<void> {
  await loadSegments(backend, row, () => 'none');
  await publishNew(db, backend, row);
}
