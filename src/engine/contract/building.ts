import type { Holding } from './holdings.ts';
import type { GenerationRef, SaleRecord, SegmentRef } from './sale.ts';

export interface DraftRef extends SegmentRef {
  /** Of this attempt alone: who was overtaken by another must not write into his draft. */
  readonly draft: string;
}

export interface SegmentLoad extends SegmentRef {
  /** With all its buyers. Missing: they are still to be loaded. */
  readonly draft?: string;
  readonly left: number;
  readonly perBuyerLimit: number;
}

/** How a generation of a sale is built and opened: freeze -> load, or take over a draft -> publish. */
export interface SaleBuilding {
  /**
   * Makes every segment answer `stale`, for good in this generation: a load or publish of it, or of an older one, that
   * is still on its way finds the door shut. A segment of a later generation is left alone.
   */
  freeze(saleId: string, segments: number, generation: number): Promise<void>;
  /**
   * Begins a draft: the records of the buyers of a segment's next generation, beside the segment, which goes on selling.
   * It takes the place of another, and goes away by itself if nobody loads it within DRAFT_KEPT_MS.
   */
  beginDraft(draft: DraftRef): Promise<void>;
  /** Writes what buyers hold into the draft; who holds nothing is taken out. @throws StaleGeneration if the draft is not there */
  draftHoldings(draft: DraftRef, holdings: readonly Holding[]): Promise<void>;
  /**
   * Replaces a segment's state: `left` units, an empty log, and no buyers or those of the draft. It answers `stale` until
   * `publish`. @throws StaleGeneration
   */
  loadSegment(load: SegmentLoad): Promise<void>;
  /**
   * Into a segment that is loaded and not published.
   * @param upTo with these, the segment has the holdings of all its buyers up to this id, in the order of ids
   * @throws StaleGeneration
   */
  loadHoldings(segment: SegmentRef, holdings: readonly Holding[], upTo?: string): Promise<void>;
  /**
   * The least `upTo` of the sale's segments, `''` where one has none yet; `undefined` unless all of them are loaded in this
   * generation and not published.
   */
  loadedUpTo(sale: GenerationRef, segments: number): Promise<string | undefined>;
  /** Removes the segments of older generations from number `from` on. */
  removeSegments(sale: GenerationRef, from: number): Promise<void>;
  /**
   * Opens all loaded segments in the record's state, writes the record with a raised epoch, and tells every node; once per
   * generation. @throws StaleGeneration
   */
  publish(record: Omit<SaleRecord, 'epoch'>): Promise<void>;
}
