/** What puts a difference right. Each is done only if what proves it is still so. */
export type Mend =
  | { readonly kind: 'returns' | 'changes' | 'transfers' | 'state' | 'rebuild' }
  | { readonly kind: 'withdrawals'; readonly ageS: number }
  /** One counter of a segment is wrong; the two others, and Postgres, say what it must be. */
  | {
      readonly kind: 'counter';
      readonly segment: number;
      readonly field: 'left' | 'supplied';
      /** `supplied - left - taken` now; `undefined`: `left` is no number. */
      readonly off: number | undefined;
    }
  | { readonly kind: 'records'; readonly missing: readonly MissingRecord[] };

/** A live order in Postgres that its buyer's record does not hold. */
export interface MissingRecord {
  readonly orderId: string;
  readonly buyerId: string;
  readonly quantity: number;
  readonly key: string;
}
