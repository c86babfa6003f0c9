/**
 * Makes a refill on a cluster step by step, where one Redis has a script for it
 * (redis/lua/purchase/refill-and-take.lua).
 */
import type { GenerationRef, Move } from '../contract.ts';
import { NotExecuted } from '../errors.ts';
import { planRefill, type Want } from '../sale/transfer-plan.ts';
import { type ClusterSight, isStuck, type SegmentSight, type Stock } from './cluster-sight.ts';
import type { ClusterTransfers } from './cluster-transfers.ts';

/** The total if not all segments could be read. The lane then asks again. */
export const UNKNOWN_TOTAL = Number.POSITIVE_INFINITY;

export class Refill {
  readonly #transfers: ClusterTransfers;
  readonly #sight: ClusterSight;

  constructor(transfers: ClusterTransfers, sight: ClusterSight) {
    this.#transfers = transfers;
    this.#sight = sight;
  }

  /**
   * Moves units to the segment that needs them, from segments whose servers answer.
   * @returns the units that were left in the sale before: an upper bound, because the segments are not read at one instant
   * @throws StaleGeneration; NotExecuted if a server does not answer and the others have fewer units than the smallest order needs
   */
  async run(sale: GenerationRef, segments: number, want: Want): Promise<Stock> {
    const [epoch, first] = await Promise.all([this.#sight.epoch(sale), this.#sight.all(sale, segments)]);
    let sights = first;
    if (await this.#finishOthers(sale, sights)) sights = await this.#sight.all(sale, segments);
    // A segment gives no units while a transfer out of it is open. The receiver's own units count nevertheless.
    const lefts = sights.map((sight, segment) =>
      !sight || (segment !== want.receiver && isStuck(sight, sights)) ? 0 : sight.left,
    );
    const seen = lefts.reduce((sum, left) => sum + left, 0);
    const isComplete = sights.every((sight) => sight !== undefined);
    if (!isComplete && seen < want.least) {
      throw new NotExecuted('a server of the cluster does not answer, and the others have too few units');
    }
    await this.#move(sale, planRefill(lefts, want));
    return { total: isComplete ? seen : UNKNOWN_TOTAL, epoch };
  }

  /**
   * Finishes transfers that other processes have left open: their units count too. Those to a server that does not answer stay
   * open: otherwise no other segment would get units meanwhile. @returns whether it has finished any
   */
  async #finishOthers(sale: GenerationRef, sights: readonly (SegmentSight | undefined)[]): Promise<boolean> {
    const open = sights.flatMap((sight, donor) =>
      sight?.out && !isStuck(sight, sights) ? [{ donor, transfer: sight.out }] : [],
    );
    await Promise.all(open.map(({ donor, transfer }) => this.#transfers.complete(sale, donor, transfer)));
    return open.length > 0;
  }

  /** In parallel: each move has its own donor. */
  async #move(sale: GenerationRef, moves: readonly Move[]): Promise<void> {
    await Promise.all(moves.map((move) => this.#transfers.transfer(sale, move)));
  }
}
