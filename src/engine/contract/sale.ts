/** Whether a sale sells. `closed` is final. */
export type SaleState = 'open' | 'paused' | 'closed';

/** A sale as it was defined. Times are milliseconds since the Unix epoch. */
export interface Sale {
  readonly id: string;
  readonly title: string;
  /** Units at creation, 1 to 2^31. */
  readonly stock: number;
  /** 1 to 1,024. */
  readonly segments: number;
  readonly startsAt: number;
  /** `undefined`: the sale has no end. */
  readonly endsAt: number | undefined;
  /** Units that one buyer may hold, 1 to 1,000. */
  readonly perBuyerLimit: number;
  /** Whether a purchase needs a purchase token. */
  readonly requireToken: boolean;
  readonly payWithinSeconds: number | undefined;
  /** Price and face value in the currency's minor unit (cents). */
  readonly priceMinor: number | undefined;
  readonly faceValueMinor: number | undefined;
  readonly currency: string | undefined;
  readonly shopId: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A sale with its changing parts, as the backend holds it. */
export interface SaleRecord {
  readonly sale: Sale;
  readonly state: SaleState;
  readonly generation: number;
  readonly epoch: number;
  /** The rules that its segments apply (engine/sale/rules.ts). Missing: they compare none. */
  readonly rules?: string;
}

export interface GenerationRef {
  readonly saleId: string;
  readonly generation: number;
}

export interface SegmentRef extends GenerationRef {
  readonly segment: number;
}
