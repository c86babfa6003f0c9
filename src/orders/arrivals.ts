/**
 * Decides whether an order that is not in Postgres can still arrive there. An accepted order is in the log of a
 * segment, where only the buyer's id would find it. But every order that any client knows of by now is at or before
 * the newest entry of some log. So:
 *
 *   each log's newest entry noted ──all of them are in Postgres──> an order that is not in Postgres does not exist
 *                                 └──not within ARRIVAL_WAIT_MS──> unknown
 *
 * If a sale is rebuilt meanwhile, its old logs were salvaged first, so they count as arrived. Nothing is changed, so
 * there is nothing to repair if the process dies.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Backend, LogHint } from '../engine/contract.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { Database } from '../postgres/database.ts';
import { readSale } from '../sales/sale-rows.ts';
import { type RecentSale, readRecentSales } from './recent-sales.ts';

/** Sync needs some milliseconds, or some seconds under load. The caller may ask again. */
const ARRIVAL_WAIT_MS = 2_000;
const POLL_MS = 20;
const PARALLEL_SALES = 16;

export class Arrivals {
  readonly #db: Database;
  readonly #backend: Backend;
  readonly #hint: (hint: LogHint) => void;
  readonly #sales: (db: Database) => Promise<readonly RecentSale[]>;
  #running: Promise<boolean> = Promise.resolve(true);
  #next: Promise<boolean> | undefined;

  /**
   * @param hint notifies sync that a caller waits for a log; without it sync reads the logs on its own schedule
   * @param sales reads the sales whose logs are looked at
   */
  constructor(
    db: Database,
    backend: Backend,
    hint: (hint: LogHint) => void = () => {},
    sales: (db: Database) => Promise<readonly RecentSale[]> = readRecentSales,
  ) {
    this.#db = db;
    this.#backend = backend;
    this.#hint = hint;
    this.#sales = sales;
  }

  /**
   * Whether all orders of these sales that were accepted before this call are in Postgres. False: unknown. However many callers ask,
   * one check runs, and at most one more is queued.
   * @throws the stores' errors
   */
  caughtUp(): Promise<boolean> {
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        this.#running = this.#check();
        return this.#running;
      });
    return this.#next;
  }

  async #check(): Promise<boolean> {
    const deadline = monotonicMs() + ARRIVAL_WAIT_MS;
    const sales = await this.#sales(this.#db);
    const arrived = await pLimit(PARALLEL_SALES).map(sales, (sale) => this.#hasArrived(sale, deadline));
    return arrived.every((all) => all);
  }

  async #hasArrived({ id, segments, generation }: RecentSale, deadline: number): Promise<boolean> {
    let upTo: readonly number[] | undefined;
    for (;;) {
      const found = await this.#backend.sales.snapshot(id, segments, generation);
      const logs = found.flatMap(({ counters }) => counters ?? []);
      if (logs.length === segments) {
        upTo ??= logs.map(({ seq }) => seq);
        const behind = logs.flatMap(({ committed }, segment) =>
          committed < upTo![segment]! ? [segment] : [],
        );
        if (behind.length === 0) return true;
        this.#hint({ saleId: id, segments: behind, awaited: true });
      } else if (await this.#isRebuilt(id, generation)) return true;
      if (monotonicMs() >= deadline) return false;
      await delay(POLL_MS);
    }
  }

  async #isRebuilt(saleId: string, generation: number): Promise<boolean> {
    const row = await readSale(this.#db, saleId);
    return row !== undefined && row.generation > generation;
  }
}
