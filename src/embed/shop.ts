/** The interface of an embedded shop: purchases, and what operators do. */
import type { Outcome } from '../engine/contract.ts';
import type { ErasureReport } from '../operations/buyer-operations.ts';
import type { PageQuery } from '../operations/checked-input.ts';
import type { Deletion } from '../operations/delete-operations.ts';
import type { DeadLetters } from '../operations/event-operations.ts';
import type { OrderPage } from '../operations/order-list.ts';
import type { Order, OrderEdit, OrderOutcome, OrderStatus, PayType } from '../operations/order-operations.ts';
import type { RebalanceOptions, RebalanceReport } from '../operations/rebalance-operations.ts';
import type { Recovery } from '../operations/recover-operations.ts';
import type { SalePage, SaleQuery } from '../operations/sale-list.ts';
import type { LedgerEntry, SaleStatus, VerifyOptions, VerifyReport } from '../operations/sale-operations.ts';
import type { ShopPlaces } from './shop-places.ts';

/** A purchase that a buyer wants to make. */
export interface NewPurchase {
  readonly saleId: string;
  /** The buyer's id: 1 to 128 visible ASCII characters. */
  readonly buyerId: string;
  /** Units, 1 to the sale's limit per buyer; all or nothing. Default 1. */
  readonly quantity?: number | undefined;
  /**
   * An idempotency key of this purchase, 1 to 128 visible ASCII characters that do not begin with `retake:` or `place:`. The same
   * key again gives the same answer. Without a key, an `unknown` purchase can't be settled.
   */
  readonly key?: string | undefined;
  /**
   * False: the answer `accepted` is enough, which means that the order is in Redis' log. Without Redis, every purchase waits for
   * its commit. Default true.
   */
  readonly awaitCommit?: boolean | undefined;
  /** What the shop calls the order, one line of at most 200 characters. A repetition keeps that of the first purchase. */
  readonly reference?: string | undefined;
  /** What the shop notes with the order, at most 4,096 bytes as JSON. A repetition keeps that of the first purchase. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/**
 * The outcome of a purchase. With `committed` and `accepted` there is an order. With `unknown` there may be one: repeat the
 * purchase with the same key. With any other outcome there is none. Times are milliseconds since the Unix epoch.
 */
export type PurchaseOutcome =
  | Exclude<Outcome, { code: 'token_required' | 'token_invalid' | 'unavailable' }>
  /** A store does not answer, or the sale is being rebuilt. With a `detail`: the shop was closed, and every purchase is answered so. */
  | { readonly code: 'unavailable'; readonly detail?: string };

/** The definition of a new sale. Times are ISO 8601 with zone. */
export interface NewSale {
  /** 1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit. */
  readonly id: string;
  /** Units for sale, 1 to 2,147,483,648. */
  readonly stock: number;
  /** One line of at most 200 characters. */
  readonly title?: string | undefined;
  /** Segments that the stock is split into, 1 to 1,024. Default 8. */
  readonly segments?: number | undefined;
  /** Default: now. */
  readonly startsAt?: string | undefined;
  /** Default: no end. */
  readonly endsAt?: string | undefined;
  /** Units that one buyer may have, 1 to 1,000. Default 1. */
  readonly perBuyerLimit?: number | undefined;
  /** Whether buyers at a node's port need a purchase token. Default false. */
  readonly requireToken?: boolean | undefined;
  /** Seconds after which an unpaid order expires, 1 to 31,536,000. Default: never. */
  readonly payWithinSeconds?: number | undefined;
  /** In the currency's minor unit, a whole number of at least 0. */
  readonly priceMinor?: number | undefined;
  /** In the currency's minor unit, a whole number of at least 0. */
  readonly faceValueMinor?: number | undefined;
  /** ISO 4217, such as `EUR`. */
  readonly currency?: string | undefined;
  /** One line of at most 128 characters. */
  readonly shopId?: string | undefined;
  /** At most 16,384 bytes as JSON. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
  /** Whether buyers need a place in a queue, and the order of the places. Default `off`. */
  readonly queue?: 'off' | 'fifo' | 'draw' | undefined;
  /** How long an offer can be accepted, 1 to 31,536,000 seconds. Default 120. */
  readonly offerSeconds?: number | undefined;
  /** A buyer that is not heard of for this number of seconds is absent, 1 to 86,400; 0: nobody ever is. Default 60. */
  readonly presenceSeconds?: number | undefined;
  /** Places behind the head, 1 to 10,000,000. Default 1,000,000. */
  readonly maxWaiting?: number | undefined;
  /** If too few units are free for the next place: it waits, gets an offer of fewer, or is passed. Default `less`. */
  readonly fit?: 'wait' | 'less' | 'pass' | undefined;
}

/** A change of a sale. Times are ISO 8601 with zone. */
export type NewSaleChange =
  | { readonly action: 'pause' | 'resume' | 'close' }
  /** A closed sale leaves Redis, for good: its orders stay. */
  | { readonly action: 'archive' }
  | { readonly action: 'top-up' | 'withdraw'; readonly units: number }
  | { readonly action: 'resize'; readonly segments: number }
  | { readonly action: 'require-token'; readonly requireToken: boolean }
  /** A setting that is left out stays. At least one is needed. */
  | ({ readonly action: 'queue' } & Pick<
      NewSale,
      'queue' | 'offerSeconds' | 'presenceSeconds' | 'maxWaiting' | 'fit'
    >)
  /** A field that is left out stays; `null` removes an optional one. */
  | {
      readonly action: 'edit';
      readonly title?: string;
      /** Not less than now, and at most 1,000. */
      readonly perBuyerLimit?: number;
      readonly payWithinSeconds?: number | null;
      readonly priceMinor?: number | null;
      readonly faceValueMinor?: number | null;
      readonly currency?: string | null;
      readonly metadata?: Readonly<Record<string, unknown>>;
    }
  /** A time that is left out stays as it is; `endsAt: null` removes the end. */
  | { readonly action: 'window'; readonly startsAt?: string; readonly endsAt?: string | null };

/** Who makes a change, and why. It is stored in the sale's ledger, or with the order. */
export interface ChangeAuthor {
  /** 1 to 200 printable ASCII characters. Default `shop`. */
  readonly actor?: string | undefined;
  /** One line of at most 500 characters. */
  readonly reason?: string | undefined;
}

/**
 * What operators do with sales. Besides the errors named below, each method may reject with
 *
 * - UnknownSale: there is no such sale
 * - StoresAway: a store does not answer
 * - OperationTimedOut: it took longer than 40 s (`verify` and `delete`: 10 minutes), although the stores answer
 * - MetRebuild: the sale is being rebuilt
 *
 * After each of the last three, whose code is `unavailable`, a change may have been made: check that before you repeat it.
 */
export interface ShopSales {
  /** @throws InvalidInput with all faults at once, SaleExists, SaleDeleting */
  create(sale: NewSale, by?: ChangeAuthor): Promise<SaleStatus>;
  /** A page, the newest first. @throws InvalidInput */
  list(query?: SaleQuery): Promise<SalePage>;
  show(saleId: string): Promise<SaleStatus>;
  /** A change to the present value does nothing. @throws InvalidInput, WrongState, SaleArchived, InsufficientStock */
  change(saleId: string, change: NewSaleChange, by?: ChangeAuthor): Promise<SaleStatus>;
  /**
   * Begins to delete an archived sale with all its orders. Does not wait for the end, and goes on after `close` and the next
   * `open`.
   * @param orders how many orders the sale has: export them first, and count them. Default 0
   * @throws InvalidInput, WrongState, OrdersDiffer; StockadeError `unavailable` while Redis still has the sale
   */
  delete(saleId: string, orders?: number, by?: ChangeAuthor): Promise<Deletion>;
  /** The newest deletion of a sale with this id. */
  deletion(saleId: string): Promise<Deletion>;
  /**
   * The creation, then all changes, the newest last.
   * @param query with a `limit` it gets at most so many; `after` is the id of the last one that you have. @throws InvalidInput
   */
  ledger(saleId: string, query?: PageQuery): Promise<LedgerEntry[]>;
  /** Checks that every unit is accounted for, in both stores. */
  verify(saleId: string, options?: VerifyOptions): Promise<VerifyReport>;
  /** Evens out the units left in the segments. */
  rebalance(saleId: string, options?: Partial<RebalanceOptions>): Promise<RebalanceReport>;
  /** Starts a rebuild of the sale from Postgres unless one is under way. Does not wait for its end. */
  recover(saleId: string): Promise<Recovery>;
  /** The progress of that rebuild. */
  recovery(saleId: string): Promise<Recovery>;
}

/**
 * Changes of orders after their purchase. They may be repeated: a repeated change gets the same answer as the first. They do
 * not check the buyer: compare `order.buyerId` before you let a buyer change an order. Each method rejects with StoresAway if
 * a store does not answer, and with OperationTimedOut after 40 s although the stores answer.
 */
export interface ShopOrders {
  show(orderId: string): Promise<OrderOutcome>;
  /** A page of a sale's orders. @throws InvalidInput, UnknownSale */
  list(saleId: string, query?: NewOrderQuery): Promise<OrderPage>;
  /**
   * All orders of a sale, the oldest first, each as it was when its page was read. They are read in pages of 1,000 while the
   * caller reads. `close` waits for the page that is being read, and for no more. @throws InvalidInput, UnknownSale
   */
  export(saleId: string, query?: NewOrderExport): AsyncIterable<Order>;
  /** @throws InvalidInput */
  pay(orderId: string, payType: PayType, by?: ChangeAuthor): Promise<OrderOutcome>;
  /** Cancels an unpaid order; its units go back for sale. @throws InvalidInput */
  cancel(orderId: string, by?: ChangeAuthor): Promise<OrderOutcome>;
  /** Records that a paid order was redeemed. @throws InvalidInput */
  redeem(orderId: string, by?: ChangeAuthor): Promise<OrderOutcome>;
  /** Records that the money of a paid order was paid back; its units go back for sale. @throws InvalidInput */
  refund(orderId: string, by?: ChangeAuthor): Promise<OrderOutcome>;
  /**
   * Notes the shop's own reference (one line, at most 200 characters) or metadata (at most 4,096 bytes) with the order.
   * @throws InvalidInput
   */
  edit(orderId: string, edit: OrderEdit, by?: ChangeAuthor): Promise<OrderOutcome>;
  /**
   * Orders that were paid too late and have to be refunded, the longest due first.
   * @param saleId if absent, of all sales
   * @param query with a `limit` it gets at most so many; `after` is the last order id that you have. @throws InvalidInput
   */
  refundsDue(saleId?: string, query?: PageQuery): Promise<Order[]>;
}

/** Which orders of a sale, and in which order. Times are ISO 8601 with zone. */
export interface NewOrderQuery {
  /** Default: every status. */
  readonly status?: readonly OrderStatus[] | undefined;
  /** Purchased at this time or later, to the second. */
  readonly since?: string | undefined;
  /** Purchased before this time. */
  readonly until?: string | undefined;
  /** Only orders of this buyer. */
  readonly buyer?: string | undefined;
  /** Only orders with this reference of the shop's own. */
  readonly reference?: string | undefined;
  /** Which come first. Default `newest`. */
  readonly order?: 'newest' | 'oldest' | undefined;
  /** `next` of the page before. */
  readonly after?: string | undefined;
  /** Orders in a page, 1 to 1,000. Default 100. */
  readonly limit?: number | undefined;
}

/** Which orders of a sale to export. */
export type NewOrderExport = Pick<NewOrderQuery, 'status' | 'since' | 'until' | 'buyer' | 'reference'> & {
  /** An order id: the export begins after it. */
  readonly after?: string | undefined;
};

/** Which buyer to erase, and where. */
export interface NewErasure {
  readonly buyerId: string;
  /** Default: in all sales. */
  readonly saleId?: string | undefined;
  /**
   * Also in sales that are not closed. Such a sale is rebuilt, so all its buyers wait; then it knows nothing of the buyer: a
   * repeated purchase is a new one. Default false: such sales wait until they are closed.
   */
  readonly running?: boolean | undefined;
}

export interface ShopBuyers {
  /**
   * Replaces a buyer's id by a pseudonym, for good. Neither the actor nor the reason in `by` may name the buyer. May be repeated.
   * Rejects with StoresAway if a store does not answer, and with OperationTimedOut after 40 s although the stores answer.
   * @throws InvalidInput, UnknownSale
   */
  erase(erasure: NewErasure, by?: ChangeAuthor): Promise<ErasureReport>;
}

/** Dead letters: order events that `onOrderEvents`, or the webhook, did not accept in any attempt. */
export interface ShopEvents {
  /** A page, by default the 100 oldest: `next` of it is `after` of the next one. @throws InvalidInput */
  deadLetters(query?: PageQuery): Promise<DeadLetters>;
  /** Queues it to be delivered next. @throws UnknownDeadLetter */
  resendDeadLetter(id: string): Promise<void>;
  /** Queues all of them. @returns how many */
  resendAllDeadLetters(): Promise<number>;
}

/** A shop embedded in this process. It installs no signal handler, and writes to its logger only. */
export interface Shop {
  /**
   * The purchase's outcome, within `requestDeadlineMs`. For values that a buyer may have sent wrong it is `invalid_request`,
   * after `close` it is `unavailable` with a `detail` that says so.
   * @throws InvalidInput if a member has the wrong type, or is not a member of a purchase
   */
  purchase(purchase: NewPurchase): Promise<PurchaseOutcome>;
  /** The queues of sales that have one. */
  readonly places: ShopPlaces;
  readonly sales: ShopSales;
  readonly orders: ShopOrders;
  readonly buyers: ShopBuyers;
  readonly events: ShopEvents;
  /**
   * Resolves with the reason if the shop can't go on: its stores belong to another shop now, PGlite has failed, or another
   * process may use its worker number. The shop has begun to close by then.
   */
  readonly failed: Promise<Error>;
  /** The metrics of sync, expiry, events, queues and Redis, in Prometheus' text format. */
  metrics(): Promise<string>;
  /** Answers what is under way, stops the background work, and closes the stores. May be called again. */
  close(): Promise<void>;
}
