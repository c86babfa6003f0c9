/**
 * When the guard refuses a batch: the same work order by order, in log order, each behind a savepoint. What doesn't fit
 * becomes an order with status `rejected` and a row in the outbox that takes it back out of the buyer's record.
 *
 * Units: an order refused for want of stock had no unit in the truth, so none goes back to the segment. One refused for
 * the limit did: its unit is still in `sales.stock`, and returns to the segment.
 */
import type { Knex } from 'knex';
import type { Rejection, TakeOrder } from '../engine/contract.ts';
import { applySlices, GuardRefused } from './apply.ts';
import type { Batch, Slice } from './batch.ts';
import { type Database, rows } from './database.ts';

/** @returns the rejected orders by id. @throws CursorMoved or the database's error */
export async function applyEach(db: Database, batch: Batch): Promise<Map<string, Rejection>> {
  return db.transaction(async (trx) => {
    const rejected = await sellEach(trx, batch.slices);
    await applySlices(trx, [], batch.slices);
    return rejected;
  });
}

/** The orders of the slices, without their cursors. @returns and throws as `applyEach` */
export async function sellEach(
  trx: Knex.Transaction,
  slices: readonly Slice[],
): Promise<Map<string, Rejection>> {
  const rejected = new Map<string, Rejection>();
  for (const slice of slices) {
    for (const order of slice.entries.flatMap((entry) => entry.orders)) {
      const rejection = await applyOne(trx, slice, order);
      if (rejection) rejected.set(order.orderId, rejection);
    }
  }
  return rejected;
}

async function applyOne(
  trx: Knex.Transaction,
  slice: Slice,
  order: TakeOrder,
): Promise<Rejection | undefined> {
  try {
    await trx.transaction((savepoint) => applySlices(savepoint, [withOnly(slice, order)], []));
    return undefined;
  } catch (error) {
    if (!(error instanceof GuardRefused)) throw error;
    return reject(trx, slice.from.saleId, order, error.reason);
  }
}

/**
 * An order that Postgres has already stands as it was decided then; an order of somebody else under the same id does not
 * count as this one. If it was rejected then, it has been taken once more
 * by one who asked again for it, and is taken back once more.
 */
async function reject(
  trx: Knex.Transaction,
  saleId: string,
  order: TakeOrder,
  reason: GuardRefused['reason'],
): Promise<Rejection | undefined> {
  await trx.raw(
    `INSERT INTO orders (order_id, sale_id, buyer_id, quantity, status, one_per_buyer, idempotency_key, rejected_because)
     SELECT ?, id, ?, ?, 'rejected', per_buyer_limit = 1, ?, ? FROM sales WHERE id = ?
     ON CONFLICT (order_id) DO NOTHING`,
    [order.orderId, order.buyerId, order.quantity, order.key || null, reason, saleId],
  );
  const [decided] = await rows<{ is_this: boolean; rejected_because: Rejection['reason'] | null }>(
    trx,
    `SELECT sale_id = ? AND buyer_id = ? AND quantity = ? AS is_this, rejected_because
     FROM orders WHERE order_id = ?`,
    [saleId, order.buyerId, order.quantity, order.orderId],
  );
  const rejection = decided?.is_this ? decided.rejected_because : 'duplicate';
  if (!rejection) return undefined;
  await trx.raw(
    `INSERT INTO stock_returns (order_id, sale_id, buyer_id, units, reason) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (order_id) DO UPDATE SET units = excluded.units, applied_at = NULL`,
    [order.orderId, saleId, order.buyerId, reason === 'stock' ? 0 : order.quantity, `rejected: ${reason}`],
  );
  return { orderId: order.orderId, reason: rejection };
}

function withOnly(slice: Slice, order: TakeOrder): Slice {
  return { ...slice, entries: [{ ...slice.entries[0]!, orders: [order] }], units: order.quantity };
}
