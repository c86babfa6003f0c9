import type { SegmentRef } from './sale.ts';

/** A segment's part of a change of the sale's total stock. */
export interface Share extends SegmentRef {
  /**
   * The movement's id in the ledger: a whole number above 0. The ids of one sale rise, and are credited in that
   * order.
   */
  readonly movement: string;
  readonly units: number;
}

/** Adds units to a sale or removes units from it, segment by segment. */
export interface StockChanges {
  /** Gives the segment its share of units that were added to the sale; once per movement. @throws StaleGeneration */
  credit(share: Share): Promise<void>;
  /**
   * Removes unsold units from the segment, at most `units` in all for this movement. A repeat removes nothing twice.
   * @returns the units that are out for this movement. @throws StaleGeneration
   */
  withdraw(share: Share): Promise<number>;
  /**
   * Undoes `withdraw` for good: a `withdraw` of this movement that arrives later changes nothing. @throws
   * StaleGeneration
   */
  giveBack(share: Omit<Share, 'units'>): Promise<void>;
  /** Raises the epoch and notifies every node that units came back. */
  reopen(saleId: string): Promise<void>;
}
