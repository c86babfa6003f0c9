import type { Holding } from './holdings.ts';
import type { GenerationRef, SaleRecord, SegmentRef } from './sale.ts';

export interface DraftRef extends SegmentRef {
  /** Id of this attempt: an attempt that was overtaken by another must not write into the newer draft. */
  readonly draft: string;
}

export interface SegmentLoad extends SegmentRef {
  /** The draft with all buyers of the segment. Missing: the buyers are loaded afterwards. */
  readonly draft?: string;
  readonly left: number;
  readonly perBuyerLimit: number;
}

/** How a generation of a sale is built and opened: freeze -> load, or take over a draft -> publish. */
export interface SaleBuilding {
  /**
   * Makes every segment answer `stale` for the rest of this generation, and refuses later loads and publications of
   * it or of an older one. A segment of a later generation is left alone.
   */
  freeze(saleId: string, segments: number, generation: number): Promise<void>;
  /**
   * Begins a draft: the buyers' records of a segment's next generation, beside the segment, which keeps selling. It
   * replaces an earlier draft, and expires if it is not loaded within DRAFT_KEPT_MS.
   */
  beginDraft(draft: DraftRef): Promise<void>;
  /**
   * Writes buyers' holdings into the draft; a buyer without orders is removed. @throws StaleGeneration if the draft
   * does not exist
   */
  draftHoldings(draft: DraftRef, holdings: readonly Holding[]): Promise<void>;
  /**
   * Replaces a segment's state: `left` units, an empty log, and no buyers or those of the draft. It answers `stale` until
   * `publish`. @throws StaleGeneration
   */
  loadSegment(load: SegmentLoad): Promise<void>;
  /**
   * Adds holdings to a segment that is loaded and not published.
   * @param upTo with these, the segment has the holdings of all its buyers up to this id, in the order of ids
   * @throws StaleGeneration
   */
  loadHoldings(segment: SegmentRef, holdings: readonly Holding[], upTo?: string): Promise<void>;
  /**
   * The smallest `upTo` of the sale's segments, `''` if one has none yet; `undefined` unless all of them are loaded
   * in this generation and not published.
   */
  loadedUpTo(sale: GenerationRef, segments: number): Promise<string | undefined>;
  /**
   * Removes the segments of older generations from number `from` on, and the drafts of these numbers. A process that
   * still writes such a draft is refused, and may begin another.
   */
  removeSegments(sale: GenerationRef, from: number): Promise<void>;
  /**
   * Removes a sale from the backend: its segments of older generations, then its record. A tombstone stays for
   * TOMBSTONE_KEPT_MS, so that nothing can be published in this generation or an older one. Locks expire by themselves.
   * Notifies every node. A sale of this generation or a later one is left alone. Idempotent.
   */
  archive(sale: GenerationRef): Promise<void>;
  /**
   * Publishes all loaded segments in the record's state, writes the record with a raised epoch, and notifies every
   * node; once per generation. @throws StaleGeneration
   */
  publish(record: Omit<SaleRecord, 'epoch'>): Promise<void>;
}
