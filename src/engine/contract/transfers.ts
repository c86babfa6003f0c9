import type { GenerationRef } from './sale.ts';

/** Units to be moved from one segment of a sale to another. */
export interface Move {
  readonly from: number;
  readonly to: number;
  readonly units: number;
}

/** Units that change segments. The sale as a whole has as many as before, at every moment and whatever dies. */
export interface TransferStore {
  /**
   * Moves `units`, or as many as the donor has left. Asked again it moves again: it is about where units lie, not how many
   * there are. @returns the units that were moved. @throws StaleGeneration
   */
  transfer(sale: GenerationRef, move: Move): Promise<number>;
  /** Completes transfers that somebody has begun and not finished. @returns those. @throws StaleGeneration */
  finish(sale: GenerationRef, segments: number): Promise<readonly Move[]>;
}
