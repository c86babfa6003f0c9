/** How a difference can be repaired. The repair is made only if its proof still holds. */
export type RepairStep =
  | { readonly kind: 'returns' | 'changes' | 'transfers' | 'state' | 'rebuild' }
  /** The number of live orders in the sale's row is wrong. */
  | { readonly kind: 'live orders' }
  /** The states of places differ from what their orders prove. */
  | { readonly kind: 'places' }
  /** No place has offers that name their places. */
  | { readonly kind: 'offers' }
  | { readonly kind: 'withdrawals'; readonly ageS: number }
  /** One counter of a segment is wrong; the two others, and Postgres, prove its right value. */
  | {
      readonly kind: 'counter';
      readonly segment: number;
      readonly field: 'left' | 'supplied';
      /** The present value of `supplied - left - taken`; `undefined`: `left` is not a number. */
      readonly off: number | undefined;
    }
  | { readonly kind: 'records'; readonly missing: readonly MissingRecord[] };

/** A live order in Postgres that is missing in its buyer's record. */
export interface MissingRecord {
  readonly orderId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
}
