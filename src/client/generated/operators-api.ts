/** Generated from docs/openapi-ops.json by scripts/generate-client.mjs. Change the description, then run `npm run generate`. */

interface Problem<Code extends string> {
  readonly code: Code;
  /** Where the port explains the code, relative to its address. Left out if no answer came. */
  readonly type?: string;
  readonly title: string;
  /** The status of the HTTP answer; 0 if no answer came. */
  readonly status: number;
  readonly detail?: string;
}

export type SaleId = string;

/** Up to 63 bits: more than a JavaScript number holds */
export type OrderId = string;

export type NewSale = {
  readonly id: SaleId;
  readonly stock: number;
  readonly title?: string | undefined;
  readonly segments?: number | undefined;
  /** In the years 1 to 9999 of UTC */
  readonly startsAt?: string | undefined;
  /** In the years 1 to 9999 of UTC */
  readonly endsAt?: string | undefined;
  readonly perBuyerLimit?: number | undefined;
  readonly requireToken?: boolean | undefined;
  readonly payWithinSeconds?: number | undefined;
  readonly priceMinor?: number | undefined;
  readonly faceValueMinor?: number | undefined;
  readonly currency?: string | undefined;
  readonly shopId?: string | undefined;
  /** At most 16,384 bytes as JSON, nested at most 32 deep. Numbers that JavaScript would round are refused: whole ones beyond 2^53 - 1 and, as a rule, others of more than 15 digits */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** Whether buyers need a place in a queue, and the order of the places: first come, first served, or shuffled when the window opens */
  readonly queue?: 'off' | 'fifo' | 'draw' | undefined;
  /** How long an offer can be accepted */
  readonly offerSeconds?: number | undefined;
  /** A buyer that is not heard of for this time is absent; 0: nobody ever is */
  readonly presenceSeconds?: number | undefined;
  /** Places behind the head at most */
  readonly maxWaiting?: number | undefined;
  /** If too few units are free for the next place: it waits for more, gets an offer of fewer, or is passed */
  readonly fit?: 'wait' | 'less' | 'pass' | undefined;
  /** Why, for the ledger */
  readonly reason?: string | undefined;
};

export type SaleChange = {
  readonly action: 'pause' | 'resume' | 'close' | 'archive';
  readonly reason?: string | undefined;
} | {
  readonly action: 'top-up' | 'withdraw';
  readonly units: number;
  readonly reason?: string | undefined;
} | {
  readonly action: 'resize';
  readonly segments: number;
  readonly reason?: string | undefined;
} | {
  readonly action: 'window';
  /** In the years 1 to 9999 of UTC */
  readonly startsAt?: string | undefined;
  /** In the years 1 to 9999 of UTC */
  readonly endsAt?: string | null | undefined;
  readonly reason?: string | undefined;
} | {
  readonly action: 'require-token';
  readonly requireToken: boolean;
  readonly reason?: string | undefined;
} | {
  readonly action: 'queue';
  /** Whether buyers need a place in a queue, and the order of the places: first come, first served, or shuffled when the window opens */
  readonly queue?: 'off' | 'fifo' | 'draw' | undefined;
  /** How long an offer can be accepted */
  readonly offerSeconds?: number | undefined;
  /** A buyer that is not heard of for this time is absent; 0: nobody ever is */
  readonly presenceSeconds?: number | undefined;
  /** Places behind the head at most */
  readonly maxWaiting?: number | undefined;
  /** If too few units are free for the next place: it waits for more, gets an offer of fewer, or is passed */
  readonly fit?: 'wait' | 'less' | 'pass' | undefined;
  readonly reason?: string | undefined;
} | {
  readonly action: 'edit';
  readonly title?: string | undefined;
  /** Not less than it is: a limit can only be raised */
  readonly perBuyerLimit?: number | undefined;
  readonly payWithinSeconds?: number | null | undefined;
  readonly priceMinor?: number | null | undefined;
  readonly faceValueMinor?: number | null | undefined;
  readonly currency?: string | null | undefined;
  /** At most 16,384 bytes as JSON, nested at most 32 deep. Numbers that JavaScript would round are refused: whole ones beyond 2^53 - 1 and, as a rule, others of more than 15 digits */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** Why, for the ledger */
  readonly reason?: string | undefined;
};

export type Sale = {
  readonly id: SaleId;
  readonly stock: number;
  readonly title: string;
  readonly segments: number;
  readonly startsAt: string;
  readonly endsAt?: string | undefined;
  readonly perBuyerLimit: number;
  readonly requireToken: boolean;
  readonly payWithinSeconds?: number | undefined;
  readonly priceMinor?: number | undefined;
  readonly faceValueMinor?: number | undefined;
  readonly currency?: string | undefined;
  readonly shopId?: string | undefined;
  /** At most 16,384 bytes as JSON, nested at most 32 deep */
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The order of the places of its queue. Missing: buyers buy without a place */
  readonly queue?: 'fifo' | 'draw' | undefined;
  /** How long an offer can be accepted */
  readonly offerSeconds?: number | undefined;
  /** A buyer that is not heard of for this time is absent; 0: nobody ever is */
  readonly presenceSeconds?: number | undefined;
  /** Places behind the head at most */
  readonly maxWaiting?: number | undefined;
  /** If too few units are free for the next place: it waits for more, gets an offer of fewer, or is passed */
  readonly fit?: 'wait' | 'less' | 'pass' | undefined;
  readonly state: 'open' | 'paused' | 'closed';
  /** Since when the sale is archived: it is in Postgres alone. Missing: it is not */
  readonly archivedAt?: string | undefined;
  readonly remaining?: number | undefined;
  readonly soldOut: boolean;
  readonly generation: number;
  readonly movedUnits: number;
  readonly committedOrders: number;
  readonly committedUnits: number;
  /** How many buyers of this sale are to be erased, and are not yet. Missing: none */
  readonly waitingErasures?: number | undefined;
  /** Places of its queue behind the head: no more than these wait. 0 also if nobody can wait any more. Missing: it never had a queue */
  readonly behindHead?: number | undefined;
  /** Units of offers that are not accepted yet. They are among `committedUnits`. Missing: the sale never had a queue, or has more than 10,000 such offers */
  readonly offeredUnits?: number | undefined;
};

export type QueueStatus = {
  readonly saleId: SaleId;
  readonly order: 'off' | 'fifo' | 'draw';
  /** How long an offer can be accepted. Left out, like the other settings, if the queue is off */
  readonly offerSeconds?: number | undefined;
  /** A buyer not heard of for this time is absent; 0: never */
  readonly presenceSeconds?: number | undefined;
  /** Places behind the head at most */
  readonly maxWaiting?: number | undefined;
  /** If too few units are free for the next place: it waits for more, is offered less, or is passed */
  readonly fit?: 'wait' | 'less' | 'pass' | undefined;
  /** Whether free units go to the next places, and if not, why. no-head: no process has made offers for 10 s, although one should */
  readonly phase: 'off' | 'closed' | 'before' | 'ended' | 'no-head' | 'paused' | 'stopped' | 'offering';
  /** Places given so far: the number of the newest */
  readonly places: number;
  /** No place of a rank up to this one waits */
  readonly head: number;
  /** Places of higher ranks: no more than these wait */
  readonly behindHead: number;
  /** Places by state. Left out if there are more than 20,000, and count is not true */
  readonly counts?: {
    readonly waiting: number;
    readonly offered: number;
    readonly bought: number;
    readonly lapsed: number;
    readonly left: number;
  } | undefined;
  /** Units that nobody has. Left out until the head has reported */
  readonly freeUnits?: number | undefined;
  /** The next place, while units lie free because it wants more than these, and fit is wait. Left out otherwise */
  readonly waitsForUnits?: {
    readonly number: number;
    readonly quantity: number;
  } | undefined;
  /** The first rank that nothing can come to, as things are. Left out if there is none */
  readonly hopelessFrom?: number | undefined;
  /** Offers that were made so far */
  readonly offersMade: number;
  /** Offers of the last 60 seconds, counted up to 100,000 */
  readonly offersLastMinute: number;
  /** An operator has stopped the offers */
  readonly stopped: boolean;
  /** Offers that may still be made while they are stopped */
  readonly allowed: number;
  /** Offers in a minute at most. Left out if there is no bound */
  readonly perMinute?: number | undefined;
  /** When the head reported last. Left out if it never did */
  readonly toldAt?: string | undefined;
  readonly draw: {
    /** SHA-256 of the seed */
    readonly commitment: string;
    /** Left out if the places were not drawn */
    readonly drawnAt?: string | undefined;
    /** Places that took part */
    readonly entries?: number | undefined;
    readonly entriesHash?: string | undefined;
  };
};

export type Place = {
  readonly number: number;
  readonly buyerId: string;
  readonly quantity: number;
  readonly state: 'waiting' | 'offered' | 'bought' | 'lapsed' | 'left';
  /** Why it has left */
  readonly reason?: 'asked' | 'absent' | 'limit' | undefined;
  readonly orderId?: OrderId | undefined;
  readonly givenAt: string;
  /** When it was bought, lapsed or left */
  readonly endedAt?: string | undefined;
  /** Until when its offer can be accepted */
  readonly offeredUntil?: string | undefined;
  /** Waiting places before it. Only in a query for one buyer, of a place that waits and has its rank */
  readonly ahead?: number | undefined;
};

export type QueueChange = {
  readonly action: 'pause' | 'resume';
  readonly reason?: string | undefined;
} | {
  readonly action: 'pace';
  readonly perMinute: number | null;
  readonly reason?: string | undefined;
} | {
  readonly action: 'hand-out';
  readonly offers: number;
  readonly reason?: string | undefined;
};

export type Order = {
  readonly orderId: OrderId;
  readonly saleId: SaleId;
  readonly buyerId: string;
  readonly quantity: number;
  readonly status: 'offered' | 'unpaid' | 'paid' | 'redeemed' | 'cancelled' | 'expired' | 'refunded' | 'rejected';
  readonly payType?: 'balance' | 'alipay' | 'wechat' | 'card' | 'other' | undefined;
  readonly committedAt: string;
  readonly expiresAt?: string | undefined;
  readonly paidAt?: string | undefined;
  readonly redeemedAt?: string | undefined;
  readonly cancelledAt?: string | undefined;
  readonly expiredAt?: string | undefined;
  readonly refundedAt?: string | undefined;
  readonly refundDue?: true | undefined;
  readonly retakenBy?: OrderId | undefined;
  readonly retaken?: true | undefined;
  readonly replaces?: OrderId | undefined;
  readonly reference?: string | undefined;
  /** At most 4,096 bytes as JSON, nested at most 32 deep */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** What operators did to the order, the oldest first. Only in the answer to GET */
  readonly changes?: readonly (NotedChange)[] | undefined;
};

export type NotedChange = {
  readonly change: 'pay' | 'cancel' | 'redeem' | 'refund' | 'edit';
  readonly at: string;
  readonly actor: string;
  readonly reason: string;
};

export type LedgerEntry = {
  readonly id: string;
  readonly at: string;
  readonly action: string;
  /** How many units the change added to the sale */
  readonly units: number;
  /** Left out for a sale that version 0.1.0 created */
  readonly actor?: string | undefined;
  readonly reason: string;
  /** The values before and after the change; for the creation, the values of the new sale */
  readonly detail: Readonly<Record<string, unknown>>;
  readonly applied: boolean;
};

/** The progress of a rebuild, at the node that was asked for it */
export type Recovery = {
  readonly saleId: SaleId;
  readonly state: 'none';
} | {
  readonly saleId: SaleId;
  readonly state: 'running';
  readonly step: 'wait' | 'salvage' | 'load' | 'publish' | 'names';
  readonly done: number;
  readonly total: number;
} | {
  readonly saleId: SaleId;
  readonly state: 'failed';
  readonly problem: string;
} | {
  readonly saleId: SaleId;
  readonly state: 'done';
  readonly generation: number;
  readonly tookMs: number;
  /** Accepted orders that are lost for good */
  readonly losses: readonly ({
    readonly segment: number;
    /** At least so many orders were lost */
    readonly orders: number;
    /** Those that nodes could name, at most 1,000 */
    readonly named: readonly ({
      readonly segment: number;
      readonly orderId: OrderId;
      readonly buyerId: string;
      readonly quantity: number;
    })[];
  })[];
  /** Orders that the logs still held; left out, as the next two, if another process rebuilt the sale */
  readonly salvagedOrders?: number | undefined;
  /** Salvaged orders that Postgres has refused */
  readonly rejectedOrders?: number | undefined;
  readonly loadedBuyers?: number | undefined;
};

export type Deletion = {
  readonly saleId: SaleId;
  readonly state: 'none';
} | {
  readonly saleId: SaleId;
  readonly state: 'deleting';
  /** Orders of the sale when the deletion began */
  readonly orders: number;
  /** Orders of these that are deleted */
  readonly done: number;
  readonly actor: string;
  readonly reason: string;
  readonly begunAt: string;
} | {
  readonly saleId: SaleId;
  readonly state: 'deleted';
  /** Orders of the sale when the deletion began */
  readonly orders: number;
  /** Orders of these that are deleted */
  readonly done: number;
  readonly actor: string;
  readonly reason: string;
  readonly begunAt: string;
  readonly deletedAt: string;
};

export type VerifyReport = {
  readonly saleId: SaleId;
  /** Whether every unit is accounted for, and there are no faults */
  readonly ok: boolean;
  /** Two equations, term by term; only the first while the segments can’t be counted */
  readonly identities: readonly ({
    readonly name: string;
    readonly left: readonly ({
      readonly name: string;
      readonly units: number;
    })[];
    readonly right: readonly ({
      readonly name: string;
      readonly units: number;
    })[];
    /** Left minus right */
    readonly difference: number;
  })[];
  /** What was found, faults first */
  readonly differences: readonly ({
    readonly cause: 'in_flight' | 'return_pending' | 'top_up_pending' | 'withdrawal_pending' | 'transfer_pending' | 'change_pending' | 'rebuild_pending' | 'lost_entries' | 'foreign_redis' | 'foreign_postgres' | 'unexplained';
    readonly units: number;
    /** If not, it is work under way */
    readonly isFault: boolean;
    readonly what: string;
  })[];
  /** The sentences of the faults alone */
  readonly findings: readonly (string)[];
  /** Only if a repair was asked for. All other members show the state after it */
  readonly repairs?: readonly ({
    readonly cause: 'in_flight' | 'return_pending' | 'top_up_pending' | 'withdrawal_pending' | 'transfer_pending' | 'change_pending' | 'rebuild_pending' | 'lost_entries' | 'foreign_redis' | 'foreign_postgres' | 'unexplained';
    readonly done: boolean;
    readonly what: string;
  })[] | undefined;
  /** Orders that Postgres refused since the sale began */
  readonly rejectedOrders: number;
  /** Orders that Redis lost since the sale began, at least */
  readonly lostOrders: number;
  readonly committedOrders: number;
  readonly distinctBuyers: number;
};

export type ErasureReport = {
  readonly erased: readonly ({
    readonly saleId: SaleId;
    /** What is in the place of the buyer’s id in this sale */
    readonly pseudonym: string;
    /** The buyer’s orders in this sale */
    readonly orders: number;
  })[];
  readonly waiting: readonly ({
    readonly saleId: SaleId;
    /** What is in the place of the buyer’s id in this sale */
    readonly pseudonym: string;
    /** The buyer’s orders in this sale */
    readonly orders: number;
    /** `closed`: until the sale is closed. `rebuilt`: until sync has rebuilt it */
    readonly until: 'closed' | 'rebuilt';
  })[];
  /** With `dryRun`: the sales that know the buyer */
  readonly found?: readonly ({
    readonly saleId: SaleId;
    /** The buyer’s orders in this sale */
    readonly orders: number;
    /** The erasure would wait until the sale is closed */
    readonly until?: 'closed' | undefined;
  })[] | undefined;
};

export type Resent = {
  readonly resent: number;
};

/** Later versions may add kinds and members: ignore what you do not know */
export type OrderEvent = {
  /** The same each time the event is delivered */
  readonly id: string;
  /** What happened to the order, or to the offer of a queue that becomes this order if it is accepted */
  readonly kind: 'order.committed' | 'order.paid' | 'order.cancelled' | 'order.expired' | 'order.redeemed' | 'order.refunded' | 'order.rejected' | 'offer.made' | 'offer.lapsed' | 'offer.declined';
  readonly orderId: OrderId;
  readonly saleId: SaleId;
  readonly buyerId: string;
  readonly quantity: number;
  /** When it happened, by the clock of Postgres */
  readonly at: string;
  readonly reference?: string | undefined;
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
};

export type Rebalance = {
  readonly saleId: SaleId;
  readonly dryRun: boolean;
  /** Units left in each segment */
  readonly before: readonly (number)[];
  readonly after: readonly (number)[];
  readonly moves: readonly ({
    readonly from: number;
    readonly to: number;
    readonly units: number;
  })[];
};

export type DeadLetter = {
  readonly id: string;
  readonly kind: string;
  /** When its events happened */
  readonly at: string;
  readonly deadAt: string;
  readonly attempts: number;
  readonly failedWith: string;
  readonly orderIds: readonly (OrderId)[];
};

/** The problems by code, each with the members that it has. */
export interface Problems {
  insufficient_stock: Problem<'insufficient_stock'> & { readonly remaining: number };
  unknown_sale: Problem<'unknown_sale'>;
  unknown_order: Problem<'unknown_order'>;
  unknown_dead_letter: Problem<'unknown_dead_letter'>;
  not_found: Problem<'not_found'>;
  method_not_allowed: Problem<'method_not_allowed'>;
  invalid_request: Problem<'invalid_request'> & { readonly faults: readonly ({
  readonly field: string;
  readonly problem: string;
})[] };
  unauthenticated: Problem<'unauthenticated'> & { readonly reason: 'missing' | 'invalid' };
  sale_exists: Problem<'sale_exists'>;
  wrong_state: Problem<'wrong_state'> & { readonly state: string };
  orders_differ: Problem<'orders_differ'> & { readonly orders: number };
  deleting: Problem<'deleting'>;
  archived: Problem<'archived'>;
  wrong_status: Problem<'wrong_status'> & { readonly orderStatus: string };
  expired: Problem<'expired'> & { readonly refundDue: boolean };
  payload_too_large: Problem<'payload_too_large'>;
  busy: Problem<'busy'>;
  unavailable: Problem<'unavailable'>;
  unknown: Problem<'unknown'>;
  internal: Problem<'internal'>;
}

export const CODES: readonly string[] = [
  'insufficient_stock',
  'unknown_sale',
  'unknown_order',
  'unknown_dead_letter',
  'not_found',
  'method_not_allowed',
  'invalid_request',
  'unauthenticated',
  'sale_exists',
  'wrong_state',
  'orders_differ',
  'deleting',
  'archived',
  'wrong_status',
  'expired',
  'payload_too_large',
  'busy',
  'unavailable',
  'unknown',
  'internal',
];

export interface Operations {
  healthz: {
    readonly body: undefined;
    readonly answer: {
      readonly status: 'ok';
    };
    readonly code: 'invalid_request' | 'internal';
  };
  readyz: {
    readonly body: undefined;
    readonly answer: {
      readonly status: 'ready';
      /** Shared settings that have another value in other processes of the shop. Left out if there are none */
      readonly settingsDiffer?: readonly ({
        readonly setting: string;
        /** How many other processes have another value */
        readonly processes: number;
        /** How many other processes have the setting */
        readonly of: number;
      })[] | undefined;
    };
    readonly code: 'invalid_request' | 'internal';
  };
  metrics: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'unauthenticated' | 'internal' | 'unavailable';
  };
  listSales: {
    readonly body: undefined;
    readonly answer: {
      readonly sales: readonly (Sale)[];
      /** Send it as `after` to get the next page. Missing on the last page */
      readonly next?: string | undefined;
    };
    readonly code: 'invalid_request' | 'unauthenticated' | 'internal' | 'unavailable';
  };
  createSale: {
    readonly body: NewSale;
    readonly answer: Sale;
    readonly code: 'invalid_request' | 'unauthenticated' | 'sale_exists' | 'deleting' | 'payload_too_large' | 'internal' | 'unavailable';
  };
  showSale: {
    readonly body: undefined;
    readonly answer: Sale;
    readonly code: 'unauthenticated' | 'unknown_sale' | 'internal' | 'unavailable';
  };
  changeSale: {
    readonly body: SaleChange;
    readonly answer: Sale;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'wrong_state' | 'archived' | 'insufficient_stock' | 'payload_too_large' | 'internal' | 'unavailable' | 'busy';
  };
  deleteSale: {
    readonly body: undefined;
    readonly answer: Deletion;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'wrong_state' | 'orders_differ' | 'internal' | 'unavailable' | 'busy';
  };
  deletion: {
    readonly body: undefined;
    readonly answer: Deletion;
    readonly code: 'unauthenticated' | 'internal' | 'unavailable';
  };
  ledger: {
    readonly body: undefined;
    readonly answer: {
      readonly ledger: readonly (LedgerEntry)[];
      /** Send it as `after` to get the next page. Missing on the last page */
      readonly next?: string | undefined;
    };
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'internal' | 'unavailable';
  };
  rebalance: {
    readonly body: {
      readonly dryRun?: boolean | undefined;
    };
    readonly answer: Rebalance;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'archived' | 'payload_too_large' | 'internal' | 'unavailable';
  };
  recover: {
    readonly body: undefined;
    readonly answer: Recovery;
    readonly code: 'unauthenticated' | 'unknown_sale' | 'archived' | 'internal' | 'unavailable';
  };
  recovery: {
    readonly body: undefined;
    readonly answer: Recovery;
    readonly code: 'unauthenticated' | 'unknown_sale' | 'internal' | 'unavailable';
  };
  verify: {
    readonly body: {
      readonly repair?: boolean | undefined;
    };
    readonly answer: VerifyReport;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'payload_too_large' | 'internal' | 'unavailable';
  };
  showQueue: {
    readonly body: undefined;
    readonly answer: QueueStatus;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'wrong_state' | 'internal' | 'unavailable' | 'busy';
  };
  changeQueue: {
    readonly body: QueueChange;
    readonly answer: QueueStatus;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'wrong_state' | 'archived' | 'payload_too_large' | 'internal' | 'unavailable' | 'busy';
  };
  listPlaces: {
    readonly body: undefined;
    readonly answer: {
      readonly places: readonly (Place)[];
      readonly next?: number | undefined;
    };
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'wrong_state' | 'internal' | 'unavailable' | 'busy';
  };
  drawFile: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'unauthenticated' | 'unknown_sale' | 'wrong_state' | 'internal' | 'unavailable' | 'busy';
  };
  listOrders: {
    readonly body: undefined;
    readonly answer: {
      readonly orders: readonly (Order)[];
      readonly next?: OrderId | undefined;
    };
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'internal' | 'unavailable';
  };
  exportOrders: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'internal' | 'unavailable';
  };
  showOrder: {
    readonly body: undefined;
    readonly answer: Order;
    readonly code: 'unauthenticated' | 'unknown_order' | 'internal' | 'unavailable';
  };
  editOrder: {
    readonly body: {
      readonly reference?: string | null | undefined;
      /** At most 4,096 bytes as JSON, nested at most 32 deep. Numbers that JavaScript would round are refused: whole ones beyond 2^53 - 1 and, as a rule, others of more than 15 digits */
      readonly metadata?: Readonly<Record<string, unknown>> | null | undefined;
      /** Why, for the ledger */
      readonly reason?: string | undefined;
    };
    readonly answer: Order;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_order' | 'payload_too_large' | 'internal' | 'unavailable';
  };
  payOrder: {
    readonly body: {
      readonly payType: 'balance' | 'alipay' | 'wechat' | 'card' | 'other';
      /** Why, shown with the order */
      readonly reason?: string | undefined;
    };
    readonly answer: Order;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_order' | 'wrong_status' | 'expired' | 'wrong_state' | 'payload_too_large' | 'internal' | 'busy' | 'unavailable' | 'unknown';
  };
  cancelOrder: {
    readonly body: {
      /** Why, shown with the order */
      readonly reason?: string | undefined;
    };
    readonly answer: Order;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_order' | 'wrong_status' | 'payload_too_large' | 'internal' | 'busy' | 'unavailable' | 'unknown';
  };
  redeemOrder: {
    readonly body: {
      /** Why, shown with the order */
      readonly reason?: string | undefined;
    };
    readonly answer: Order;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_order' | 'wrong_status' | 'payload_too_large' | 'internal' | 'busy' | 'unavailable' | 'unknown';
  };
  refundOrder: {
    readonly body: {
      /** Why, shown with the order */
      readonly reason?: string | undefined;
    };
    readonly answer: Order;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_order' | 'wrong_status' | 'payload_too_large' | 'internal' | 'busy' | 'unavailable' | 'unknown';
  };
  refundsDue: {
    readonly body: undefined;
    readonly answer: {
      readonly orders: readonly (Order)[];
      /** Send it as `after` to get the next page. Missing on the last page */
      readonly next?: string | undefined;
    };
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'internal' | 'unavailable';
  };
  eraseBuyer: {
    readonly body: {
      readonly buyerId: string;
      readonly saleId?: SaleId | undefined;
      /** Also in sales that are not closed: such a sale is rebuilt, all its buyers wait, and it then knows nothing of the buyer. Otherwise they wait until they are closed */
      readonly running?: boolean | undefined;
      /** Only say in `found` which sales know the buyer, and change nothing */
      readonly dryRun?: boolean | undefined;
      /** Why, for the ledger. It must not contain the buyer’s id */
      readonly reason?: string | undefined;
    };
    readonly answer: ErasureReport;
    readonly code: 'invalid_request' | 'unauthenticated' | 'unknown_sale' | 'payload_too_large' | 'internal' | 'unavailable';
  };
  deadLetters: {
    readonly body: undefined;
    readonly answer: {
      readonly total: number;
      readonly dead: readonly (DeadLetter)[];
      /** Send it as `after` to get the next page. Missing on the last page */
      readonly next?: string | undefined;
    };
    readonly code: 'invalid_request' | 'unauthenticated' | 'internal' | 'unavailable';
  };
  resendAll: {
    readonly body: undefined;
    readonly answer: Resent;
    readonly code: 'unauthenticated' | 'internal' | 'unavailable';
  };
  resend: {
    readonly body: undefined;
    readonly answer: Resent;
    readonly code: 'unauthenticated' | 'unknown_dead_letter' | 'internal' | 'unavailable';
  };
  consolePage: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'internal';
  };
  consoleFile: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'not_found' | 'internal';
  };
  consoleEvents: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'unauthenticated' | 'internal' | 'busy';
  };
  openApi: {
    readonly body: undefined;
    readonly answer: {
      readonly openapi: string;
      readonly info: Readonly<Record<string, unknown>>;
      readonly paths: Readonly<Record<string, unknown>>;
    };
    readonly code: 'invalid_request' | 'internal';
  };
  docsPage: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'internal';
  };
  problemsPage: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'internal';
  };
  problemPage: {
    readonly body: undefined;
    readonly answer: string;
    readonly code: 'invalid_request' | 'not_found' | 'internal';
  };
}

/**
 * Method, path, and a member that the answer always has: if possible one that no answer of the other port has. Without such a
 * member, the answer is a text.
 */
export const ROUTES = {
  healthz: ['GET', '/healthz', 'status'],
  readyz: ['GET', '/readyz', 'status'],
  metrics: ['GET', '/metrics'],
  listSales: ['GET', '/v1/sales', 'sales'],
  createSale: ['POST', '/v1/sales', 'id'],
  showSale: ['GET', '/v1/sales/{saleId}', 'stock'],
  changeSale: ['PATCH', '/v1/sales/{saleId}', 'id'],
  deleteSale: ['DELETE', '/v1/sales/{saleId}', 'saleId'],
  deletion: ['GET', '/v1/sales/{saleId}/deletion', 'saleId'],
  ledger: ['GET', '/v1/sales/{saleId}/ledger', 'ledger'],
  rebalance: ['POST', '/v1/sales/{saleId}/rebalance', 'saleId'],
  recover: ['POST', '/v1/sales/{saleId}/recover', 'saleId'],
  recovery: ['GET', '/v1/sales/{saleId}/recover', 'saleId'],
  verify: ['POST', '/v1/sales/{saleId}/verify', 'saleId'],
  showQueue: ['GET', '/v1/sales/{saleId}/queue', 'saleId'],
  changeQueue: ['PATCH', '/v1/sales/{saleId}/queue', 'saleId'],
  listPlaces: ['GET', '/v1/sales/{saleId}/queue/places', 'places'],
  drawFile: ['GET', '/v1/sales/{saleId}/queue/draw'],
  listOrders: ['GET', '/v1/sales/{saleId}/orders', 'orders'],
  exportOrders: ['GET', '/v1/sales/{saleId}/orders/export'],
  showOrder: ['GET', '/v1/orders/{orderId}', 'buyerId'],
  editOrder: ['PATCH', '/v1/orders/{orderId}', 'orderId'],
  payOrder: ['POST', '/v1/orders/{orderId}/pay', 'buyerId'],
  cancelOrder: ['POST', '/v1/orders/{orderId}/cancel', 'buyerId'],
  redeemOrder: ['POST', '/v1/orders/{orderId}/redeem', 'buyerId'],
  refundOrder: ['POST', '/v1/orders/{orderId}/refund', 'orderId'],
  refundsDue: ['GET', '/v1/refunds-due', 'orders'],
  eraseBuyer: ['POST', '/v1/erasures', 'erased'],
  deadLetters: ['GET', '/v1/events/dead', 'total'],
  resendAll: ['POST', '/v1/events/dead/resend', 'resent'],
  resend: ['POST', '/v1/events/dead/{id}/resend', 'resent'],
  consolePage: ['GET', '/console'],
  consoleFile: ['GET', '/console/{file}'],
  consoleEvents: ['GET', '/v1/console/events'],
  openApi: ['GET', '/openapi.json', 'openapi'],
  docsPage: ['GET', '/docs'],
  problemsPage: ['GET', '/problems'],
  problemPage: ['GET', '/problems/{code}'],
} as const;
