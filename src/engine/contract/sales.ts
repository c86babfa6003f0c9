import type { SaleBuilding } from './building.ts';
import type { Recall } from './holdings.ts';
import type { KnownEntry } from './order-log.ts';
import type { SaleRecord, SaleState, SegmentRef } from './sale.ts';
import type { StockChanges } from './stock-changes.ts';

export interface SaleVersion {
  readonly epoch: number;
  readonly generation: number;
  readonly state: SaleState;
  /** By which this version has written the record last (engine/sale/rules.ts). Missing: it has not. */
  readonly rules?: string;
}

/** A sale whose record and segments all have this generation, state and rules, and whose logs end with these entries. */
export interface ExpectedSale {
  readonly saleId: string;
  readonly generation: number;
  readonly state: SaleState;
  readonly rules: string;
  /** By segment. */
  readonly newest: readonly KnownEntry[];
}

export interface SegmentSnapshot {
  readonly segment: number;
  /** `undefined`: the segment is missing or has another generation. */
  readonly counters:
    | {
        readonly left: number;
        readonly seq: number;
        readonly committed: number;
        /** Units taken, and orders taken, in this generation. */
        readonly taken: number;
        readonly orders: number;
        /** Units that were put in, less those that were moved out, in this generation: always `left` and `taken` together. */
        readonly supplied: number;
        /** Units that were taken out for the last withdrawal and not given back. Its movement; `''` if there was none. */
        readonly withdrawn: { readonly movement: string; readonly units: number };
        /** Units that have left this segment for another and have not arrived there. */
        readonly inTransit: number;
      }
    | undefined;
}

/** The life of a sale's state in the backend. Calls with an older generation than the backend's change nothing. */
export interface SaleStore extends SaleBuilding, StockChanges {
  read(saleId: string): Promise<SaleRecord | undefined>;
  /** Epochs and states of many sales in one call; a sale that is not there gives `undefined`. */
  versions(saleIds: readonly string[]): Promise<readonly (SaleVersion | undefined)[]>;
  /**
   * Which of the sales are wholly as expected, each at one instant of its own. It costs a fraction of reading them; of
   * one that is not, `version` and `OrderLog.readLog` tell what is different.
   */
  matches(expected: readonly ExpectedSale[]): Promise<readonly boolean[]>;
  /** A mark that is another one after any sale was published, changed its state, or had its epoch raised. */
  changeCounter(): Promise<string>;
  /** Sets the state in every segment and in the record; once it has resolved, no take disagrees with it. @throws StaleGeneration */
  setState(record: Omit<SaleRecord, 'epoch'>): Promise<void>;
  /** All segments of a sale at one instant. */
  snapshot(saleId: string, segments: number, generation: number): Promise<readonly SegmentSnapshot[]>;
  /** What these buyers hold by the record of the home segment. @throws StaleGeneration */
  recall(segment: SegmentRef, buyerIds: readonly string[]): Promise<Recall>;
}
