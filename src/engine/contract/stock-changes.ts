import type { SegmentRef } from './sale.ts';

/** A segment's part of a change of the sale's total stock. */
export interface Share extends SegmentRef {
  /** The change's id in the ledger: a whole number above 0. Those of one sale rise, and are credited in that order. */
  readonly movement: string;
  readonly units: number;
}

/** Units that come to a sale or leave it, segment by segment. */
export interface StockChanges {
  /** Gives the segment its share of units that were added to the sale; once per movement. @throws StaleGeneration */
  credit(share: Share): Promise<void>;
  /**
   * Takes units that are not sold out of the segment, up to `units` in all for this movement. Asking again takes nothing
   * twice. @returns the units that are out for this movement. @throws StaleGeneration
   */
  withdraw(share: Share): Promise<number>;
  /** Undoes `withdraw`, for good: one that is still on its way finds the door shut. @throws StaleGeneration */
  giveBack(share: Omit<Share, 'units'>): Promise<void>;
  /** Raises the epoch and tells every node: units came back. */
  reopen(saleId: string): Promise<void>;
}
