/**
 * A draft: the buyers' records of a sale's next generation, written into the backend while the present one keeps
 * selling. With it, a rebuild that is no emergency (a resize) makes buyers wait only for the records that have
 * changed since.
 *
 *   begun ──page by page──> written ──frozen, salvaged, next generation (rebuild.ts)──> finished ──> loaded with the segments
 *
 * finished: the records of some buyers are read again, because the draft may have them wrong. Those buyers have an
 * order or a return in a transaction that the draft's pages may have missed: one that was open when the draft began,
 * or that began later.
 *
 * Crash points. A draft that is not loaded is never read: the next process begins a draft with another id, and the
 * old one expires. Once it is loaded, it has all buyers.
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
/** A transaction may appear in pg_stat_activity this much later than it began. */
const VIEW_LAG_MS = 1_000;

export interface Draft {
  readonly id: string;
  /** Number of segments of the next generation. */
  readonly segments: number;
  readonly buyers: number;
  /**
   * Transactions that began before this time were committed before the draft, so it includes them. In Postgres' own
   * format.
   */
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

/**
 * Call it after the transaction that began the generation: orders returned after that are compensated separately
 * (load.ts).
 */
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

/** When the oldest open transaction began. All processes that write orders use the same Postgres user. */
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
