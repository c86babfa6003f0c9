/**
 * A draft: the buyers' records of a sale's next generation, written into the backend while the present one keeps
 * selling. With it, a rebuild that is no emergency (a resize) makes buyers wait only for the records that have
 * changed since.
 *
 *   begun ──page by page──> written ──frozen, salvaged, next generation (rebuild.ts)──> finished ──> loaded with the segments
 *
 * To finish a draft, the records of some buyers are read again: those who have an order or a return that the draft's pages
 * may have missed. They are found by the time of that order or return. The clock may be set back meanwhile, so the time at
 * which the draft began is not used. Instead every transaction that writes orders or returns of the sale notes its own time
 * in the sale's row, if that is earlier than the noted one (sales.draft_since). The draft clears the note when it begins. Both
 * lock the row. So a transaction either has committed before the draft's first page is read, or its time is noted.
 *
 * Crash points. A draft that is not loaded is never read: the next process begins a draft with another id, and the
 * old one expires. Once it is loaded, it has all buyers.
 *
 * The backend may go back to an earlier state while a draft is written. So each write is numbered, and refused if the one before
 * it is missing. A segment takes over its draft only with the number of the last write.
 */
import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { Backend, DraftStamp, GenerationRef, Holding } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { homeSegment } from '../engine/sale/home-segment.ts';
import { chunksOf } from '../lib/chunks-of.ts';
import { groupBy } from '../lib/group-by.ts';
import { type Database, rows } from '../postgres/database.ts';
import type { SaleRow } from '../sales/sale-rows.ts';
import { holdingPages, readHoldings } from './load.ts';

const PARALLEL_WRITES = 8;
const PAGE_BUYERS = 10_000;

export interface Draft {
  readonly id: string;
  /** Number of segments of the next generation. */
  readonly segments: number;
  readonly buyers: number;
  /** How often the draft of each segment was written. */
  readonly writes: readonly number[];
}

/** @throws StaleGeneration if another draft or generation is begun meanwhile; the signal's reason */
export async function writeDraft(
  db: Database,
  backend: Backend,
  { sale, generation }: SaleRow,
  segments: number,
  signal?: AbortSignal,
): Promise<Draft> {
  const id = randomUUID();
  await noteBeginning(db, { saleId: sale.id, generation, id });
  const next = { saleId: sale.id, generation: generation + 1 };
  let draft: Draft = { id, segments, buyers: 0, writes: Array(segments).fill(0) };
  const all = Array.from({ length: segments }, (_, segment) => segment);
  await pLimit(PARALLEL_WRITES).map(all, (segment) =>
    backend.sales.beginDraft({ ...next, segment, draft: stampOf(draft, segment) }),
  );
  for await (const { holdings } of holdingPages(db, sale, '')) {
    signal?.throwIfAborted();
    draft = await write(backend, next, draft, holdings);
    draft = { ...draft, buyers: draft.buyers + holdings.length };
  }
  return draft;
}

/** What the draft of this segment contains. */
export function stampOf({ id, writes }: Draft, segment: number): DraftStamp {
  return { id, writes: writes[segment]! };
}

/**
 * Call it after the transaction that began the generation. Orders that were returned after that still count as held (load.ts).
 * @returns the draft that may be loaded; `undefined` if another one was begun meanwhile
 * @throws StaleGeneration, also if the backend has lost a part of the draft
 */
export async function finishDraft(
  db: Database,
  backend: Backend,
  row: SaleRow,
  draft: Draft,
): Promise<Draft | undefined> {
  const { sale, generation } = row;
  const since = await readSince(db, sale.id, draft.id);
  if (since === undefined) return undefined;
  const changed = await rows<{ buyer_id: string }>(
    db,
    `SELECT buyer_id FROM orders WHERE sale_id = ? AND committed_at >= ?::timestamptz
     UNION SELECT buyer_id FROM stock_returns WHERE sale_id = ? AND generation = ? AND created_at >= ?::timestamptz`,
    [sale.id, since, sale.id, generation - 1, since],
  );
  let finished = draft;
  for (const page of chunksOf(changed, PAGE_BUYERS)) {
    const buyerIds = page.map((buyer) => buyer.buyer_id);
    const held = new Map((await readHoldings(db, row, buyerIds)).map((h) => [h.buyerId, h]));
    const holdings = buyerIds.map((buyerId) => held.get(buyerId) ?? { buyerId, orders: [] });
    finished = await write(backend, { saleId: sale.id, generation }, finished, holdings);
  }
  return finished;
}

/** Waits for transactions that are writing orders or returns of the sale, so that the draft's pages include them. */
async function noteBeginning(
  db: Database,
  { saleId, generation, id }: GenerationRef & { readonly id: string },
): Promise<void> {
  const noted = await rows(
    db,
    `UPDATE sales SET draft_id = ?, draft_since = 'infinity' WHERE id = ? AND generation = ? RETURNING 1`,
    [id, saleId, generation],
  );
  if (noted.length === 0) throw new StaleGeneration(saleId, generation);
}

/**
 * The earliest time that was noted since the draft began, in Postgres' own format.
 * @returns `undefined` if another draft has begun
 */
async function readSince(db: Database, saleId: string, id: string): Promise<string | undefined> {
  const [noted] = await rows<{ since: string }>(
    db,
    'SELECT draft_since::text AS since FROM sales WHERE id = ? AND draft_id = ?',
    [saleId, id],
  );
  return noted?.since;
}

/** @returns the draft with these */
async function write(
  backend: Backend,
  next: GenerationRef,
  draft: Draft,
  holdings: readonly Holding[],
): Promise<Draft> {
  const bySegment = groupBy(holdings, (holding) => homeSegment(holding.buyerId, draft.segments));
  const writes = draft.writes.map((before, segment) => (bySegment.has(segment) ? before + 1 : before));
  const written = { ...draft, writes };
  await pLimit(PARALLEL_WRITES).map([...bySegment], ([segment, ofSegment]) =>
    backend.sales.draftHoldings({ ...next, segment, draft: stampOf(written, segment) }, ofSegment),
  );
  return written;
}
