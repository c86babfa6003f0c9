import type { DraftStamp, Holding, SaleRecord, SegmentRef } from '../contract.ts';
import { StaleGeneration } from '../errors.ts';
import type { MemorySegment } from './memory-segment.ts';

export interface MemoryDraft {
  stamp: DraftStamp;
  readonly holdings: Map<string, Holding>;
}

export interface MemorySale {
  record: SaleRecord | undefined;
  /** Nothing is published in this generation or an older one: the sale was archived in it. */
  archivedIn: number;
  readonly segments: Map<number, MemorySegment>;
  readonly drafts: Map<number, MemoryDraft>;
}

/** All sales in memory, shared by the stores of a MemoryBackend. */
export class MemoryStock {
  readonly #sales = new Map<string, MemorySale>();

  /** The sale; `undefined` if it is unknown here. */
  sale(saleId: string): MemorySale | undefined {
    return this.#sales.get(saleId);
  }

  /** The sale, created if it is unknown. */
  saleFor(saleId: string): MemorySale {
    const known = this.#sales.get(saleId);
    if (known) return known;
    const sale = { record: undefined, archivedIn: -1, segments: new Map(), drafts: new Map() };
    this.#sales.set(saleId, sale);
    return sale;
  }

  /** The segment; `undefined` if it is missing in that generation. */
  segment({ saleId, segment, generation }: SegmentRef): MemorySegment | undefined {
    const found = this.#sales.get(saleId)?.segments.get(segment);
    return found?.generation === generation ? found : undefined;
  }

  /** The segment. @throws StaleGeneration if it is missing in that generation, or not published */
  published(ref: SegmentRef): MemorySegment {
    const segment = this.segment(ref);
    if (!segment?.isPublished) throw new StaleGeneration(ref.saleId, ref.generation);
    return segment;
  }
}
