import type { Backend, Rejection } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { homeSegment } from '../engine/home-segment.ts';
import { numbers } from './array-literal.ts';
import { type Database, rows } from './database.ts';

/** A sync that takes over names the rejections of this time again: nobody waits for an answer as long as that. */
const TELL_REJECTIONS_S = 600;

/** Returns that are on their way to the backend together. */
const PAGE_RETURNS = 500;

interface PendingReturn {
  order_id: string;
  buyer_id: string;
  units: number;
  segments: number;
  generation: number;
}

/**
 * Applies a sale's outbox: each order is taken out of its buyer's record, and its units go back to the home segment.
 * The backend does that once per order id; so a crash before the rows are marked only repeats what changes nothing.
 */
export async function applyReturns(db: Database, backend: Backend, saleId: string): Promise<void> {
  for (;;) {
    const pending = await rows<PendingReturn>(
      db,
      `SELECT r.order_id::text, r.buyer_id, r.units, s.segments, s.generation
       FROM stock_returns r JOIN sales s ON s.id = r.sale_id
       WHERE r.sale_id = ? AND r.applied_at IS NULL ORDER BY r.order_id LIMIT ?`,
      [saleId, PAGE_RETURNS],
    );
    const ends = await Promise.allSettled(pending.map((row) => compensate(backend, saleId, row)));
    await markApplied(
      db,
      pending.filter((_, i) => ends[i]!.status === 'fulfilled'),
    );
    const errors = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
    for (const error of errors) if (!(error instanceof StaleGeneration)) throw error;
    // Stale: the sale is being rebuilt from Postgres, which knows of the returns, and the rebuild marks them.
    if (errors.length > 0 || pending.length < PAGE_RETURNS) return;
  }
}

function compensate(backend: Backend, saleId: string, row: PendingReturn): Promise<void> {
  const { order_id: orderId, buyer_id: buyerId, units, segments, generation } = row;
  const segment = homeSegment(buyerId, segments);
  return backend.log.compensate({ saleId, segment, generation, buyerId, orderId, units });
}

async function markApplied(db: Database, applied: readonly PendingReturn[]): Promise<void> {
  if (applied.length === 0) return;
  await db.raw('UPDATE stock_returns SET applied_at = now() WHERE order_id = ANY (?::bigint[])', [
    numbers(applied.map((row) => row.order_id)),
  ]);
}

export async function readRejections(db: Database, saleId: string): Promise<Rejection[]> {
  const found = await rows<{ order_id: string; rejected_because: Rejection['reason'] }>(
    db,
    `SELECT order_id::text, rejected_because FROM orders
     WHERE sale_id = ? AND status = 'rejected' AND committed_at > now() - ? * interval '1 second'`,
    [saleId, TELL_REJECTIONS_S],
  );
  return found.map((row) => ({ orderId: row.order_id, reason: row.rejected_because }));
}
