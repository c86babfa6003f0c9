import type { Rejection } from '../../engine/contract.ts';
import type { Slice } from '../apply/batch.ts';

/** What sync reports, for the log, the metrics and the traces. */
export interface SyncEvents {
  /** A transaction was committed: orders applied, how old the oldest of them was, and how long it took. */
  applied(info: { orders: number; oldestMs: number; tookMs: number }): void;
  /** The same transaction, with its orders; missing: nobody follows single orders. */
  committed?(info: {
    slices: readonly Slice[];
    orders: number;
    /** When it began, on the clock of `monotonicMs`. */
    beganMs: number;
    /** By order id. */
    rejected: ReadonlyMap<string, Rejection>;
  }): void;
  /** Postgres refused orders; they were rejected and removed from the backend. Never normal. */
  rejected(info: { saleId: string; orderId: string; reason: string }): void;
  /** A log does not continue the applied entries: the backend has lost writes. The sale is being rebuilt. */
  logBroken(info: { saleId: string; segment: number; problem: string }): void;
  /** Orders that the backend lost before they were in Postgres: at least this many. They can't be restored. */
  ordersLost(info: { saleId: string; segment: number; orders: number }): void;
  /** A sale's state in the backend was rebuilt from Postgres. */
  rebuilt(info: {
    saleId: string;
    why: string;
    /** The backend should have had the sale: an earlier build was lost, or not finished. */
    again: boolean;
    generation: number;
    salvagedOrders: number;
    loadedBuyers: number;
  }): void;
  /**
   * Units were moved between segments: the sale had become uneven, or another process had left transfers unfinished.
   */
  transferred(info: { saleId: string; why: 'uneven' | 'unfinished'; moves: number; units: number }): void;
  /** Orders in the logs of all sales that are not in Postgres yet, as of the last scan. */
  backlog(info: { orders: number }): void;
  /** One sale failed: its data in the backend is invalid, or its rebuild failed. Other sales continue. */
  saleFailed(info: { saleId: string; error: unknown }): void;
  /** The backend did not accept watermarks, so buyers are not told of commits. They are announced again with the next ones. */
  untold(info: { error: unknown }): void;
  /** A message that no node sends was ignored. Not every such message is reported. */
  foreign(info: { error: unknown }): void;
  /** The loop has failed and restarts in `retryMs`. */
  crashed(info: { error: unknown; retryMs: number }): void;
}
