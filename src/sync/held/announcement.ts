/**
 * Announces to the backend what is in Postgres of one sale. A sync does so when it takes a sale over, because an earlier sync may
 * have died between its commit and the announcement, and when the backend may have lost what was announced.
 */
import type { Rejection, Watermark } from '../../engine/contract.ts';
import { applyReturns, readRejections } from '../../orders/returns.ts';
import { type Cursor, readCursors } from '../../postgres/cursors.ts';
import { isOn } from '../apply/log-chain.ts';
import type { WatermarkTeller } from '../apply/watermark-teller.ts';
import type { SyncStores } from './sync-stores.ts';

/** @param cursors those of the sale, if they were just read */
export async function announceApplied(
  { db, backend }: Pick<SyncStores, 'db' | 'backend'>,
  teller: WatermarkTeller,
  saleId: string,
  cursors?: readonly Cursor[],
): Promise<void> {
  // Returns come first: a watermark must not overtake the orders that were refused.
  await applyReturns(db, backend, saleId);
  const rejected = await readRejections(db, saleId);
  const applied = cursors ?? (await readCursors(db, saleId));
  await teller.tell(await watermarksOf(backend, applied, rejected));
}

/** Only of the logs that still hold the applied entries. The other logs have lost writes and must not be trimmed. */
async function watermarksOf(
  { log }: Pick<SyncStores['backend'], 'log'>,
  cursors: readonly Cursor[],
  rejected: readonly Rejection[],
): Promise<Watermark[]> {
  const begun = cursors.filter((cursor) => cursor.seq > 0);
  const before = begun.map((cursor) => ({ ...cursor, seq: cursor.seq - 1 }));
  const reads = await log.readLog(before, 1);
  return begun
    .filter((cursor, i) => isOn(reads[i]!, cursor))
    .map((cursor) => ({ ...cursor, rejected, tails: [cursor.tail] }));
}
