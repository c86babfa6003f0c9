/** The orders of one buyer, from the record in the home segment. */
export interface Holding {
  readonly buyerId: string;
  readonly orders: readonly HeldOrder[];
}

export interface HeldOrder {
  readonly orderId: string;
  readonly quantity: number;
  readonly key: string;
  /** The log entry with the order; 0 for an order that was loaded from Postgres. */
  readonly seq: number;
}

export interface Recall {
  /** The segment's cursor: orders at or below it are in Postgres. */
  readonly committed: number;
  /** One per buyer asked for. */
  readonly holdings: readonly Holding[];
}
