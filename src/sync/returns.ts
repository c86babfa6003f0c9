import type { Backend, Rejection } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { homeSegment } from '../engine/home-segment.ts';
import { type Database, rows } from './database.ts';

/** A sync that takes over names the rejections of this time again: nobody waits for an answer as long as that. */
const TELL_REJECTIONS_S = 600;

interface PendingReturn {
  order_id: string;
  buyer_id: string;
  units: number;
  segments: number;
  generation: number;
}

/**
 * Applies a sale's outbox: each order is taken out of its buyer's record, and its units go back to the home segment.
 * The backend does that once per order id; so a crash before the row is marked only repeats what changes nothing.
 */
export async function applyReturns(db: Database, backend: Backend, saleId: string): Promise<void> {
  const pending = await rows<PendingReturn>(
    db,
    `SELECT r.order_id::text, r.buyer_id, r.units, s.segments, s.generation
     FROM stock_returns r JOIN sales s ON s.id = r.sale_id
     WHERE r.sale_id = ? AND r.applied_at IS NULL ORDER BY r.order_id`,
    [saleId],
  );
  for (const { order_id: orderId, buyer_id: buyerId, units, segments, generation } of pending) {
    const segment = homeSegment(buyerId, segments);
    try {
      await backend.log.compensate({ saleId, segment, generation, buyerId, orderId, units });
    } catch (error) {
      // The sale is being rebuilt from Postgres, which knows of the return: the rebuild marks it.
      if (error instanceof StaleGeneration) return;
      throw error;
    }
    await db.raw('UPDATE stock_returns SET applied_at = now() WHERE order_id = ?', [orderId]);
  }
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
