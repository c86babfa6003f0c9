/** What sync tells those who watch it: the log and the metrics. */
export interface SyncEvents {
  /** A transaction was committed: orders applied, how old the oldest of them was, and how long it took. */
  applied(info: { orders: number; oldestMs: number; tookMs: number }): void;
  /** The truth refused orders; they were rejected and taken back. Never normal. */
  rejected(info: { saleId: string; orderId: string; reason: string }): void;
  /** A log does not follow on from what was applied: the backend has lost writes. The sale is being rebuilt. */
  logBroken(info: { saleId: string; segment: number; problem: string }): void;
  /** Orders that the backend has lost before they were in Postgres: at least so many. They are gone for good. */
  ordersLost(info: { saleId: string; segment: number; orders: number }): void;
  /** The sale's state in the backend was built from Postgres. */
  rebuilt(info: {
    saleId: string;
    why: string;
    /** The backend should have held it: what was built before is lost, or was not finished. */
    again: boolean;
    generation: number;
    salvagedOrders: number;
    loadedBuyers: number;
  }): void;
  /** Units changed segments: the sale had become uneven, or somebody had begun to move them and not finished. */
  transferred(info: { saleId: string; why: 'uneven' | 'unfinished'; moves: number; units: number }): void;
  /** Orders in the logs of all sales that are not in Postgres yet, as the last sweep saw them. */
  backlog(info: { orders: number }): void;
  /** One sale can't be worked on because of what the backend holds of it, or its rebuild failed; the others go on. */
  saleFailed(info: { saleId: string; error: unknown }): void;
  /** A message that no node sends was passed over; not every one of them is told. */
  foreign(info: { error: unknown }): void;
  /** The loop has failed and starts again in `retryMs`. */
  crashed(info: { error: unknown; retryMs: number }): void;
}
