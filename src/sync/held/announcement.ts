/**
 * Announces to the backend what is in Postgres of one sale. A sync does so when it takes a sale over, because an earlier sync may
 * have died between its commit and the announcement, and when the backend may have lost what was announced.
 */
import type { LogRead, Rejection, Watermark } from '../../engine/contract.ts';
import { applyRejections, readRejections } from '../../orders/returns.ts';
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
  // They come first: a watermark must not overtake the orders that were refused. Other returns can wait for the reconciler, however
  // many there are.
  await applyRejections(db, backend, saleId);
  const begun = (cursors ?? (await readCursors(db, saleId))).filter((cursor) => cursor.seq > 0);
  const reads = await readLast(backend, begun);
  // Rejections of these orders are announced at any age: their buyers may still wait, and Postgres' clock, which tells the age, may
  // have been set.
  const announced = reads.flatMap(({ entries }) =>
    entries.flatMap(({ orders }) => orders.map((o) => o.orderId)),
  );
  const rejected = await readRejections(db, saleId, announced);
  await teller.tell(watermarksOf(begun, reads, rejected));
}

/** The last applied entry of each log, if it is not trimmed. */
function readLast(
  { log }: Pick<SyncStores['backend'], 'log'>,
  begun: readonly Cursor[],
): Promise<readonly LogRead[]> {
  return log.readLog(
    begun.map((cursor) => ({ ...cursor, seq: cursor.seq - 1 })),
    1,
  );
}

/** Only of the logs that still hold the applied entries. The other logs have lost writes and must not be trimmed. */
function watermarksOf(
  begun: readonly Cursor[],
  reads: readonly LogRead[],
  rejected: readonly Rejection[],
): Watermark[] {
  return begun
    .filter((cursor, i) => isOn(reads[i]!, cursor))
    .map((cursor) => ({ ...cursor, rejected, tails: [cursor.tail] }));
}
