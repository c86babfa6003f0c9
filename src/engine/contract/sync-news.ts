/** What a sync tells the others: how much it has to do, so that they can divide the sales (sync/sale-shares.ts). */
export interface SyncNews {
  /** The sender's name, new at each start. */
  readonly from: string;
  /** Sales that the sender works on. */
  readonly sales: number;
  /** Sales that the sender has just released for another sync. */
  readonly handedOver?: { readonly to: string; readonly saleIds: readonly string[] };
}

export interface SyncChannel {
  /** Sends the news to all syncs, the sender included. Best effort. */
  tell(news: SyncNews): void;
}
