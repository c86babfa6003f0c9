import type { KnownEntry, LogHint } from './order-log.ts';
import type { SegmentRef } from './sale.ts';
import type { TakeOrder } from './take-order.ts';

export interface TakeBatch extends SegmentRef {
  /** Worker number of the lane, and the lane's ticket for this attempt. */
  readonly lane: number;
  readonly ticket: number;
  /**
   * The lane's last ticket that was answered as served, in this generation; 0: none. A backend that does not remember it
   * has lost writes, whatever others have written since.
   */
  readonly answeredTicket: number;
  /** The newest entry that the lane was told of, in this generation: what is missing is counted by it. */
  readonly newest: KnownEntry;
  /** By which all of its orders were let in (engine/sale/rules.ts); missing or `''`: they are not compared. */
  readonly rules?: string;
  /** Of the segment's lock, under the `lock` strategy. The backend does nothing if it is not the newest. */
  readonly fencingToken?: number;
  /**
   * Called at the last moment before the batch may be executed: until then surely nothing was taken. A store that waits
   * before that leaves out the orders that are `settled` by then.
   */
  readonly sending?: () => void;
  /** None: nothing is taken, and the backend only compares what the lane was told. */
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
  | { readonly kind: 'short' }
  /** The shop's own check, inside the segment's lock, does not let it through. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** It was settled before it could be sent. */
  | { readonly kind: 'unsent' };

export type TakeReply =
  | {
      readonly status: 'served';
      readonly results: readonly TakeResult[];
      /** Sequence number of the log entry that holds this batch's taken orders; 0: the segment was not asked at all. */
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
   * closed: the sale's state. busy: the log is at its bound. superseded: the segment has seen a newer ticket of this lane. outdated:
   * the segment goes by other rules than those by which the orders were let in.
   */
  | { readonly status: 'stale' | 'paused' | 'closed' | 'busy' | 'superseded' | 'outdated' };

/** A take behind a refill. `total` and `epoch` are of the same instant, after the take. */
export type RefillReply =
  | { readonly status: 'stale' }
  | {
      readonly status: 'refilled';
      readonly take: TakeReply;
      /** Units left in the whole sale; `Infinity` if not all of it can be seen now. 0 is proven. */
      readonly total: number;
      readonly epoch: number;
    };

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
