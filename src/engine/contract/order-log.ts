import type { SegmentState } from './audits.ts';
import type { SegmentRef } from './sale.ts';
import type { TakeOrder } from './take-order.ts';

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
  readonly state: SegmentState;
  /** The rules that the segment goes by (engine/sale/rules.ts). Missing: none. */
  readonly rules?: string;
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

/**
 * Takes an order back out of its buyer's record and gives `units` to the home segment; once per order id, and only where
 * the segment is published: what is loaded next counts the units already.
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
  /** Whether somebody waits for it: a buyer for his commit, or a node for a rebuild. */
  readonly awaited: boolean;
}

/** The order log, as sync reads it. */
export interface OrderLog {
  /** Entries behind each position, at most `maxEntries` from each log; 0 reads the heads alone. */
  readLog(positions: readonly LogPosition[], maxEntries: number): Promise<readonly LogRead[]>;
  /** Notes the cursors in the segments, trims the logs below them and tells every node. Idempotent. */
  advance(watermarks: readonly Watermark[]): Promise<void>;
  /** Idempotent by order id; raises the sale's epoch if units came back. @throws StaleGeneration */
  compensate(compensation: Compensation): Promise<void>;
}
