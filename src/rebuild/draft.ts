/**
 * A draft: the buyers' records of a sale's next generation, written into the backend while this one goes on selling. So a
 * rebuild that is not an emergency (a resize) keeps buyers waiting only for what has changed since.
 *
 *   begun ──page by page──> written ──frozen, salvaged, next generation (rebuild.ts)──> finished ──> loaded with the segments
 *
 * finished: buyers of whom the draft may not be right are read again. Those are who has bought, or given back, in a
 * transaction that the draft's pages may not have seen: one that began when the draft did, or was not over by then.
 *
 * Crash points. A draft that is not loaded is never looked at: whoever comes next begins one of his own, under another
 * name, and this one goes away by itself. Once it is loaded, it has all buyers.
 */
import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { Backend, Holding } from '../engine/contract.ts';
import { homeSegment } from '../engine/sale/home-segment.ts';
import { groupBy } from '../lib/group-by.ts';
import { type Database, rows } from '../postgres/database.ts';
import type { SaleRow } from '../sales/sale-rows.ts';
import { holdingPages, readHoldings } from './load.ts';

const PARALLEL_WRITES = 8;
const PAGE_BUYERS = 10_000;
/** A transaction shows this much later than it began, at most, in the view of those under way. */
const VIEW_LAG_MS = 1_000;

export interface Draft {
  readonly id: string;
  /** That the next generation is to have. */
  readonly segments: number;
  readonly buyers: number;
  /** What was committed by transactions that began before is in it. In Postgres' own form. */
  readonly since: string;
}

/** @throws StaleGeneration if another draft is begun meanwhile; the signal's reason */
export async function writeDraft(
  db: Database,
  backend: Backend,
  { sale, generation }: SaleRow,
  segments: number,
  signal?: AbortSignal,
): Promise<Draft> {
  const id = randomUUID();
  const since = await readSince(db);
  const place = { saleId: sale.id, generation: generation + 1, segments, id };
  const numbers = Array.from({ length: segments }, (_, segment) => segment);
  await pLimit(PARALLEL_WRITES).map(numbers, (segment) =>
    backend.sales.beginDraft({ saleId: sale.id, segment, generation: generation + 1, draft: id }),
  );
  let buyers = 0;
  for await (const { holdings } of holdingPages(db, sale, '')) {
    signal?.throwIfAborted();
    await write(backend, place, holdings);
    buyers += holdings.length;
  }
  return { id, segments, buyers, since };
}

/** Behind the transaction that has begun the generation: what is given back from then on comes back by itself (load.ts). */
export async function finishDraft(
  db: Database,
  backend: Backend,
  { sale, generation }: SaleRow,
  { id, segments, since }: Draft,
): Promise<void> {
  const changed = await rows<{ buyer_id: string }>(
    db,
    `SELECT buyer_id FROM orders WHERE sale_id = ? AND committed_at >= ?::timestamptz
     UNION SELECT buyer_id FROM stock_returns WHERE sale_id = ? AND generation = ? AND created_at >= ?::timestamptz`,
    [sale.id, since, sale.id, generation - 1, since],
  );
  for (let at = 0; at < changed.length; at += PAGE_BUYERS) {
    const buyerIds = changed.slice(at, at + PAGE_BUYERS).map((row) => row.buyer_id);
    const held = new Map((await readHoldings(db, sale, buyerIds)).map((h) => [h.buyerId, h]));
    const holdings = buyerIds.map((buyerId) => held.get(buyerId) ?? { buyerId, orders: [] });
    await write(backend, { saleId: sale.id, generation, segments, id }, holdings);
  }
}

/** When the oldest transaction began that is not over now. All who write orders do so as the same user of Postgres. */
async function readSince(db: Database): Promise<string> {
  const [oldest] = await rows<{ since: string }>(
    db,
    `SELECT (least(now(), min(xact_start)) - ? * interval '1 millisecond')::text AS since
     FROM pg_stat_activity WHERE datname = current_database()`,
    [VIEW_LAG_MS],
  );
  return oldest!.since;
}

interface Place {
  readonly saleId: string;
  readonly generation: number;
  readonly segments: number;
  readonly id: string;
}

async function write(
  backend: Backend,
  { saleId, generation, segments, id }: Place,
  holdings: readonly Holding[],
): Promise<void> {
  const bySegment = groupBy(holdings, (holding) => homeSegment(holding.buyerId, segments));
  await pLimit(PARALLEL_WRITES).map([...bySegment], ([segment, ofSegment]) =>
    backend.sales.draftHoldings({ saleId, segment, generation, draft: id }, ofSegment),
  );
}
