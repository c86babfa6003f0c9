/** One order within a batch. Ids and keys are visible ASCII without spaces (see limits.ts). */
export interface TakeOrder {
  readonly orderId: string;
  readonly buyerId: string;
  readonly quantity: number;
  /** `''`: none. */
  readonly key: string;
  /** What the shop notes with the order, one line of JSON (engine/sale/order-note.ts); missing or `''`: nothing. */
  readonly note?: string;
  /** Nothing may be taken for it after this moment, on the clock of `monotonicMs`; missing: at any time. */
  readonly deadline?: number;
  /** The buyer has been answered. From then on the order must not be sent. */
  readonly settled?: boolean;
}
