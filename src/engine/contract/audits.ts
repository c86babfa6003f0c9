import type { Holding } from './holdings.ts';
import type { SaleState, SegmentRef } from './sale.ts';

/**
 * The state of a segment: it sells or waits as its sale does, is loaded but not published, is frozen for a rebuild,
 * or has lost writes.
 */
export type SegmentState = SaleState | 'loaded' | 'frozen' | 'lost';

/** The counters of a segment, all of one generation and one instant. */
export interface SegmentCounts {
  readonly state: SegmentState;
  readonly left: number;
  readonly taken: number;
  /** Units put in minus units moved out. Always equal to `left` + `taken`. */
  readonly supplied: number;
  /**
   * Parts of `supplied`: units returned by ended orders, units credited by movements, and units out for withdrawals, which
   * count as negative.
   */
  readonly returned: number;
  readonly credited: number;
  readonly withdrawn: number;
  /** The newest entry of the log. */
  readonly seq: number;
  /** Units that have left this segment for another one and have not arrived there. */
  readonly inTransit: number;
  /**
   * Units kept moving between the segments of several servers while these were read. Then each segment was read at one instant, but
   * together they may lack units, or have units twice.
   */
  readonly isMoving?: true;
}

/**
 * A segment as an audit finds it: sound, missing in this generation, or with data that this version does not write.
 */
export type SegmentAudit =
  | ({ readonly found: 'sound' } & SegmentCounts)
  | { readonly found: 'nothing' }
  | {
      readonly found: 'fault';
      readonly fault: string;
      /** Present if `left` is the only counter that is not a number: its value follows from the others. */
      readonly others?: Omit<SegmentCounts, 'left'>;
    };

export interface AuditedHolding extends Holding {
  /** Why the record can't be read; `orders` is empty then. */
  readonly fault?: string;
}

/** Finds damage done by other programs, and repairs what is proven to be wrong. */
export interface AuditStore {
  /** Reads all segments of a sale such that no unit is missed or counted twice, unless they are `isMoving`. */
  audit(saleId: string, segments: number, generation: number): Promise<readonly SegmentAudit[]>;
  /**
   * Records of buyers, page by page.
   * @param page `''` for the first page, otherwise `next` of the page before
   * @returns with `next`: `''` if this page is the last
   */
  records(segment: SegmentRef, page: string): Promise<{ holdings: readonly AuditedHolding[]; next: string }>;
  /**
   * Sets `left` or `supplied` to the value that the other counters give, if the segment is published and `supplied -
   * left - taken` equals `off`. The engine's own work never changes that difference. `off` is `undefined` if `left`
   * is not a number.
   * @returns whether the counter was set. @throws StaleGeneration
   */
  correct(segment: SegmentRef, field: 'left' | 'supplied', off: number | undefined): Promise<boolean>;
  /**
   * Adds the orders that are missing in the buyer's record. The caller makes sure by a lock that none of them is being returned.
   * @param returned units that the segment had got back, read under that lock. The lock may be lost before the orders arrive
   * @returns false, and nothing was added, if the segment has got more units back since. @throws StaleGeneration
   */
  remember(segment: SegmentRef, holding: Holding, returned: number): Promise<boolean>;
}
