import type { SegmentRef } from '../../contract.ts';

/**
 * Names of all keys and channels. The keys of one segment share the hash tag `{saleId:segment}`, a sale's own key has
 * `{saleId}`, so a take stays within one slot of a Redis Cluster.
 */
export class Keys {
  readonly watermarks: string;
  readonly hints: string;
  readonly sales: string;
  readonly syncs: string;
  /** Counts the messages on `sales`. */
  readonly changes: string;
  readonly events: string;
  /** The owner of this Redis. In the slot of `changes`, so that a cluster loses both or none. */
  readonly owner: string;
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.watermarks = `${prefix}watermarks`;
    this.hints = `${prefix}hints`;
    this.sales = `${prefix}sales`;
    this.syncs = `${prefix}syncs`;
    this.changes = `${prefix}changes`;
    this.events = `${prefix}events`;
    this.owner = `${prefix}{${this.changes}}:owner`;
  }

  sale(saleId: string): string {
    return `${this.#prefix}{${saleId}}:sale`;
  }

  segment({ saleId, segment }: Pick<SegmentRef, 'saleId' | 'segment'>): SegmentKeys {
    const base = `${this.#prefix}{${saleId}:${segment}}`;
    return {
      segment: `${base}:segment`,
      buyers: `${base}:buyers`,
      log: `${base}:log`,
      lock: `${base}:lock`,
      draft: `${base}:draft`,
    };
  }

  /** The segment hashes of a whole sale, in order. */
  segments(saleId: string, count: number): string[] {
    return Array.from({ length: count }, (_, segment) => this.segment({ saleId, segment }).segment);
  }
}

export interface SegmentKeys {
  readonly segment: string;
  readonly buyers: string;
  readonly log: string;
  readonly lock: string;
  readonly draft: string;
}
