/** A shop in the own process, as its program sees it: what is bought, and what operators do. */
import type { Outcome } from '../engine/contract.ts';
import type { DeadLetters } from '../operations/event-operations.ts';
import type { Order, OrderOutcome, PayType } from '../operations/order-operations.ts';
import type { RebalanceOptions, RebalanceReport } from '../operations/rebalance-operations.ts';
import type { Recovery } from '../operations/recover-operations.ts';
import type { LedgerEntry, SaleStatus, VerifyOptions, VerifyReport } from '../operations/sale-operations.ts';

/** What a buyer asks for. */
export interface NewPurchase {
  readonly saleId: string;
  /** Who buys: 1 to 128 visible ASCII characters. */
  readonly buyerId: string;
  /** Units, 1 to the sale's limit per buyer; all or nothing. Default 1. */
  readonly quantity?: number | undefined;
  /**
   * An idempotency key of this purchase, 1 to 128 visible ASCII characters, not beginning with `retake:`. The same key again
   * gives the same answer. Without one, nobody can find out what became of a purchase that ended `unknown`.
   */
  readonly key?: string | undefined;
  /** False: be content with `accepted`, the order's entry in Redis' log. Without Redis every order is awaited. Default true. */
  readonly awaitCommit?: boolean | undefined;
}

/**
 * How a purchase ended. `committed` and `accepted` have bought; `unknown` may have: ask again with the same key. All others
 * have left no order. Times are milliseconds since the Unix epoch.
 */
export type PurchaseOutcome = Exclude<Outcome, { code: 'token_required' | 'token_invalid' }>;

/** A sale that is to be created. Times are ISO 8601 with zone. */
export interface NewSale {
  /** 1 to 64 letters, digits, dots, dashes or underscores, beginning with a letter or digit. */
  readonly id: string;
  /** Units for sale, 1 to 2,147,483,648. */
  readonly stock: number;
  /** One line of at most 200 characters. */
  readonly title?: string | undefined;
  /** Parts that the stock is kept in, 1 to 1,024. Default 8. */
  readonly segments?: number | undefined;
  /** Default: now. */
  readonly startsAt?: string | undefined;
  /** Default: no end. */
  readonly endsAt?: string | undefined;
  /** Units that one buyer may have, 1 to 1,000. Default 1. */
  readonly perBuyerLimit?: number | undefined;
  /** Whether buyers at a node's port have to show a purchase token. Default false. */
  readonly requireToken?: boolean | undefined;
  /** After so many seconds, 1 to 31,536,000, an order that is not paid expires. Default: never. */
  readonly payWithinSeconds?: number | undefined;
  /** In the currency's minor unit, a whole number from 0. */
  readonly priceMinor?: number | undefined;
  readonly faceValueMinor?: number | undefined;
  /** ISO 4217, such as `EUR`. */
  readonly currency?: string | undefined;
  /** One line of at most 128 characters. */
  readonly shopId?: string | undefined;
  /** At most 16,384 bytes as JSON. */
  readonly metadata?: Readonly<Record<string, unknown>> | undefined;
}

/** A change of a sale that lives. Times are ISO 8601 with zone. */
export type NewSaleChange =
  | { readonly action: 'pause' | 'resume' | 'close' }
  | { readonly action: 'top-up' | 'withdraw'; readonly units: number }
  | { readonly action: 'resize'; readonly segments: number }
  | { readonly action: 'require-token'; readonly requireToken: boolean }
  /** What is left out stays; an end of `null` is taken away. */
  | { readonly action: 'window'; readonly startsAt?: string; readonly endsAt?: string | null };

/** Who makes a change, and why: kept in the sale's ledger, or with the order. */
export interface ChangeAuthor {
  /** 1 to 200 printable ASCII characters. Default `shop`. */
  readonly actor?: string | undefined;
  /** One line of at most 500 characters. */
  readonly reason?: string | undefined;
}

/**
 * What operators do with sales. Each rejects with UnknownSale for a sale that is not there, with StoresAway or
 * OperationTimedOut if a store does not answer: a change may be made all the same then, so look at the sale first.
 */
export interface ShopSales {
  /** @throws InvalidInput with all faults at once, SaleExists */
  create(sale: NewSale, by?: ChangeAuthor): Promise<SaleStatus>;
  list(): Promise<SaleStatus[]>;
  show(saleId: string): Promise<SaleStatus>;
  /** What is so already is no change. @throws InvalidInput, WrongState, InsufficientStock */
  change(saleId: string, change: NewSaleChange, by?: ChangeAuthor): Promise<SaleStatus>;
  /** The creation, then all changes, the newest last. */
  ledger(saleId: string): Promise<LedgerEntry[]>;
  /** Whether every unit is accounted for, in both stores. */
  verify(saleId: string, options?: VerifyOptions): Promise<VerifyReport>;
  /** Evens out what the segments have left. */
  rebalance(saleId: string, options?: Partial<RebalanceOptions>): Promise<RebalanceReport>;
  /** Builds the sale anew from Postgres, if that is not under way. Does not wait for the end. */
  recover(saleId: string): Promise<Recovery>;
  /** How far that is. */
  recovery(saleId: string): Promise<Recovery>;
}

/**
 * What happens to orders after their purchase. Changes may be repeated: what was done before is answered as the first time.
 * Nothing looks at whose order it is: compare `order.buyerId` before you let a buyer change it. Each rejects with StoresAway
 * or OperationTimedOut if a store does not answer.
 */
export interface ShopOrders {
  show(orderId: string): Promise<OrderOutcome>;
  /** @throws InvalidInput */
  pay(orderId: string, payType: PayType, by?: ChangeAuthor): Promise<OrderOutcome>;
  /** An unpaid order; its units are for sale again. @throws InvalidInput */
  cancel(orderId: string, by?: ChangeAuthor): Promise<OrderOutcome>;
  /** A paid order. @throws InvalidInput */
  redeem(orderId: string, by?: ChangeAuthor): Promise<OrderOutcome>;
  /** Notes that the money of a paid order went back; its units are for sale again. @throws InvalidInput */
  refund(orderId: string, by?: ChangeAuthor): Promise<OrderOutcome>;
  /** Orders that were paid too late and whose money has to go back, at most 1,000. @param saleId missing: of all sales */
  refundsDue(saleId?: string): Promise<Order[]>;
}

/** Order events that `onOrderEvents`, or the webhook, has not taken. */
export interface ShopEvents {
  deadLetters(): Promise<DeadLetters>;
  /** It is delivered next. @throws UnknownDeadLetter */
  resendDeadLetter(id: string): Promise<void>;
  /** @returns how many are delivered again */
  resendAllDeadLetters(): Promise<number>;
}

/** A shop in this process. It installs no signal handler, and writes to its logger alone. */
export interface Shop {
  /**
   * The purchase's outcome, within `requestDeadlineMs`. What a buyer may have sent wrong is the outcome `invalid_request`;
   * after `close` it is `unavailable`.
   * @throws InvalidInput if a member has the wrong type, or is none of a purchase
   */
  purchase(purchase: NewPurchase): Promise<PurchaseOutcome>;
  readonly sales: ShopSales;
  readonly orders: ShopOrders;
  readonly events: ShopEvents;
  /**
   * Resolves with the reason if the shop can't go on: its stores have become another shop's, PGlite has ended, or its worker
   * number is another process's. The shop has begun to close by then.
   */
  readonly failed: Promise<Error>;
  /** Metrics in Prometheus' text format: of sync, expiry, events and Redis. */
  metrics(): Promise<string>;
  /** Answers what is under way, stops the work in the background, and lets go of the stores. May be called again. */
  close(): Promise<void>;
}
