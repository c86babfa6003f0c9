import type { Holding } from './holdings.ts';
import type { SaleState, SegmentRef } from './sale.ts';

/** What a segment is doing: it sells or waits as the sale does, is being built, stands still to be built, or has lost writes. */
export type SegmentState = SaleState | 'loaded' | 'frozen' | 'lost';

/** The counters of a segment, all of one generation and one instant. */
export interface SegmentCounts {
  readonly state: SegmentState;
  readonly left: number;
  readonly taken: number;
  /** What was put in less what was moved out: always `left` and `taken` together. */
  readonly supplied: number;
  /** Parts of `supplied`: units of orders that were taken back, of changes that were credited, and out for withdrawals. */
  readonly returned: number;
  readonly credited: number;
  readonly withdrawn: number;
  /** The newest entry of the log. */
  readonly seq: number;
  /** Units that have left it for another segment and have not reached that. */
  readonly inTransit: number;
}

/** A segment as an auditor finds it: sound, not there in this generation, or holding what this version does not write. */
export type SegmentAudit =
  | ({ readonly found: 'sound' } & SegmentCounts)
  | { readonly found: 'nothing' }
  | {
      readonly found: 'fault';
      readonly fault: string;
      /** Present if only `left` is no number: what it should be follows from the others. */
      readonly others?: Omit<SegmentCounts, 'left'>;
    };

export interface AuditedHolding extends Holding {
  /** What is no record of this version's; `orders` is empty then. */
  readonly fault?: string;
}

/** Looks at what others than the engine may have changed, and puts right what is proven to be wrong. */
export interface AuditStore {
  /** All segments of a sale, such that no unit is missed or counted twice. */
  audit(saleId: string, segments: number, generation: number): Promise<readonly SegmentAudit[]>;
  /** Records of buyers, page by page. @param page `next` of the page before; `''` for the first, and as `next` of the last */
  records(segment: SegmentRef, page: string): Promise<{ holdings: readonly AuditedHolding[]; next: string }>;
  /**
   * Makes `left` or `supplied` what the other counters say, if the segment is published and `supplied - left - taken` is
   * `off`, as no work of the engine changes that difference. `undefined`: `left` is no number.
   * @returns whether it was done. @throws StaleGeneration
   */
  correct(segment: SegmentRef, field: 'left' | 'supplied', off: number | undefined): Promise<boolean>;
  /** Adds the orders that the buyer's record does not hold. The caller sees to it that none is being returned. @throws StaleGeneration */
  remember(segment: SegmentRef, holding: Holding): Promise<void>;
}
