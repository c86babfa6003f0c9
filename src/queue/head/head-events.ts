/** What the head of the queues reports, for the log and the metrics. */
export interface HeadEvents {
  /** Offers were made, and are in Postgres. */
  offered(info: { saleId: string; offers: number; units: number }): void;
  /** Places have left, because their buyers were absent when their turn came, or may not hold more units. */
  passedOver(info: { saleId: string; absent: number; limited: number }): void;
  /** Places did not get their offer in this round, and get it in a later one. */
  delayed(info: { saleId: string; places: number; outcome: string }): void;
  /** The places of a sale were drawn. */
  drawn(info: { saleId: string; entries: number; tookMs: number }): void;
  /** The work on one sale failed. The others go on, and this one is tried again. */
  saleFailed(info: { saleId: string; error: unknown }): void;
  /** The loop has failed and restarts in `retryMs`. */
  crashed(info: { error: unknown; retryMs: number }): void;
}
