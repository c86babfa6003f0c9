/** The report of `verify` on a sale. */
export interface VerifyOptions {
  /** Repair what has a proven cause, and check again. */
  readonly repair?: boolean;
}

/** An equation that must hold, term by term. */
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
 * Why the stores differ from each other or from what they must hold. The first seven are work under way, which ends
 * by itself. `*_pending` is work that a process is about to do; if that process has died, sync does it.
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
  /** Another program has written to the backend, or to Postgres. */
  | 'foreign_redis'
  | 'foreign_postgres'
  | 'unexplained';

export interface Difference {
  readonly cause: Cause;
  /** The number of units concerned, never negative; 0 if it does not concern units. */
  readonly units: number;
  /** True: an error. False: work under way. */
  readonly isFault: boolean;
  /** The finding, with the values that prove it. */
  readonly what: string;
}

/** The result of repairing one difference. */
export interface Repair {
  readonly cause: Cause;
  readonly done: boolean;
  /** What was done; or why nothing was done, and what the operator should do. */
  readonly what: string;
}

export interface VerifyReport {
  readonly saleId: string;
  /** Every unit is accounted for, and there are no faults. */
  readonly ok: boolean;
  /** The equations of `verify`; the second one is missing while the segments can't be counted, the third without a queue. */
  readonly identities: readonly Identity[];
  /** All differences, faults first. */
  readonly differences: readonly Difference[];
  /** The texts of the faults. Empty if `ok`. */
  readonly findings: readonly string[];
  /** Present only if a repair was requested. The rest of the report is from after the repair. */
  readonly repairs?: readonly Repair[];
  /** Orders that Postgres rejected. They break no equation, but are never normal. */
  readonly rejectedOrders: number;
  /** Lower bound of accepted orders that the backend has lost: they are in neither store (`recover` names them). */
  readonly lostOrders: number;
  /** Live orders in Postgres: those that are not cancelled, expired, refunded or rejected. */
  readonly committedOrders: number;
  /** Buyers of live orders. */
  readonly distinctBuyers: number;
}
