import type { SaleBuilding } from './building.ts';
import type { Recall } from './holdings.ts';
import type { KnownEntry } from './order-log.ts';
import type { SaleRecord, SaleState, SegmentRef } from './sale.ts';
import type { StockChanges } from './stock-changes.ts';

export interface SaleVersion {
  readonly epoch: number;
  readonly generation: number;
  readonly state: SaleState;
  /** The rules that were written with the record (engine/sale/rules.ts). Missing: an older version wrote it. */
  readonly rules?: string;
}

/**
 * The expected state of a sale: its record and all its segments have this generation, state and rules, and its logs
 * end with these entries, which are all announced as applied.
 */
export interface ExpectedSale {
  readonly saleId: string;
  readonly generation: number;
  readonly state: SaleState;
  readonly rules: string;
  /** The newest entry of each segment's log, by segment. */
  readonly newest: readonly Pick<KnownEntry, 'seq' | 'tail'>[];
}

export interface SegmentSnapshot {
  readonly segment: number;
  /** `undefined`: the segment is missing or has another generation. */
  readonly counters:
    | {
        readonly left: number;
        readonly seq: number;
        readonly committed: number;
        /** Units and orders taken in this generation. */
        readonly taken: number;
        readonly orders: number;
        /** Units put in minus units moved out, in this generation. Always equal to `left` + `taken`. */
        readonly supplied: number;
        /** The last withdrawal: its movement, `''` if there was none, and the units that are still out for it. */
        readonly withdrawal: { readonly movement: string; readonly units: number };
        /** Units that have left this segment for another one and have not arrived there. */
        readonly inTransit: number;
      }
    | undefined;
}

/** The state of sales in the backend. A call with an older generation than the backend's changes nothing. */
export interface SaleStore extends SaleBuilding, StockChanges {
  read(saleId: string): Promise<SaleRecord | undefined>;
  /** Epochs and states of many sales in one call; `undefined` for a sale that does not exist. */
  versions(saleIds: readonly string[]): Promise<readonly (SaleVersion | undefined)[]>;
  /**
   * Which of the sales match the expectation, each read at one instant. Costs a fraction of reading them. For a sale
   * that does not match, `versions` and `OrderLog.readLog` tell the difference.
   */
  matches(expected: readonly ExpectedSale[]): Promise<readonly boolean[]>;
  /** A counter that changes whenever a sale is published, changes its state, or has its epoch raised. */
  changeCounter(): Promise<string>;
  /**
   * Sets the state in every segment and in the record. Changes nothing if a segment has a later revision already; a record with a later
   * revision stays as it is. Once this has resolved, every take sees the state.
   * @returns the revision that they have now; if it is later than the given one, nothing was changed
   * @throws StaleGeneration
   */
  setState(record: Omit<SaleRecord, 'epoch'>): Promise<number>;
  /** All segments of a sale at one instant. */
  snapshot(saleId: string, segments: number, generation: number): Promise<readonly SegmentSnapshot[]>;
  /** What these buyers hold, from the records in the home segment. @throws StaleGeneration */
  recall(segment: SegmentRef, buyerIds: readonly string[]): Promise<Recall>;
}
