import type { GenerationRef } from './sale.ts';

/** A planned move of units from one segment of a sale to another. */
export interface Move {
  readonly from: number;
  readonly to: number;
  readonly units: number;
}

/** Moves units between segments. The sale's total stays the same at every moment, even if a process dies. */
export interface TransferStore {
  /**
   * Moves `units`, or as many as the donor has left. A repeat moves again: that changes where units lie, not how many
   * there are.
   * @returns the units that were moved. @throws StaleGeneration
   */
  transfer(sale: GenerationRef, move: Move): Promise<number>;
  /** Completes transfers that were begun and not finished. @returns those. @throws StaleGeneration */
  finish(sale: GenerationRef, segments: number): Promise<readonly Move[]>;
}
