/**
 * The outbox of returns (table stock_returns): each ended order is removed from its buyer's record in the backend,
 * and its units go back to the home segment. The process that commits a return applies it at once. If that process
 * dies, the reconciler applies it. A repetition does no harm: the backend compensates once per order id.
 *
 * Steps and crash points: docs/internals/orders.md.
 */

import type { Knex } from 'knex';
import type { Backend, Rejection } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { homeSegment } from '../engine/sale/home-segment.ts';
import { chunksOf } from '../lib/chunks-of.ts';
import { numbers, texts } from '../postgres/array-literal.ts';
import { type Database, rows } from '../postgres/database.ts';
import { despiteDeadlocks } from '../postgres/deadlock.ts';

/**
 * A sync that takes a sale over announces the rejections of this last period again. No purchase waits that long for
 * an answer.
 */
const TELL_REJECTIONS_S = 600;

/** Returns that are sent to the backend together. */
const PAGE_RETURNS = 500;

interface PendingReturn {
  order_id: string;
  sale_id: string;
  buyer_id: string;
  units: number;
  segments: number;
  generation: number;
  /** Changes whenever the row is written. */
  version: string;
}

/**
 * SQL: the pending returns of one sale. Its values: the sale, the sale. It names an order of rows that only an index on sales has. So
 * a page reads its own rows of the index of pending returns, and no plan reads the whole table, or sorts all that is pending.
 */
const OF_SALE = 'r.sale_id >= ? AND r.sale_id <= ?';
const IN_PAGES = 'ORDER BY r.sale_id LIMIT ?';

/** Applies the pending returns of one sale. @throws the database's or backend's error */
export async function applyReturns(db: Database, backend: Backend, saleId: string): Promise<void> {
  while (await applySomeReturns(db, backend, saleId));
}

/**
 * Applies at most a page of the pending returns of one sale.
 * @returns whether more may be left that can be applied
 * @throws as `applyReturns`
 */
export function applySomeReturns(db: Database, backend: Backend, saleId: string): Promise<boolean> {
  return applyNext(db, backend, saleId, OF_SALE);
}

/** As `applyReturns`, but only of orders that were rejected. */
export async function applyRejections(db: Database, backend: Backend, saleId: string): Promise<void> {
  while (await applyNext(db, backend, saleId, `${OF_SALE} AND r.reason LIKE 'rejected: %'`));
}

async function applyNext(
  db: Database,
  backend: Backend,
  saleId: string,
  condition: string,
): Promise<boolean> {
  const pending = await readPending(db, `${condition} ${IN_PAGES}`, [saleId, saleId, PAGE_RETURNS]);
  const stale = await applyPage(db, backend, pending);
  return stale === 0 && pending.length === PAGE_RETURNS;
}

/**
 * Applies the returns of these orders, of any sales, right after they were committed. Orders without a pending return
 * are skipped.
 * @throws as `applyReturns`; the reconciler applies the rest
 */
export async function applyReturnsOf(
  db: Database,
  backend: Backend,
  orderIds: readonly string[],
): Promise<void> {
  for (const page of chunksOf(orderIds, PAGE_RETURNS))
    await applyPage(db, backend, await readPending(db, 'r.order_id = ANY (?::bigint[])', [numbers(page)]));
}

/** Sales with pending returns: a process is about to apply them, or has died before. */
export async function salesWithReturns(db: Database): Promise<string[]> {
  const found = await rows<{ id: string }>(
    db,
    'SELECT DISTINCT sale_id AS id FROM stock_returns WHERE applied_at IS NULL',
  );
  return found.map(({ id }) => id);
}

function readPending(db: Database, condition: string, bindings: readonly Knex.RawBinding[]) {
  return rows<PendingReturn>(
    db,
    `SELECT r.order_id::text, r.sale_id, r.buyer_id, r.units, s.segments, s.generation, r.xmin::text AS version
     FROM stock_returns r JOIN sales s ON s.id = r.sale_id
     WHERE r.applied_at IS NULL AND ${condition}`,
    bindings,
  );
}

/**
 * @returns how many could not be applied because their sale is being rebuilt. If the rebuild has not begun its generation yet, it
 * loads a state that includes them, and marks them. Otherwise they are applied after the rebuild has published.
 */
async function applyPage(db: Database, backend: Backend, pending: readonly PendingReturn[]): Promise<number> {
  const ends = await Promise.allSettled(pending.map((row) => compensate(backend, row)));
  await markApplied(
    db,
    pending.filter((_, i) => ends[i]!.status === 'fulfilled'),
  );
  const errors = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
  for (const error of errors) if (!(error instanceof StaleGeneration)) throw error;
  return errors.length;
}

function compensate(backend: Backend, row: PendingReturn): Promise<void> {
  const { order_id: orderId, sale_id: saleId, buyer_id: buyerId, units, segments, generation } = row;
  const segment = homeSegment(buyerId, segments);
  return backend.log.compensate({ saleId, segment, generation, buyerId, orderId, units });
}

/**
 * Marks only rows that are unchanged since they were read: an order may be taken and returned once more meanwhile
 * (apply-each.ts).
 */
async function markApplied(db: Database, applied: readonly PendingReturn[]): Promise<void> {
  if (applied.length === 0) return;
  const orderIds = numbers(applied.map((row) => row.order_id));
  const versions = texts(applied.map((row) => row.version));
  await despiteDeadlocks(() =>
    db.raw(
      `UPDATE stock_returns r SET applied_at = now() FROM unnest(?::bigint[], ?::text[]) AS a (id, version)
       WHERE r.order_id = a.id AND r.xmin::text = a.version`,
      [orderIds, versions],
    ),
  );
}

/**
 * The recently rejected orders of a sale, and which of these orders were rejected at any time. Each has a return, whatever its
 * own status is (apply-each.ts).
 */
export async function readRejections(
  db: Database,
  saleId: string,
  orderIds: readonly string[] = [],
): Promise<Rejection[]> {
  const found = await rows<{ order_id: string; because: Rejection['reason'] }>(
    db,
    `SELECT order_id::text, substr(reason, length('rejected: ') + 1) AS because FROM stock_returns
     WHERE sale_id = ? AND reason LIKE 'rejected: %'
       AND (created_at > now() - ? * interval '1 second' OR order_id = ANY (?::bigint[]))`,
    [saleId, TELL_REJECTIONS_S, numbers(orderIds)],
  );
  return found.map((row) => ({ orderId: row.order_id, reason: row.because }));
}
