import type { SegmentState } from './audits.ts';
import type { SegmentRef } from './sale.ts';
import type { TakeOrder } from './take-order.ts';

/** A segment's log entry that a lane or a reader knows of. */
export interface KnownEntry {
  /** Sequence number; 0: none yet. */
  readonly seq: number;
  /** First order id of the entry. */
  readonly tail: string;
  /** Orders in the log up to and with the entry, in this generation. */
  readonly orders: number;
}

export const NO_ENTRY: KnownEntry = { seq: 0, tail: '', orders: 0 };

/** The position of one segment's log. `tail` is the first order id of the entry at `seq`, `''` at the beginning. */
export interface LogPosition extends SegmentRef {
  readonly seq: number;
  readonly tail: string;
}

export interface LogEntry {
  readonly seq: number;
  /** `tail` of the entry before it. Entries form a chain, which reveals a lost or rewritten entry. */
  readonly previous: string;
  readonly tail: string;
  /** Orders in this log up to and with this entry, in this generation. */
  readonly ordersSoFar: number;
  readonly orders: readonly TakeOrder[];
}

/** The result of reading one segment's log after a position. */
export interface LogRead {
  readonly position: LogPosition;
  /** The segment's newest entry and count of orders; `undefined` if the segment does not exist in that generation. */
  readonly head: LogHead | undefined;
  /** Why the log could not be read: the backend holds data there that this version does not write. */
  readonly fault?: string;
  readonly entries: readonly LogEntry[];
}

export interface LogHead extends KnownEntry {
  /** The entry up to which the orders were announced as applied (`Watermark`); 0: none yet. */
  readonly committed: number;
  readonly state: SegmentState;
  /** The rules that the segment applies (engine/sale/rules.ts). Missing: none. */
  readonly rules?: string;
  /** An entry that a lane was told of and that is missing: the segment has lost writes, and sells nothing. */
  readonly lost?: KnownEntry;
}

export interface Rejection {
  readonly orderId: string;
  /**
   * stock: the sale had no units left in Postgres. limit: the buyer held the maximum. duplicate: another order has
   * this id.
   */
  readonly reason: 'stock' | 'limit' | 'duplicate';
}

/** States that everything in this segment's log up to `seq` is in Postgres, except the orders in `rejected`. */
export interface Watermark extends SegmentRef {
  readonly seq: number;
  /** `LogEntry.ordersSoFar` of the entry at `seq`. */
  readonly orders: number;
  readonly rejected: readonly Rejection[];
  /**
   * First order ids of the newest entries up to `seq`, the one at `seq` last. A backend that has lost writes reuses
   * the sequence numbers of lost entries, so a purchase that waits for an entry must find its first order id here.
   * Missing: nothing can be lost.
   */
  readonly tails?: readonly string[];
}

/**
 * Removes an order from its buyer's record and gives `units` to the home segment, once per order id. Applies only to
 * a published segment: a later load counts the units already.
 */
export interface Compensation extends SegmentRef {
  readonly buyerId: string;
  readonly orderId: string;
  readonly units: number;
}

/** Logs that have grown. */
export interface LogHint {
  readonly saleId: string;
  readonly segments: readonly number[];
  /** Whether a buyer waits for a commit, or a node for a rebuild. */
  readonly awaited: boolean;
}

/** The order log, as sync reads it. */
export interface OrderLog {
  /** Reads the entries after each position, at most `maxEntries` from each log; 0 reads only the heads. */
  readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]>;
  /** Writes the cursors to the segments, trims the logs below them, and notifies every node. Idempotent. */
  advance(watermarks: readonly Watermark[]): Promise<void>;
  /** Idempotent by order id; raises the sale's epoch if units came back. @throws StaleGeneration */
  compensate(compensation: Compensation): Promise<void>;
}
