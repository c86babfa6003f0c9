/**
 * Applies batches to Postgres and announces them. Beside a large batch a second one is under way: while the commit of the
 * first waits for the disk, the second does its work (migrations/025-many-sales.sql). Small batches follow each other: a second
 * one would wait for the rows that the first has locked, and the orders that arrive meanwhile would wait for both. If a small
 * batch takes long, because another transaction has locked its rows, the next one starts: it may have orders of other sales.
 *
 *   begun ──> applied ──> announced
 *     ├──the cursors have moved──> an earlier batch was under way: tried once more after it
 *     │                            none was: another sync has applied it; the sale is released, and its cursors are read again
 *     ├──the guard refuses──> piece by piece (apply-each.ts) ──> refused orders removed from the backend ──> announced
 *     └──any other failure──> the loop restarts from the cursors
 *
 * Order: two batches of one segment follow each other, and the cursors let them commit in no other order. If the
 * first fails, the second finds other cursors than it expects, so it can't overtake. Watermarks are announced in the
 * order of commits. A second batch may commit while orders that were refused in the first are still being removed; a
 * node that heard the second watermark too early would find a refused order in the backend, below the cursor.
 */
import type { Rejection } from '../engine/contract.ts';
import { takenAtMs } from '../engine/order-id.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { withTimeout } from '../lib/with-timeout.ts';
import { applyReturnsOf } from '../orders/returns.ts';
import { applyBatch, CursorMoved, GuardRefused } from './apply/apply.ts';
import { applyEach } from './apply/apply-each.ts';
import { type Batch, watermarksOf } from './apply/batch.ts';
import type { SaleLog } from './apply/sale-log.ts';
import type { WatermarkTeller } from './apply/watermark-teller.ts';
import type { HeldSales } from './held/held-sales.ts';
import type { SyncStores } from './held/sync-stores.ts';

const MAX_UNDER_WAY = 2;
/** A batch is large if it has this share of the orders that a batch may have. */
const LARGE_SHARE = 1 / 20;
/** A batch of at least this many orders is large in any case. */
const LARGE_ORDERS = 200;
/** After this time, a small batch lets the next one start beside it, in milliseconds. A commit seldom takes as long. */
const ALONE_MS = 20;

export interface ApplierOptions extends SyncStores {
  /** The most orders that a batch has. */
  readonly batchRows: number;
}

interface UnderWay {
  readonly sales: ReadonlySet<string>;
  /** Resolves when the batch has ended, successfully or not. */
  readonly ended: Promise<void>;
}

export class Applier {
  readonly #stores: SyncStores;
  readonly #teller: WatermarkTeller;
  readonly #sales: HeldSales;
  readonly #onBatchEnd: () => void;
  readonly #underWay = new Set<UnderWay>();
  readonly #largeOrders: number;
  #failure: { readonly error: unknown } | undefined;

  /** @param onBatchEnd called whenever a batch has ended, successfully or not */
  constructor(options: ApplierOptions, teller: WatermarkTeller, sales: HeldSales, onBatchEnd: () => void) {
    this.#stores = options;
    this.#teller = teller;
    this.#sales = sales;
    this.#onBatchEnd = onBatchEnd;
    this.#largeOrders = Math.min(options.batchRows * LARGE_SHARE, LARGE_ORDERS);
  }

  /** Starts a batch. Resolves when another may start. */
  async begin(batch: Batch): Promise<void> {
    for (const { from, to } of batch.slices) this.#sales.held(from.saleId)?.reading(to);
    const before = [...this.#underWay];
    const ended = this.#apply(batch, before)
      .catch((error) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#underWay.delete(own);
        this.#onBatchEnd();
      });
    const own = { sales: salesOf(batch), ended };
    this.#underWay.add(own);
    if (this.#underWay.size >= MAX_UNDER_WAY) await Promise.race(endsOf(this.#underWay));
    if (batch.orders < this.#largeOrders) await withTimeout(ALONE_MS, this.settled()).catch(() => {});
  }

  /** Resolves when all batches have ended. */
  async settled(): Promise<void> {
    await Promise.all(endsOf(this.#underWay));
  }

  /** @throws the error of a failed batch */
  throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }

  /** Resolves when all batches have ended; their errors are discarded. */
  async abandon(): Promise<void> {
    await this.settled();
    this.#failure = undefined;
  }

  async #apply(batch: Batch, before: readonly UnderWay[]): Promise<void> {
    const began = monotonicMs();
    const logs = this.#logsOf(batch);
    let rejected: Map<string, Rejection>;
    try {
      rejected = await this.#applyBehind(batch, before);
    } catch (error) {
      if (error instanceof CursorMoved) return this.#sales.release(salesOf(batch));
      throw error;
    }
    for (const { from, to, entries } of batch.slices) {
      this.#sales.held(from.saleId)?.applied(to, entries.at(-1)!.ordersSoFar);
    }
    const takenFirstAtMs = Math.min(...batch.slices.map(({ entries }) => takenAtMs(entries[0]!.tail)));
    const oldestMs = Date.now() - takenFirstAtMs;
    const { events } = this.#stores;
    events.applied({ orders: batch.orders, oldestMs, tookMs: monotonicMs() - began });
    events.committed?.({ ...batch, beganMs: began, rejected });
    await this.#tell(batch, rejected, logs, before);
  }

  /**
   * Announces a batch after all earlier batches of the same sales. If one of those has failed, or the sale was
   * released, the sync that takes the sale next removes the refused orders and then announces the cursors.
   */
  async #tell(
    batch: Batch,
    rejected: Map<string, Rejection>,
    logs: ReadonlyMap<string, SaleLog | undefined>,
    before: readonly UnderWay[],
  ): Promise<void> {
    await Promise.all(endsOf(before.filter(({ sales }) => [...sales].some((saleId) => logs.has(saleId)))));
    if (this.#failure) return;
    const slices = batch.slices.filter(
      ({ from: { saleId } }) => this.#sales.held(saleId) === logs.get(saleId),
    );
    // Not awaited: the next batch may be read meanwhile.
    void this.#teller.tell(watermarksOf({ ...batch, slices }, rejected));
  }

  #logsOf(batch: Batch): Map<string, SaleLog | undefined> {
    return new Map([...salesOf(batch)].map((saleId) => [saleId, this.#sales.held(saleId)]));
  }

  /** A batch may have failed only because the batch before it had not committed yet, or was refused as a whole. */
  async #applyBehind(batch: Batch, before: readonly UnderWay[]): Promise<Map<string, Rejection>> {
    try {
      await applyBatch(this.#stores.db, batch);
      return new Map();
    } catch (error) {
      if (before.length > 0 && error instanceof CursorMoved) {
        await Promise.all(endsOf(before));
        return this.#applyBehind(batch, []);
      }
      if (!(error instanceof GuardRefused)) throw error;
      // The orders must be judged after all earlier ones.
      await Promise.all(endsOf(before));
      const rejected = await applyEach(this.#stores.db, batch);
      this.#reportRejected(batch, rejected);
      await this.#removeRejected(rejected);
      return rejected;
    }
  }

  #reportRejected(batch: Batch, rejected: ReadonlyMap<string, Rejection>): void {
    const { events } = this.#stores;
    for (const { from, entries } of batch.slices) {
      for (const { orderId } of entries.flatMap((entry) => entry.orders)) {
        const rejection = rejected.get(orderId);
        if (rejection) events.rejected({ saleId: from.saleId, ...rejection });
      }
    }
  }

  /**
   * Removes rejected orders from the backend: each has a return (apply-each.ts). It is awaited before the watermark is
   * announced: otherwise a repeated purchase would find the orders there.
   */
  #removeRejected(rejected: ReadonlyMap<string, Rejection>): Promise<void> {
    const { db, backend } = this.#stores;
    return applyReturnsOf(db, backend, [...rejected.keys()]);
  }
}

function salesOf({ slices }: Batch): Set<string> {
  return new Set(slices.map((slice) => slice.from.saleId));
}

function endsOf(batches: Iterable<UnderWay>): Promise<void>[] {
  return [...batches].map(({ ended }) => ended);
}
