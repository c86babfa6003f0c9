/** What `verify` says of a sale. */
export interface VerifyOptions {
  /** Mend what has a proven cause, and look again. */
  readonly repair?: boolean;
}

/** One equation that must hold, term by term. */
export interface Identity {
  readonly name: string;
  readonly left: readonly Term[];
  readonly right: readonly Term[];
  /** Left minus right: 0 where it holds. */
  readonly difference: number;
}

export interface Term {
  readonly name: string;
  readonly units: number;
}

/**
 * Why the stores differ, or a store from what must be. The first seven are work under way, which ends by itself; `*_pending`
 * is work that somebody is about to do, or has died over: then sync does it.
 */
export type Cause =
  | 'in_flight'
  | 'return_pending'
  | 'top_up_pending'
  | 'withdrawal_pending'
  | 'transfer_pending'
  | 'change_pending'
  | 'rebuild_pending'
  /** The backend has lost writes. */
  | 'lost_entries'
  /** Somebody else has written to the backend, or to Postgres. */
  | 'foreign_redis'
  | 'foreign_postgres'
  | 'unexplained';

export interface Difference {
  readonly cause: Cause;
  /** Units that it is about, in their number only; 0: it is not about units. */
  readonly units: number;
  /** It must not be. Else it is work under way. */
  readonly isFault: boolean;
  /** What was found, with the values that prove it. */
  readonly what: string;
}

/** What became of a difference that `repair` found. */
export interface Repair {
  readonly cause: Cause;
  readonly done: boolean;
  /** What was done; or why nothing was, and what to do. */
  readonly what: string;
}

export interface VerifyReport {
  readonly saleId: string;
  /** Every unit is accounted for, and nothing was found that must not be. */
  readonly ok: boolean;
  /** The second is left out while the segments can't be counted. */
  readonly identities: readonly Identity[];
  /** All that was found, faults first. */
  readonly differences: readonly Difference[];
  /** The sentences of the faults. Empty if `ok`. */
  readonly findings: readonly string[];
  /** Only if a repair was asked for. The rest of the report is from after it. */
  readonly repairs?: readonly Repair[];
  /** Orders that the guard of the truth rejected, which is no fault of the identity but never normal. */
  readonly rejectedOrders: number;
  /** Accepted orders that the backend has lost so far, at least: they are in neither store (`recover` names them). */
  readonly lostOrders: number;
  readonly committedOrders: number;
  readonly distinctBuyers: number;
}
