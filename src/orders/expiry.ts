/**
 * Expires orders that were not paid in time, so that their units are sold again.
 *
 *   page: expired in one transaction ──committed──> units returned ──page was full──> next page at once
 *     │                                                            └──else──> next page within EXPIRE_EVERY_MS
 *     └─sale was locked──> its orders, in a transaction of their own ──committed──> units returned
 *                            └──still locked after LOCK_WAIT_MS──> the sale is left out of pages for LEFT_OUT_MS, and its
 *                                                                 next wait is twice as long, up to MAX_LOCK_WAIT_MS
 *
 * Several processes may run this at once, one beside each sync: a page skips orders that another process, or a
 * buyer's payment or cancellation, has locked. Only the sales that stay locked are kept in memory: an index of unpaid
 * orders gives those that are due.
 *
 * Crash points: docs/internals/orders.md.
 */
import type { Backend } from '../engine/contract.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { Rounds } from '../lib/rounds.ts';
import type { Database } from '../postgres/database.ts';
import { type ExpiredOrders, expireInSale, expireOrders } from './expire-orders.ts';
import { applyReturnsOf } from './returns.ts';

const PAGE_ORDERS = 500;
const EXPIRE_EVERY_MS = 1_000;
/** A batch of sync locks a sale for some milliseconds. */
const LOCK_WAIT_MS = 500;
/** While commits are slow, each batch of a hot sale locks it for longer, and the next batches wait in line. Its orders must expire too. */
const MAX_LOCK_WAIT_MS = 2_000;
/** How long pages leave out a sale that stayed locked. */
const LEFT_OUT_MS = 30_000;
/** After that, a sale that has no due orders for this time counts as new: it is waited for no longer than LOCK_WAIT_MS again. */
const FORGET_MS = 60_000;
/** Locked sales that are waited for after each page. With more, they would hold up the next page. */
const MAX_WAITS = 2;

export interface ExpiryEvents {
  /** Orders were committed as expired. `overdueMs`: how long the first of them had been due. */
  expired(info: { orders: number; overdueMs: number }): void;
  /** A page, a locked sale, or the return of units failed and is tried again. */
  failed(info: { error: unknown }): void;
}

export interface ExpiryOptions {
  readonly db: Database;
  readonly backend: Backend;
  readonly events: ExpiryEvents;
  /** Orders in one transaction. */
  readonly pageOrders?: number;
  /** How long a sale is left out that stays locked, in milliseconds. */
  readonly leftOutMs?: number;
}

/** A sale that has stayed locked. */
interface Stuck {
  readonly leftOutUntilMs: number;
  /** How long the next attempt waits. */
  readonly waitMs: number;
  /** If it has no due orders until then, it counts as new. */
  readonly forgottenAtMs: number;
}

export class Expiry {
  readonly #options: ExpiryOptions;
  readonly #rounds: Rounds;
  readonly #stuck = new Map<string, Stuck>();

  constructor(options: ExpiryOptions) {
    this.#options = options;
    this.#rounds = new Rounds({
      everyMs: EXPIRE_EVERY_MS,
      round: (signal) => this.#expirePage(signal),
      failed: (error) => options.events.failed({ error }),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  /** Ends after the page, or the wait for a sale, that is under way. */
  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** @returns whether the page was full, so that the next one follows at once */
  async #expirePage(signal: AbortSignal): Promise<boolean> {
    const { db, pageOrders = PAGE_ORDERS } = this.#options;
    const now = monotonicMs();
    for (const [saleId, { forgottenAtMs }] of this.#stuck)
      if (forgottenAtMs <= now) this.#stuck.delete(saleId);
    const leftOut = [...this.#stuck].filter(([, { leftOutUntilMs }]) => leftOutUntilMs > now);
    const page = await expireOrders(
      db,
      pageOrders,
      leftOut.map(([saleId]) => saleId),
    );
    await this.#finish(page);
    for (const [saleId, orderIds] of [...page.locked].slice(0, MAX_WAITS))
      if (!signal.aborted) await this.#expireLocked(saleId, orderIds);
    const found = [...page.locked.values()].reduce((sum, ids) => sum + ids.length, page.orderIds.length);
    return found === pageOrders;
  }

  /** Expires these orders when their sale is free. If it stays locked, pages leave it out for a while. */
  async #expireLocked(saleId: string, orderIds: readonly string[]): Promise<void> {
    const { db, events, leftOutMs = LEFT_OUT_MS } = this.#options;
    const waitMs = this.#stuck.get(saleId)?.waitMs ?? LOCK_WAIT_MS;
    const expired = await expireInSale(db, saleId, orderIds, waitMs);
    if (expired) {
      this.#stuck.delete(saleId);
      return this.#finish(expired);
    }
    const leftOutUntilMs = monotonicMs() + leftOutMs;
    this.#stuck.set(saleId, {
      leftOutUntilMs,
      waitMs: Math.min(waitMs * 2, MAX_LOCK_WAIT_MS),
      forgottenAtMs: leftOutUntilMs + FORGET_MS,
    });
    const error = new Error(
      `another transaction has locked the row of sale ${JSON.stringify(saleId)} in Postgres for more than ${waitMs} ms: ` +
        `${orderIds.length} of its unpaid orders are due, and are tried again in ${leftOutMs / 1_000} s`,
    );
    events.failed({ error });
  }

  /** Reports committed orders, and returns their units. */
  async #finish({ orderIds, dueSince }: ExpiredOrders): Promise<void> {
    if (dueSince === undefined) return;
    const { db, backend, events } = this.#options;
    events.expired({ orders: orderIds.length, overdueMs: Math.max(0, Date.now() - dueSince.getTime()) });
    await applyReturnsOf(db, backend, orderIds);
  }
}
