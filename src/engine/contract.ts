/**
 * The contract between the engine and the stores it runs on.
 *
 * Purpose: one set of words and types for what a purchase is, how it can end, and what a backend must do.
 * Goals: a backend can be written from this file, its parts in contract/, and test/contract alone; no type of a store
 * (Redis, Postgres) shows.
 * Non-goals: HTTP, SQL. The engine knows neither.
 *
 * Glossary
 * Selling
 * - sale: a stock of one item, sold in a time window, with a limit per buyer. buyer: who buys, named by `buyerId`.
 * - segment: one of the N parts that a sale's stock is split into, each with its own keys and order log.
 * - home segment of a buyer: `hash(buyerId) mod N`. A buyer's purchases are recorded there and only there: in his record,
 *   which says what he holds.
 * - lane: the queue in one worker in front of one segment. One batch in flight at a time.
 * - take: check the limit, decrement the segment, record the buyer, append to the order log: atomic, a whole batch at once.
 * - ticket: the number of a lane's attempt. A segment refuses a ticket that is not newer than the last one it has
 *   seen from that lane, so that a batch which was given up cannot execute late.
 * - fencing token: the number that a lock hands out, growing with each holder, which a write under the lock must carry.
 * - board: the sold-out board of a node. epoch: a sale's counter of "stock came back" events.
 * - purchase token: leave to buy, for one buyer in one sale and generation, for a short time, where the sale asks for it.
 * - retake: a take of the units of an order that was paid after it had expired.
 * From the backend to Postgres
 * - order log: the append-only log of a segment's takes. entry: one batch in it; its sequence number counts from 1.
 *   tail: the first order id of an entry, which names it. head: a log's newest entry.
 * - hint: the message that a log has grown. It may be lost.
 * - cursor: how far Postgres has applied a segment's log. watermark: the newest cursor that a node knows.
 * - return: units of an order that is no more (cancelled, expired, refunded, rejected), on their way from Postgres back to
 *   its home segment. compensation: their arrival there.
 * Moving units
 * - supplied: the units that were put into a segment, less those that were moved out; always left and taken together.
 * - refill: units moved to an empty home segment because a buyer is waiting there. rebalance: the same move, made by an
 *   operator or a timer. Both are transfers.
 * - movement: a change that an operator made to a sale, a row of the ledger. share: a segment's part of its units.
 * Building
 * - generation: how often a sale's state in the backend has been built from Postgres. stale: of another one, or not there.
 * - rebuild: the next generation. freeze the segments, salvage what their logs still hold into Postgres, load, publish.
 *   recovery: a rebuild that an operator asks for. resize: one with another number of segments.
 * - draft: the records of a segment's next buyers, written beside it while it sells.
 * - parked: of a purchase that waits while its sale is built anew.
 * - lost: of orders that the backend has accepted and has no more, and of a segment where some are missing.
 */
import type { AuditStore } from './contract/audits.ts';
import type { EventStream } from './contract/events.ts';
import type { LogHint, OrderLog, Watermark } from './contract/order-log.ts';
import type { OwnerMark } from './contract/owner.ts';
import type { SaleStore } from './contract/sales.ts';
import type { TakeStore } from './contract/takes.ts';
import type { TransferStore } from './contract/transfers.ts';
import type { BackendCorrupt } from './errors.ts';

export type * from './contract/audits.ts';
export type * from './contract/building.ts';
export type * from './contract/events.ts';
export type * from './contract/holdings.ts';
export * from './contract/order-log.ts';
export type * from './contract/owner.ts';
export type * from './contract/purchase.ts';
export type * from './contract/sale.ts';
export type * from './contract/sales.ts';
export type * from './contract/stock-changes.ts';
export type * from './contract/take-order.ts';
export type * from './contract/takes.ts';
export type * from './contract/transfers.ts';

export interface BackendEvents {
  /** Orders up to here are committed. */
  watermarks?(watermarks: readonly Watermark[]): void;
  /** May be lost. */
  hint?(hint: LogHint): void;
  /** The sale was created, changed, or its epoch was raised. May be lost. */
  saleChanged?(saleId: string): void;
  /** A connection for takes is there again, to a backend that may have gone back meanwhile: nobody's word of before counts. */
  reconnected?(): void;
  /** A message that this version does not send was passed over; not every one of them is told. */
  foreign?(error: BackendCorrupt): void;
}

export interface Backend {
  /** True if the order log outlives this process: only then may a purchase be answered `accepted`. */
  readonly durable: boolean;
  readonly takes: TakeStore;
  readonly sales: SaleStore;
  readonly log: OrderLog;
  readonly transfers: TransferStore;
  /** Missing: other programs can't read from this backend. */
  readonly events?: EventStream;
  readonly audits: AuditStore;
  /** Missing: nobody else can reach this backend. */
  readonly owner?: OwnerMark;
  /** @returns a function that ends the subscription */
  subscribe(events: BackendEvents): Promise<() => Promise<void>>;
  close(): Promise<void>;
}
