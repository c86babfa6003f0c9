/**
 * The contract between the engine and the stores it runs on.
 *
 * Purpose: the vocabulary and the types: what a purchase is, how it can end, and what a backend must do.
 * Goals: a backend can be written from this file, its parts in contract/, and test/contract alone. No type of a store
 * (Redis, Postgres) appears.
 * Non-goals: HTTP, SQL. The engine knows neither.
 *
 * Glossary
 *
 * Selling
 * - sale: the stock of one item, sold in a time window, with a limit per buyer. buyer: a customer, named by
 *   `buyerId`.
 * - segment: one of the N parts that a sale's stock is split into, each with its own keys and order log.
 * - home segment of a buyer: `hash(buyerId) mod N`. The segment keeps the buyer's record, which lists the orders that
 *   the buyer holds; no other segment does.
 * - lane: the queue in one worker in front of one segment. One batch is under way at a time.
 * - take: one atomic step for a whole batch: check the limits, decrement the segment, record the buyers, append to
 *   the order log.
 * - ticket: the number of a lane's attempt. A segment refuses a ticket that is not newer than the last one it has
 *   seen from that lane, so that an abandoned batch cannot execute late.
 * - fencing token: a number that grows with each holder of a lock. A write under the lock must carry it.
 * - board: the sold-out board of a node. epoch: a sale's counter. It rises whenever units come back, at each change of the
 *   sale's state or rules, and at each publication.
 * - rules: what decides, besides the stock, who may buy: window, purchase token, limit per buyer, queue. Each take names the
 *   rules by which its orders were admitted.
 * - purchase token: permission for one buyer to buy in one sale and generation for a short time. Some sales require
 *   it.
 * - retake: a take of the units of an order that was paid after it had expired.
 * From the backend to Postgres
 * - order log: the append-only log of a segment's takes. entry: one batch in it; its sequence number counts from 1.
 *   tail: the first order id of an entry; it identifies the entry. head: a log's newest entry.
 * - hint: the message that a log has grown. It may be lost.
 * - cursor: how far Postgres has applied a segment's log. watermark: the message that says so; it names the entries.
 * - return: units of an order that has ended (cancelled, expired, refunded, rejected), on their way from Postgres
 *   back to its home segment. compensation: the step that puts them there.
 * Moving units
 * - supplied: the units put into a segment, minus those moved out. Always equal to `left` + `taken`.
 * - transfer: a move of units between segments. refill: a transfer to a home segment that has too few units for a buyer
 *   who waits there. rebalance: transfers that an operator or a timer starts.
 * - movement: an operator's change of a sale, one row of the ledger. share: one segment's part of its units.
 * Building
 * - generation: how often a sale's state in the backend has been built from Postgres. stale: of another generation,
 *   or missing.
 * - rebuild: building the next generation: freeze the segments, salvage what their logs still hold into Postgres,
 *   load, publish. recovery: a rebuild that an operator asks for. resize: a rebuild with another number of
 *   segments.
 * - archived: said of a closed sale that is in Postgres alone. tombstone: what stays of its record for a day.
 * - draft: the buyers' records of a segment's next generation, written beside the segment while it sells.
 * - parked: said of a purchase that waits while its sale is rebuilt.
 * - lost: said of an order that the backend accepted and no longer has, and of a segment that misses such orders.
 */
import type { AuditStore } from './contract/audits.ts';
import type { EventStream } from './contract/events.ts';
import type { LogHint, OrderLog, Watermark } from './contract/order-log.ts';
import type { OwnerMark } from './contract/owner.ts';
import type { SaleStore } from './contract/sales.ts';
import type { SyncChannel, SyncNews } from './contract/sync-news.ts';
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
export type * from './contract/sync-news.ts';
export type * from './contract/take-order.ts';
export type * from './contract/takes.ts';
export type * from './contract/transfers.ts';

export interface BackendEvents {
  /** Orders up to here are committed. */
  watermarks?(watermarks: readonly Watermark[]): void;
  /** May be lost. */
  hint?(hint: LogHint): void;
  /** A sync has told its news. May be lost, late or repeated. */
  syncNews?(news: SyncNews): void;
  /** The sale was created or changed, or its epoch was raised. May be lost. */
  saleChanged?(saleId: string): void;
  /**
   * A connection for takes is back. The backend may have lost writes meanwhile, so earlier observations no longer
   * count.
   */
  reconnected?(): void;
  /** The subscription was interrupted: messages may have been lost. */
  resubscribed?(): void;
  /** A message that this version does not send was ignored. Not every such message is reported. */
  foreign?(error: BackendCorrupt): void;
}

export interface Backend {
  /** True if the order log outlives this process: only then may a purchase be answered `accepted`. */
  readonly durable: boolean;
  /** Whether the segments of a sale are on several servers, each of which may lose writes alone. Missing: no. */
  readonly isSpread?: boolean;
  readonly takes: TakeStore;
  readonly sales: SaleStore;
  readonly log: OrderLog;
  readonly transfers: TransferStore;
  /** Missing: other programs can't read events from this backend. */
  readonly events?: EventStream;
  readonly audits: AuditStore;
  /** Missing: no other process can reach this backend. */
  readonly owner?: OwnerMark;
  /** Missing: no other sync can reach this backend. */
  readonly syncs?: SyncChannel;
  /** @returns a function that ends the subscription */
  subscribe(events: BackendEvents): Promise<() => Promise<void>>;
  close(): Promise<void>;
}
