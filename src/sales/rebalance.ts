/**
 * Evens out the units left in a sale's segments, so that fewer buyers wait for a refill. Buyers purchase and refill
 * meanwhile: each move takes at most what its donor still has, and no unit is lost or duplicated, whichever process
 * dies.
 */
import type { Backend, GenerationRef, Move, SegmentSnapshot } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { planMoves } from '../engine/sale/transfer-plan.ts';
import type { RebalanceOptions, RebalanceReport } from '../operations/rebalance-operations.ts';
import type { Database } from '../postgres/database.ts';
import { readPresentSale } from './sale-rows.ts';

/** @throws UnknownSale; SaleArchived; StaleGeneration while the sale is being rebuilt */
export async function rebalanceSale(
  db: Database,
  backend: Backend,
  saleId: string,
  { dryRun }: RebalanceOptions,
): Promise<RebalanceReport> {
  const row = await readPresentSale(db, saleId);
  const sale = { saleId, generation: row.generation };
  const { segments } = row.sale;
  const finished = dryRun ? [] : await backend.transfers.finish(sale, segments);
  const before = await leftsOf(backend, sale, segments);
  const planned = planMoves(before);
  if (dryRun) return { saleId, dryRun, before, after: applied(before, planned), moves: planned };
  const moves = [...finished, ...(await makeMoves(backend, sale, planned))];
  return { saleId, dryRun, before, after: await leftsOf(backend, sale, segments), moves };
}

/**
 * Makes the moves one after the other.
 * @returns the moves that were made, with fewer units where the donor had fewer by then
 * @throws StaleGeneration
 */
export async function makeMoves(
  backend: Backend,
  sale: GenerationRef,
  planned: readonly Move[],
): Promise<Move[]> {
  const moves: Move[] = [];
  for (const move of planned) {
    const units = await backend.transfers.transfer(sale, move);
    if (units > 0) moves.push({ ...move, units });
  }
  return moves;
}

/** Units left, by segment. @throws StaleGeneration if a segment is missing in this generation */
export async function leftsOf(backend: Backend, sale: GenerationRef, segments: number): Promise<number[]> {
  const snapshot = await backend.sales.snapshot(sale.saleId, segments, sale.generation);
  return snapshot.map(({ counters }: SegmentSnapshot) => {
    if (!counters) throw new StaleGeneration(sale.saleId, sale.generation);
    return counters.left;
  });
}

function applied(lefts: readonly number[], moves: readonly Move[]): number[] {
  const after = [...lefts];
  for (const { from, to, units } of moves) {
    after[from]! -= units;
    after[to]! += units;
  }
  return after;
}
