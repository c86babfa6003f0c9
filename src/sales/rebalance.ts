/**
 * Evens out what the segments of a sale have left, so that fewer buyers wait for a refill. While it works, others buy and
 * refill: each move takes what its donor still has, and no unit is lost or made, whatever dies in between.
 */
import type { Backend, GenerationRef, Move, SegmentSnapshot } from '../engine/contract.ts';
import { StaleGeneration } from '../engine/errors.ts';
import { planMoves } from '../engine/sale/transfer-plan.ts';
import type { RebalanceOptions, RebalanceReport } from '../operations/rebalance-operations.ts';
import type { Database } from '../postgres/database.ts';
import { readKnownSale } from './sale-rows.ts';

/** @throws UnknownSale; StaleGeneration while the sale is being built anew */
export async function rebalanceSale(
  db: Database,
  backend: Backend,
  saleId: string,
  { dryRun }: RebalanceOptions,
): Promise<RebalanceReport> {
  const row = await readKnownSale(db, saleId);
  const sale = { saleId, generation: row.generation };
  const { segments } = row.sale;
  const finished = dryRun ? [] : await backend.transfers.finish(sale, segments);
  const before = await leftsOf(backend, sale, segments);
  const planned = planMoves(before);
  if (dryRun) return { saleId, dryRun, before, after: applied(before, planned), moves: planned };
  const moves = [...finished, ...(await makeMoves(backend, sale, planned))];
  return { saleId, dryRun, before, after: await leftsOf(backend, sale, segments), moves };
}

/** One after the other. @returns what was moved, which is less where the donor had less by then. @throws StaleGeneration */
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

/** Units left, by segment. @throws StaleGeneration if one of them is not there in this generation */
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
