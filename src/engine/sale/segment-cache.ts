import type { SegmentRef } from '../contract.ts';

/** Sales that are remembered. With one more, all are forgotten, so that sales that are over do not fill the memory. */
const MAX_SALES = 1_024;

/** What every take needs to know of its segment, computed once. It must not depend on the generation. */
export class SegmentCache<T> {
  readonly #sales = new Map<string, T[]>();
  readonly #compute: (segment: Omit<SegmentRef, 'generation'>) => T;

  constructor(compute: (segment: Omit<SegmentRef, 'generation'>) => T) {
    this.#compute = compute;
  }

  get({ saleId, segment }: Omit<SegmentRef, 'generation'>): T {
    let ofSale = this.#sales.get(saleId);
    if (!ofSale) {
      if (this.#sales.size === MAX_SALES) this.#sales.clear();
      ofSale = [];
      this.#sales.set(saleId, ofSale);
    }
    ofSale[segment] ??= this.#compute({ saleId, segment });
    return ofSale[segment]!;
  }
}
