/**
 * Archives a closed sale: from then on it is in Postgres alone. It is a rebuild that builds nothing (rebuild.ts). States
 * and crash points: docs/internals/leaving.md.
 *
 *   closed, drained -> freeze -> salvage -> next generation, archived -> removed from the backend
 */

import type { Backend } from '../engine/contract.ts';
import { StaleGeneration, StockadeError } from '../engine/errors.ts';
import type { Author } from '../engine/sale/author.ts';
import { counted } from '../lib/counted.ts';
import { WrongState } from '../operations/sale-operations.ts';
import { readCursors } from '../postgres/cursors.ts';
import type { Database } from '../postgres/database.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { followMovements } from '../sales/movements.ts';
import { readKnownSale, type SaleRow } from '../sales/sale-rows.ts';
import { NO_WITNESS, rebuildSale } from './rebuild.ts';
import { ifFreeToRebuild } from './rebuild-lock.ts';

export interface ArchiveStores {
  readonly db: Database;
  readonly backend: Backend;
  readonly locks: SaleLocks;
}

/**
 * An archived sale stays as it is; what another process has left of it in the backend is removed.
 * @throws UnknownSale; WrongState unless the sale is closed; StockadeError `unavailable` if its logs hold orders that
 * sync has not applied; StaleGeneration while it is being rebuilt. Then nothing was changed. StaleGeneration also comes if the backend
 * has gone back meanwhile and sells the sale again. In that case the sale is archived, and sync removes it from the backend.
 */
export async function archiveSale(
  { db, backend, locks }: ArchiveStores,
  saleId: string,
  author: Author,
): Promise<void> {
  const row = await readKnownSale(db, saleId);
  if (row.state !== 'closed') throw new WrongState(saleId, row.state, 'archived: close it first');
  const archived = await ifFreeToRebuild(locks, saleId, async () => {
    if (!row.archivedAt) await assertDrained({ db, backend }, row);
    // Another sale may have the id by now. Its generation is a later one.
    const witness = { ...NO_WITNESS, generation: row.generation };
    await rebuildSale(db, backend, saleId, witness, { archive: author });
  });
  if (!archived) throw new StaleGeneration(saleId, row.generation);
  await followMovements(db, backend, saleId);
}

/**
 * If the rebuild salvaged an order, no watermark would name it, and its purchase would be answered `unknown`. So sync must
 * have applied all orders before. A closed sale takes no new orders, so its logs stay drained.
 */
async function assertDrained(
  { db, backend }: Pick<ArchiveStores, 'db' | 'backend'>,
  { sale, generation }: SaleRow,
): Promise<void> {
  const cursors = await readCursors(db, sale.id);
  const found = await backend.sales.snapshot(sale.id, sale.segments, generation);
  let waiting = 0;
  let isDrained = true;
  for (const { segment, counters } of found) {
    if (!counters) throw new StaleGeneration(sale.id, generation);
    waiting += Math.max(0, counters.orders - (cursors[segment]?.orders ?? 0));
    if (counters.committed < counters.seq) isDrained = false;
  }
  if (isDrained) return;
  throw new StockadeError(
    'unavailable',
    `sale ${sale.id} has ${counted(waiting, 'order')} on the way to Postgres: archive it again in a moment, when sync has announced all`,
  );
}
