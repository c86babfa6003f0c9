/**
 * Expires orders that were not paid in time, so that their units are sold again.
 *
 *   page: expired in one transaction ──committed──> units returned ──page was full──> next page at once
 *                                                                  └──else──> next page within EXPIRE_EVERY_MS
 *
 * Several processes may run this at once, one beside each sync: a page skips orders that another process, or a
 * buyer's payment or cancellation, has locked. Nothing is kept in memory: an index of unpaid orders gives those that
 * are due.
 *
 * Crash points: docs/internals/orders.md.
 */
import type { Backend } from '../engine/contract.ts';
import { Rounds } from '../lib/rounds.ts';
import type { Database } from '../postgres/database.ts';
import { expireOrders } from './order-changes.ts';
import { applyReturnsOf } from './returns.ts';

const PAGE_ORDERS = 500;
const EXPIRE_EVERY_MS = 1_000;

export interface ExpiryEvents {
  /** A page was committed. `overdueMs`: how long the first of its orders had been due. */
  expired(info: { orders: number; overdueMs: number }): void;
  /** A page, or the return of its units, failed and is tried again. */
  failed(info: { error: unknown }): void;
}

export interface ExpiryOptions {
  readonly db: Database;
  readonly backend: Backend;
  readonly events: ExpiryEvents;
  /** Orders in one transaction. */
  readonly pageOrders?: number;
}

export class Expiry {
  readonly #options: ExpiryOptions;
  readonly #rounds: Rounds;

  constructor(options: ExpiryOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      everyMs: EXPIRE_EVERY_MS,
      round: () => this.#expirePage(),
      failed: (error) => options.events.failed({ error }),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  /** Ends after the page under way. */
  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** @returns whether the page was full, so that the next one follows at once */
  async #expirePage(): Promise<boolean> {
    const { db, backend, events, pageOrders = PAGE_ORDERS } = this.#options;
    const { orderIds, dueSince } = await expireOrders(db, pageOrders);
    if (dueSince === undefined) return false;
    events.expired({ orders: orderIds.length, overdueMs: Math.max(0, Date.now() - dueSince.getTime()) });
    await applyReturnsOf(db, backend, orderIds);
    return orderIds.length === pageOrders;
  }
}
