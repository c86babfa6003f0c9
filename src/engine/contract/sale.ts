/** Whether a sale sells. `closed` is final. */
export type SaleState = 'open' | 'paused' | 'closed';

/** How a sale's queue works (docs/internals/queue.md). */
export interface QueueSettings {
  /** fifo: places are served in the order in which they were given. draw: those given before the window opens are shuffled. */
  readonly order: 'fifo' | 'draw';
  /** How long an offer can be accepted, 1 to 31,536,000 seconds. */
  readonly offerSeconds: number;
  /** A buyer that asks for its place no more is absent after this time, 1 to 86,400 seconds. 0: nobody is ever absent. */
  readonly presenceSeconds: number;
  /** Places behind the head, 1 to 10,000,000. */
  readonly maxWaiting: number;
  /** When a place wants more units than are free: wait stops the line, less offers what is free, pass serves the next place. */
  readonly fit: 'wait' | 'less' | 'pass';
}

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
  /** Missing: buyers buy without a place. */
  readonly queue?: QueueSettings | undefined;
  /** It has no queue now, but had one: there may be offers that can still be accepted. */
  readonly hadQueue?: boolean;
}

/** A sale with its changing parts, as the backend holds it. */
export interface SaleRecord {
  readonly sale: Sale;
  readonly state: SaleState;
  readonly generation: number;
  readonly epoch: number;
  /** The rules that its segments apply (engine/sale/rules.ts). Missing: they compare none. */
  readonly rules?: string;
  /** Counts the operators' changes of the sale. Missing: an older version wrote the record, which counts as 0. */
  readonly revision?: number;
}

export interface GenerationRef {
  readonly saleId: string;
  readonly generation: number;
}

export interface SegmentRef extends GenerationRef {
  readonly segment: number;
}
