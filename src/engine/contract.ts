/**
 * The contract between the engine and the stores it runs on.
 *
 * Purpose: one set of words and types for what a purchase is, how it can end, and what a backend must do.
 * Goals: a backend can be written from this file and test/contract alone; no type of a store (Redis, Postgres) shows.
 * Non-goals: HTTP, SQL. The engine knows neither.
 *
 * Glossary
 * - sale: a stock of one item, sold in a time window, with a limit per buyer. buyer: who buys, named by `buyerId`.
 * - segment: one of the N parts that a sale's stock is split into, each with its own keys and order log.
 * - home segment of a buyer: `hash(buyerId) mod N`. A buyer's purchases are recorded there and only there.
 * - lane: the queue in one worker in front of one segment. One batch in flight at a time.
 * - take: check the limit, decrement the segment, record the buyer, append to the order log: atomic, a whole batch at once.
 * - refill: units moved to an empty home segment because a buyer is waiting there.
 * - order log: the append-only log of a segment's takes. One entry is one batch; its sequence number counts from 1.
 * - cursor: how far Postgres has applied a segment's log. watermark: the newest cursor that a node knows.
 * - board: the sold-out board of a node. epoch: a sale's counter of "stock came back" events.
 * - generation: how often a sale's state in the backend has been built from Postgres.
 * - ticket: the number of a lane's attempt. A segment refuses a ticket that is not newer than the last one it has
 *   seen from that lane, so that a batch which was given up cannot execute late.
 */

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
  readonly payWithinSeconds: number | undefined;
  /** Price and face value in the currency's minor unit (cents). */
  readonly priceMinor: number | undefined;
  readonly faceValueMinor: number | undefined;
  readonly currency: string | undefined;
  readonly shopId: string | undefined;
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A sale with what changes while it lives, as the backend holds it. */
export interface SaleRecord {
  readonly sale: Sale;
  readonly state: SaleState;
  readonly generation: number;
  readonly epoch: number;
}

/** What a buyer asks for. */
export interface Purchase {
  readonly saleId: string;
  readonly buyerId: string;
  /** Units, 1 to the sale's limit per buyer; all or nothing. */
  readonly quantity: number;
  /** The client's idempotency key, `''` for none. The same key again gives the same answer. */
  readonly key: string;
  /** False: be content with `accepted` (where the backend's log is durable). */
  readonly awaitCommit: boolean;
}

/** How a purchase ended. Every purchase ends in exactly one of these, before its deadline. */
export type Outcome =
  | { readonly code: 'committed'; readonly orderId: string; readonly quantity: number }
  | { readonly code: 'accepted'; readonly orderId: string; readonly quantity: number }
  | { readonly code: 'sold_out' }
  | { readonly code: 'limit_reached'; readonly limit: number; readonly orderIds: readonly string[] }
  | { readonly code: 'insufficient_stock'; readonly remaining: number }
  | { readonly code: 'not_started'; readonly startsAt: number }
  | { readonly code: 'ended'; readonly endedAt: number | undefined }
  | { readonly code: 'paused' }
  | { readonly code: 'unknown_sale' }
  | { readonly code: 'invalid_request'; readonly detail: string }
  | { readonly code: 'idempotency_mismatch'; readonly orderId: string; readonly quantity: number }
  /** The node or the log has more work than it may queue; nothing was taken. */
  | { readonly code: 'busy' }
  /** The backend can't be reached, or the sale is being rebuilt; nothing was taken. */
  | { readonly code: 'unavailable' }
  /** It may or may not have been taken; the same key, asked again, settles it. */
  | { readonly code: 'unknown' };

export type OutcomeCode = Outcome['code'];

/** One order within a batch. Ids and keys are visible ASCII without spaces (see limits.ts). */
export interface TakeOrder {
  readonly orderId: string;
  readonly buyerId: string;
  readonly quantity: number;
  /** `''`: none. */
  readonly key: string;
}

/** An entry of a segment's log, as its writer or reader was told of it. */
export interface KnownEntry {
  /** Sequence number; 0: none yet. */
  readonly seq: number;
  /** First order id of the entry. */
  readonly tail: string;
  /** Orders in the log up to and with the entry, in this generation. */
  readonly orders: number;
}

export const NO_ENTRY: KnownEntry = { seq: 0, tail: '', orders: 0 };

export interface TakeBatch extends SegmentRef {
  /** Worker number of the lane, and the lane's ticket for this attempt. */
  readonly lane: number;
  readonly ticket: number;
  /** The newest entry that the lane was told of, in this generation. A backend that has not got so far has lost writes. */
  readonly newest: KnownEntry;
  readonly orders: readonly TakeOrder[];
}

/** What became of one order of a batch. */
export type TakeResult =
  | { readonly kind: 'taken' }
  /** The buyer's record holds this order id or key already; `seq` is the log entry that carries it. */
  | { readonly kind: 'replay'; readonly orderId: string; readonly quantity: number; readonly seq: number }
  /** The key was used before, for another quantity. */
  | { readonly kind: 'mismatch'; readonly orderId: string; readonly quantity: number }
  | { readonly kind: 'limit'; readonly orderIds: readonly string[] }
  /** The segment has fewer units than the order wants. */
  | { readonly kind: 'short' };

export type TakeReply =
  | {
      readonly status: 'served';
      readonly results: readonly TakeResult[];
      /** Sequence number of the log entry that holds this batch's taken orders. */
      readonly seq: number;
      /** The segment's cursor as far as the backend knows it: orders at or below it are in Postgres. */
      readonly committed: number;
      /** Units left in the segment. */
      readonly left: number;
      /** Orders taken from the segment so far, in this generation. */
      readonly orders: number;
    }
  /**
   * Nothing was done. stale: no such segment, another generation, it has lost writes, or it is being rebuilt. paused,
   * closed: the sale's state. busy: the log is at its bound. superseded: the segment has seen a newer ticket of this lane.
   */
  | { readonly status: 'stale' | 'paused' | 'closed' | 'busy' | 'superseded' };

/** A take behind a refill. `total` and `epoch` are of the same instant, after the take. */
export type RefillReply =
  | { readonly status: 'stale' }
  | { readonly status: 'refilled'; readonly take: TakeReply; readonly total: number; readonly epoch: number };

/** The position of one segment's log. `tail` is the first order id of the entry at `seq`, `''` at the beginning. */
export interface LogPosition extends SegmentRef {
  readonly seq: number;
  readonly tail: string;
}

export interface LogEntry {
  readonly seq: number;
  /** `tail` of the entry before it: entries form a chain, so that a lost or rewritten one shows. */
  readonly previous: string;
  readonly tail: string;
  /** Orders in this log up to and with this entry, in this generation. */
  readonly ordersSoFar: number;
  readonly orders: readonly TakeOrder[];
}

/** What a read of one segment's log found behind a position. */
export interface LogRead {
  readonly position: LogPosition;
  /** The segment's newest entry and count of orders; `undefined` if the segment does not exist in that generation. */
  readonly head: LogHead | undefined;
  /** Why nothing could be read, where what the backend holds there is not what this version writes. */
  readonly fault?: string;
  readonly entries: readonly LogEntry[];
}

export interface LogHead extends KnownEntry {
  /** Frozen for a rebuild (`SaleStore.freeze`). */
  readonly frozen: boolean;
  /** The entry that a lane was told of and that is not there: the segment has lost writes, and sells to nobody. */
  readonly lost?: KnownEntry;
}

export interface Rejection {
  readonly orderId: string;
  /** The sale had no unit left in Postgres; the buyer held all that he may; another order has this id. */
  readonly reason: 'stock' | 'limit' | 'duplicate';
}

/** "Everything in this segment's log up to `seq` is in Postgres", but for the orders named in `rejected`. */
export interface Watermark extends SegmentRef {
  readonly seq: number;
  /** `LogEntry.ordersSoFar` of the entry at `seq`. */
  readonly orders: number;
  readonly rejected: readonly Rejection[];
  /**
   * First order ids of the newest entries up to `seq`, the one at `seq` last. A backend that has lost writes gives the
   * numbers of lost entries to others: who waits for an entry must find it named here. Missing: nothing can be lost.
   */
  readonly tails?: readonly string[];
}

/** Takes an order back out of its buyer's record and gives `units` to the home segment; once per order id. */
export interface Compensation extends SegmentRef {
  readonly buyerId: string;
  readonly orderId: string;
  readonly units: number;
}

/** What one buyer holds, by the record in the home segment. */
export interface Holding {
  readonly buyerId: string;
  readonly orders: readonly HeldOrder[];
}

export interface HeldOrder {
  readonly orderId: string;
  readonly quantity: number;
  readonly key: string;
  /** The log entry that carries it; 0 for an order that was loaded from Postgres. */
  readonly seq: number;
}

export interface SegmentSnapshot {
  readonly segment: number;
  /** `undefined`: the segment is missing or has another generation. */
  readonly counters:
    | {
        readonly left: number;
        readonly seq: number;
        readonly committed: number;
        /** Units taken, and orders taken, in this generation. */
        readonly taken: number;
        readonly orders: number;
      }
    | undefined;
}

/** Logs that have grown. */
export interface LogHint {
  readonly saleId: string;
  readonly segments: readonly number[];
  /** Whether somebody waits for it: a buyer for his commit, or a node for a rebuild. */
  readonly awaited: boolean;
}

export interface BackendEvents {
  /** Orders up to here are committed. */
  watermarks?(watermarks: readonly Watermark[]): void;
  /** May be lost. */
  hint?(hint: LogHint): void;
  /** The sale was created, changed, or its epoch was raised. May be lost. */
  saleChanged?(saleId: string): void;
}

/** The hot path: used by lanes. */
export interface TakeStore {
  /** False while the store can't be reached: callers answer `unavailable` at once instead of queueing. */
  readonly ready: boolean;
  /** Resolves when `ready`, or after `timeoutMs` at the latest. Never rejects. */
  whenReady(timeoutMs: number): Promise<void>;
  /** @throws NotExecuted (nothing was done) or OutcomeUnknown (it may have been). */
  take(batch: TakeBatch): Promise<TakeReply>;
  /**
   * Moves units to the batch's segment, so that its orders fit as far as the whole sale's stock goes, and takes:
   * one atomic step. Nothing moves if the sale has too few for even the smallest order.
   * @throws as `take`
   */
  refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply>;
  /** Tells sync that these logs have grown. Best effort. */
  hint(hint: LogHint): void;
}

/** The life of a sale's state in the backend. Calls with an older generation than the backend's change nothing. */
export interface SaleStore {
  read(saleId: string): Promise<SaleRecord | undefined>;
  /** Epochs and states of many sales in one call; a sale that is not there gives `undefined`. */
  pulse(saleIds: readonly string[]): Promise<readonly (Pulse | undefined)[]>;
  /**
   * Makes every segment answer `stale`, for good in this generation: a load or publish of it, or of an older one, that
   * is still on its way finds the door shut. A segment of a later generation is left alone.
   */
  freeze(saleId: string, segments: number, generation: number): Promise<void>;
  /** Replaces a segment's state: `left` units, no buyers, an empty log. It answers `stale` until `publish`. @throws StaleGeneration */
  loadSegment(load: SegmentLoad): Promise<void>;
  /** @throws StaleGeneration */
  loadHoldings(segment: SegmentRef, holdings: readonly Holding[]): Promise<void>;
  /** Opens all loaded segments in the record's state, writes the record with a raised epoch, and tells every node. @throws StaleGeneration */
  publish(record: Omit<SaleRecord, 'epoch'>): Promise<void>;
  /** Sets the state in every segment and in the record; once it has resolved, no take disagrees with it. @throws StaleGeneration */
  setState(record: Omit<SaleRecord, 'epoch'>): Promise<void>;
  /** All segments of a sale at one instant. */
  snapshot(saleId: string, segments: number, generation: number): Promise<readonly SegmentSnapshot[]>;
  /** What these buyers hold by the record of the home segment. @throws StaleGeneration */
  recall(segment: SegmentRef, buyerIds: readonly string[]): Promise<Recall>;
}

export interface SegmentRef {
  readonly saleId: string;
  readonly segment: number;
  readonly generation: number;
}

export interface Recall {
  /** The segment's cursor: orders at or below it are in Postgres. */
  readonly committed: number;
  /** One per buyer asked for. */
  readonly holdings: readonly Holding[];
}

export interface Pulse {
  readonly epoch: number;
  readonly generation: number;
  readonly state: SaleState;
}

export interface SegmentLoad extends SegmentRef {
  readonly left: number;
  readonly perBuyerLimit: number;
}

/** The order log, as sync reads it. */
export interface OrderLog {
  /** Entries behind each position, at most `maxEntries` from each log; 0 reads the heads alone. */
  readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]>;
  /** Notes the cursors in the segments, trims the logs below them and tells every node. Idempotent. */
  advance(watermarks: readonly Watermark[]): Promise<void>;
  /** Idempotent by order id; raises the sale's epoch if units came back. */
  compensate(compensation: Compensation): Promise<void>;
}

export interface Backend {
  /** True if the order log outlives this process: only then may a purchase be answered `accepted`. */
  readonly durable: boolean;
  readonly takes: TakeStore;
  readonly sales: SaleStore;
  readonly log: OrderLog;
  /** @returns a function that ends the subscription */
  subscribe(events: BackendEvents): Promise<() => Promise<void>>;
  close(): Promise<void>;
}
