/**
 * Begins to delete an archived sale: from then on no reader sees it. States and crash points of a deletion:
 * docs/internals/leaving.md.
 */
import type { Knex } from 'knex';
import type { Backend, SaleState } from '../engine/contract.ts';
import { StockadeError } from '../engine/errors.ts';
import type { Author } from '../engine/sale/author.ts';
import { OrdersDiffer } from '../operations/delete-operations.ts';
import { WrongState } from '../operations/sale-operations.ts';
import { assertMayDelete } from '../postgres/app-role.ts';
import { type Database, rows } from '../postgres/database.ts';
import { refuseBesideOlderNodes } from '../postgres/older-nodes.ts';
import { type DeletedSale, writeDeletion } from '../sales/deleted-sales.ts';
import { readOpenMovements } from '../sales/ledger.ts';
import { readKnownSale } from '../sales/sale-rows.ts';

/**
 * One transaction. The new generation stops every rebuild of the sale that is under way, so no order can be added
 * after the count. The sale's row is locked while its orders are counted, some 0.3 s for a million of them.
 * @param orders how many orders the sale has
 * @throws as `DeleteOperations.delete`
 */
export async function beginDeletion(
  db: Database,
  backend: Backend,
  saleId: string,
  orders: number,
  author: Author,
): Promise<DeletedSale> {
  const { state, archivedAt } = await readKnownSale(db, saleId);
  if (!archivedAt) throw notArchived(saleId, state);
  if (await backend.sales.read(saleId)) throw stillHeld(saleId);
  await assertMayDelete(db);
  await refuseBesideOlderNodes(db, 'would still show the sale and change its orders');
  return db.transaction(
    async (trx) => {
      await trx.raw('SELECT 1 FROM sales WHERE id = ? FOR UPDATE', [saleId]);
      const row = await readKnownSale(trx, saleId);
      if ((await readOpenMovements(trx, saleId)).length > 0) throw stillHeld(saleId);
      const counted = await countOrders(trx, saleId);
      if (counted !== orders) throw new OrdersDiffer(saleId, counted, orders);
      const sale = { saleId, generation: row.generation + 1 };
      await trx.raw('UPDATE sales SET deleting_since = now(), generation = ? WHERE id = ?', [
        sale.generation,
        saleId,
      ]);
      await writeDeletion(trx, sale, counted, author);
      return sale;
    },
    // The count must see all that was committed before the lock.
    { isolationLevel: 'read committed' },
  );
}

const notArchived = (saleId: string, state: SaleState) =>
  new WrongState(saleId, state, 'deleted: archive it first');

const stillHeld = (saleId: string) =>
  new StockadeError(
    'unavailable',
    `sale ${saleId} has not left the backend yet, and sync is removing it: delete it in a moment`,
  );

async function countOrders(trx: Knex.Transaction, saleId: string): Promise<number> {
  const [counted] = await rows<{ orders: string }>(
    trx,
    'SELECT count(*) AS orders FROM orders WHERE sale_id = ?',
    [saleId],
  );
  return Number(counted!.orders);
}
