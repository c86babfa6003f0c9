import type { KnownEntry, LogHint } from './order-log.ts';
import type { SegmentRef } from './sale.ts';
import type { TakeOrder } from './take-order.ts';

/** One life of the process that executes takes: until it restarts, or another one takes its place. */
export interface TakeServer {
  /** `false` if it can't be shown that both are one process in one life. Then what one of them has executed may be lost. */
  isSame(other: TakeServer): boolean;
}

export interface TakeBatch extends SegmentRef {
  /** Worker number of the lane, and the lane's ticket for this attempt. */
  readonly lane: number;
  readonly ticket: number;
  /**
   * The lane's last ticket that was answered `served` in this generation; 0: none. A backend that does not remember
   * it has lost writes, whatever was written since.
   */
  readonly answeredTicket: number;
  /** The newest entry of this generation that the lane was told of. Lost orders are counted from it. */
  readonly newest: KnownEntry;
  /**
   * The rules by which all orders of the batch were admitted (engine/sale/rules.ts); missing or `''`: not compared.
   */
  readonly rules?: string;
  /** The token of the segment's lock, under the `lock` strategy. The backend does nothing if it is not the newest. */
  readonly fencingToken?: number;
  /**
   * Called with the orders that are sent, right before they may be executed; before this call nothing has been taken. They are
   * the same objects as in `orders`. A store that waits before the call leaves out orders that are `settled` by then.
   */
  readonly sending?: (orders: readonly TakeOrder[], server: TakeServer) => void;
  /** Empty: nothing is taken; the backend only checks for lost writes. */
  readonly orders: readonly TakeOrder[];
}

/** What became of one order of a batch. */
export type TakeResult =
  | { readonly kind: 'taken' }
  /** The buyer's record already holds this order id or key; `seq` is the log entry with the order. */
  | { readonly kind: 'replay'; readonly orderId: string; readonly quantity: number; readonly seq: number }
  /** The key was used before with another quantity. */
  | { readonly kind: 'mismatch'; readonly orderId: string; readonly quantity: number }
  | { readonly kind: 'limit'; readonly orderIds: readonly string[] }
  /** The segment has fewer units left than the order needs. */
  | { readonly kind: 'short' }
  /** The shop's own check, run under the segment's lock, refused it. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The order was settled before it could be sent, or its deadline was near. */
  | { readonly kind: 'unsent' };

export type TakeReply =
  | {
      readonly status: 'served';
      readonly results: readonly TakeResult[];
      /**
       * Sequence number of the log entry with this batch's taken orders. If none was taken: the number that the next entry will have.
       * 0: the segment was not contacted.
       */
      readonly seq: number;
      /** The segment's cursor as the backend knows it: orders at or below it are in Postgres. */
      readonly committed: number;
      /** Units left in the segment. */
      readonly left: number;
      /** Orders taken from the segment so far, in this generation. */
      readonly orders: number;
      /** Units that ended orders have given back to the segment so far, in this generation. */
      readonly returned: number;
    }
  /**
   * Nothing was done. stale: no such segment, another generation, lost writes, or a rebuild. paused, closed: the
   * sale's state. busy: the log is full. superseded: the segment has seen a newer ticket of this lane. outdated: the
   * orders were admitted by other rules than the segment's. late: the deadline of an order is over. After each of these the segment
   * also refuses all older tickets of this lane. Exception: after `late`, it may serve older tickets with later deadlines.
   */
  | { readonly status: 'stale' | 'paused' | 'closed' | 'busy' | 'superseded' | 'outdated' | 'late' };

/** A take after a refill. `total` and `epoch` are of the same instant, after the take. */
export type RefillReply =
  | { readonly status: 'stale' }
  | {
      readonly status: 'refilled';
      readonly take: TakeReply;
      /** Units left in the whole sale; `Infinity` if a segment can't be read now. 0 is proven. */
      readonly total: number;
      readonly epoch: number;
    };

/** The hot path, used by lanes. */
export interface TakeStore {
  /** False while the store can't be reached: callers answer `unavailable` at once instead of queueing. */
  readonly ready: boolean;
  /** Resolves when `ready`, or after `timeoutMs` at the latest. Never rejects. */
  whenReady(timeoutMs: number): Promise<void>;
  /** @throws NotExecuted (nothing was done) or OutcomeUnknown (it may have been). */
  take(batch: TakeBatch): Promise<TakeReply>;
  /**
   * In one atomic step, moves as many units to the batch's segment as its orders need and the sale has, and takes the
   * batch. Nothing moves if the sale has too few units for even the smallest order.
   * @throws as `take`
   */
  refillAndTake(batch: TakeBatch, segments: number): Promise<RefillReply>;
  /** Notifies sync that these logs have grown. Best effort. */
  hint(hint: LogHint): void;
}
