/**
 * Begins to delete an archived sale: from then on no reader sees it. States and crash points of a deletion:
 * docs/internals/deletion.md.
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
import { countOrders } from './orders-of-sale.ts';

/** Orders of an archived sale are added only if a Redis that was restored from an older copy has sold some. */
const MAX_COUNTS = 3;

/**
 * Counts the orders, and then hides the sale in one transaction, unless orders may have been added since the count began: then
 * it counts again. The new generation stops every rebuild of the sale that is under way, so none is added afterwards.
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
  for (let count = 1; count <= MAX_COUNTS; count++) {
    const version = await readVersion(db, saleId);
    const counted = await countOrders(db, saleId);
    if (counted !== orders) {
      // Another process may be deleting them.
      await readKnownSale(db, saleId);
      throw new OrdersDiffer(saleId, counted, orders);
    }
    const sale = await db.transaction((trx) => hide(trx, { saleId, version, orders, author }));
    if (sale) return sale;
  }
  throw new StockadeError(
    'unavailable',
    `sale ${saleId} was changed each of the ${MAX_COUNTS} times that its orders were counted: delete it in a moment`,
  );
}

interface Counted {
  readonly saleId: string;
  /** Of the sale's row, when the count began. */
  readonly version: string | undefined;
  readonly orders: number;
  readonly author: Author;
}

/** @returns `undefined`, and nothing was changed, if the row has another version */
async function hide(
  trx: Knex.Transaction,
  { saleId, version, orders, author }: Counted,
): Promise<DeletedSale | undefined> {
  const locked = await readVersion(trx, saleId, 'FOR UPDATE');
  const row = await readKnownSale(trx, saleId);
  if (locked !== version) return undefined;
  if ((await readOpenMovements(trx, saleId)).length > 0) throw stillHeld(saleId);
  const sale = { saleId, generation: row.generation + 1 };
  await trx.raw('UPDATE sales SET deleting_since = now(), generation = ? WHERE id = ?', [
    sale.generation,
    saleId,
  ]);
  await writeDeletion(trx, sale, orders, author);
  return sale;
}

/** A transaction that adds orders writes the sale's row, so the row has another version when it has committed. */
async function readVersion(
  db: Knex,
  saleId: string,
  lock: 'FOR UPDATE' | '' = '',
): Promise<string | undefined> {
  const [row] = await rows<{ version: string }>(
    db,
    `SELECT xmin::text AS version FROM sales WHERE id = ? ${lock}`,
    [saleId],
  );
  return row?.version;
}

const notArchived = (saleId: string, state: SaleState) =>
  new WrongState(saleId, state, 'deleted: archive it first');

const stillHeld = (saleId: string) =>
  new StockadeError(
    'unavailable',
    `sale ${saleId} has not left the backend yet, and sync is removing it: delete it in a moment`,
  );
