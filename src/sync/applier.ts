/**
 * Applies batches to Postgres and tells of it, two at a time: while the commit of one waits for the disk, the next one
 * does its work (migrations/004-order-life.sql).
 *
 *   begun ──> applied ──> told
 *     ├──the cursors have moved──> the batch before it was under way: tried once more behind it
 *     │                            else: another sync was here; the sale is let go of, and its cursors are read again
 *     ├──the guard refuses──> order by order (apply-each.ts) ──> refused orders taken back ──> told
 *     └──any other failure──> the loop starts anew from the cursors
 *
 * Order. Two batches of one segment follow on from each other, and the cursors let them commit in no other order. If the
 * first fails, the second finds the cursors elsewhere: it can't get ahead. Watermarks are told in the order of commits: a
 * second batch may be committed while what the first was refused is still being taken back, and who hears its watermark
 * would find the refused order in the backend, below the cursor.
 */
import type { Rejection } from '../engine/contract.ts';
import { takenAtMs } from '../engine/order-id.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { applyReturns } from '../orders/returns.ts';
import { applyBatch, CursorMoved, GuardRefused } from './apply/apply.ts';
import { applyEach } from './apply/apply-each.ts';
import { type Batch, watermarksOf } from './apply/batch.ts';
import type { SaleLog } from './apply/sale-log.ts';
import type { WatermarkTeller } from './apply/watermark-teller.ts';
import type { HeldSales } from './held-sales.ts';
import type { SyncStores } from './sync-stores.ts';

const MAX_UNDER_WAY = 2;

interface UnderWay {
  readonly sales: ReadonlySet<string>;
  /** Resolves when the batch has ended, well or not. */
  readonly ended: Promise<void>;
}

export class Applier {
  readonly #stores: SyncStores;
  readonly #teller: WatermarkTeller;
  readonly #sales: HeldSales;
  readonly #ended: () => void;
  readonly #underWay = new Set<UnderWay>();
  #failure: { readonly error: unknown } | undefined;

  /** @param ended is called whenever a batch has ended, well or not */
  constructor(stores: SyncStores, teller: WatermarkTeller, sales: HeldSales, ended: () => void) {
    this.#stores = stores;
    this.#teller = teller;
    this.#sales = sales;
    this.#ended = ended;
  }

  get isIdle(): boolean {
    return this.#underWay.size === 0;
  }

  /** Begins a batch, and resolves when there is room for another. */
  async begin(batch: Batch): Promise<void> {
    for (const { from, to } of batch.slices) this.#sales.held(from.saleId)?.reading(to);
    const before = [...this.#underWay];
    const ended = this.#apply(batch, before)
      .catch((error) => {
        this.#failure ??= { error };
      })
      .finally(() => {
        this.#underWay.delete(own);
        this.#ended();
      });
    const own = { sales: salesOf(batch), ended };
    this.#underWay.add(own);
    if (this.#underWay.size >= MAX_UNDER_WAY) await Promise.race(endsOf(this.#underWay));
  }

  /** Resolves when all batches have ended. */
  async settled(): Promise<void> {
    await Promise.all(endsOf(this.#underWay));
  }

  /** @throws what a batch has failed with */
  throwFailure(): void {
    if (this.#failure) throw this.#failure.error;
  }

  /** Resolves when all batches have ended; what they failed with is no longer of interest. */
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
      if (error instanceof CursorMoved) return this.#sales.forget(salesOf(batch));
      throw error;
    }
    for (const { from, to, entries } of batch.slices) {
      this.#sales.held(from.saleId)?.applied(to, entries.at(-1)!.ordersSoFar);
    }
    const oldestMs = Date.now() - takenAtMs(batch.slices[0]!.entries[0]!.tail);
    this.#stores.events.applied({ orders: batch.orders, oldestMs, tookMs: monotonicMs() - began });
    await this.#tell(batch, rejected, logs, before);
  }

  /**
   * Behind all batches of these sales that were begun before. If one of them has failed, or the sale was let go of, it is
   * whoever takes the sale up next who takes back what was refused, and then tells the cursors.
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

  /** What stood in the way of a batch may be that the one before it was not through yet, or was refused as a whole. */
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
      // Refused order by order, it must be judged by all that came before.
      await Promise.all(endsOf(before));
      const rejected = await applyEach(this.#stores.db, batch);
      await this.#takeBack(batch, rejected);
      return rejected;
    }
  }

  /** Before the watermark tells of it, the backend must have forgotten a rejected order: a replay would find it. */
  async #takeBack(batch: Batch, rejected: ReadonlyMap<string, Rejection>): Promise<void> {
    const { db, backend, events } = this.#stores;
    for (const { from, entries } of batch.slices) {
      for (const { orderId } of entries.flatMap((entry) => entry.orders)) {
        const rejection = rejected.get(orderId);
        if (rejection) events.rejected({ saleId: from.saleId, ...rejection });
      }
    }
    for (const saleId of salesOf(batch)) await applyReturns(db, backend, saleId);
  }
}

function salesOf({ slices }: Batch): Set<string> {
  return new Set(slices.map((slice) => slice.from.saleId));
}

function endsOf(batches: Iterable<UnderWay>): Promise<void>[] {
  return [...batches].map(({ ended }) => ended);
}
