import type { Holding } from './holdings.ts';
import type { GenerationRef, SaleRecord, SegmentRef } from './sale.ts';

/** What a segment's draft contains. */
export interface DraftStamp {
  /** Id of this attempt: an attempt that was overtaken by another must not write into the newer draft. */
  readonly id: string;
  /** How often it was written since it was begun. */
  readonly writes: number;
}

export interface DraftRef extends SegmentRef {
  readonly draft: DraftStamp;
}

export interface SegmentLoad extends SegmentRef {
  /**
   * The draft with all buyers of the segment, or `none`: the segment has no buyers. Missing: the buyers are loaded
   * afterwards.
   */
  readonly buyers?: DraftStamp | 'none';
  readonly left: number;
  readonly perBuyerLimit: number;
}

/** All holdings of a segment's buyers in a range of ids. */
export interface HoldingsPart {
  /** The range begins behind this id; `''`: with the first buyer. */
  readonly after: string;
  /** The last id of the range. `AFTER_ALL_IDS`: it has all later buyers. */
  readonly upTo: string;
  /** In the order of the buyers' ids. */
  readonly holdings: readonly Holding[];
}

/**
 * Which segments may be removed. `idle`: those that are frozen, or were loaded and never published. The backend may have gone
 * back to before a segment was frozen. Then that segment sells, and its log may hold orders that nobody has salvaged.
 */
export type Removable = 'all' | 'idle';

/**
 * How a generation of a sale is built and opened: freeze -> load, or take over a draft -> publish.
 *
 * The backend may go back to an earlier state at any time, between two writes as well. So each write of buyers names what must
 * have been written before it, and is refused if that is missing. Whatever state the backend goes back to, what a segment says of
 * its buyers is true.
 */
export interface SaleBuilding {
  /**
   * Makes every segment answer `stale` for the rest of this generation, and refuses later loads and publications of
   * it or of an older one. A segment of a later generation is left alone.
   * @throws StaleGeneration if a segment sold in an older generation until now. It is frozen in that one, because its log
   * may hold orders that nobody has salvaged; the next call replaces it
   */
  freeze(saleId: string, segments: number, generation: number): Promise<void>;
  /**
   * Begins a draft: the buyers' records of a segment's next generation, beside the segment, which keeps selling. It
   * replaces an earlier draft, and expires if it is not loaded within DRAFT_KEPT_MS.
   */
  beginDraft(draft: DraftRef): Promise<void>;
  /**
   * Writes buyers' holdings into the draft; a buyer without orders is removed.
   * @param draft its stamp after this write, which may be repeated
   * @throws StaleGeneration if the draft does not exist, or lacks an earlier write
   */
  draftHoldings(draft: DraftRef, holdings: readonly Holding[]): Promise<void>;
  /**
   * Replaces a segment's state: `left` units, an empty log, and no buyers or those of the draft. It answers `stale` until
   * `publish`. @throws StaleGeneration, also if the draft lacks a write, or if an older segment is not frozen
   */
  loadSegment(load: SegmentLoad): Promise<void>;
  /**
   * Adds holdings to a segment that is loaded and not published.
   * @throws StaleGeneration, also if the segment lacks buyers up to `after`
   */
  loadHoldings(segment: SegmentRef, part: HoldingsPart): Promise<void>;
  /**
   * How far the sale is loaded: every segment has all its buyers up to this id. `''`: a segment has none yet. `undefined`: not all
   * segments are loaded in this generation, or one is published already.
   */
  loadedUpTo(sale: GenerationRef, segments: number): Promise<string | undefined>;
  /**
   * The sale's segments of older generations from number `from` on, each with its own generation.
   */
  olderSegments(sale: GenerationRef, from: number): Promise<readonly SegmentRef[]>;
  /**
   * Removes the segments of older generations from number `from` on, and the drafts of these numbers. A process that
   * still writes such a draft is refused, and may begin another.
   * @param which missing: all. @throws StaleGeneration if one of them may not be removed; others may be removed by then
   */
  removeSegments(sale: GenerationRef, from: number, which?: Removable): Promise<void>;
  /**
   * Removes a sale from the backend: its segments of older generations, then its record. A tombstone stays for
   * TOMBSTONE_KEPT_MS, so that nothing can be published in this generation or an older one. Locks expire by themselves.
   * Notifies every node. A sale of this generation or a later one is left alone. Idempotent.
   * @param which as for `removeSegments`. @throws StaleGeneration; the record is there then
   */
  archive(sale: GenerationRef, which?: Removable): Promise<void>;
  /**
   * Publishes all loaded segments in the record's state, writes the record with a raised epoch, and notifies every
   * node; once per generation. @throws StaleGeneration, also if a segment lacks buyers
   */
  publish(record: Omit<SaleRecord, 'epoch'>): Promise<void>;
}
