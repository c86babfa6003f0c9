/**
 * Sync: carries every order from the order logs into Postgres.
 *
 * A loop of: read the logs that have grown -> apply one batch in one transaction -> tell the watermarks, trim the logs.
 * While a batch commits, the next one grows in the logs, as in a lane. Hints say which logs have grown (hints.ts); a slow
 * sweep over all sales makes up for lost hints (sweep.ts). Which sales this sync works on, and what becomes of one that
 * is at fault, is in held-sales.ts; rebuilds run beside the loop (rebuilds.ts).
 *
 * Crash points. Before the transaction: nothing has happened. Between it and the trim: the cursors know; the entries
 * are below them and are never read again, and the next `advance` trims them. A second sync on the same sale: its cursors
 * have moved, its transaction fails, it reads the cursors again.
 */
import type { LogRead, Rejection } from '../engine/contract.ts';
import { monotonicMs } from '../engine/monotonic.ts';
import { takenAtMs } from '../engine/order-id.ts';
import { applyBatch, CursorMoved, GuardRefused } from './apply.ts';
import { applyEach } from './apply-each.ts';
import { type Batch, batchOf, watermarksOf } from './batch.ts';
import { HeldSales } from './held-sales.ts';
import { Hints } from './hints.ts';
import { checkChain } from './log-chain.ts';
import { applyReturns } from './returns.ts';
import { Sweep } from './sweep.ts';
import type { SyncStores } from './sync-stores.ts';
import { WatermarkTeller } from './watermark-teller.ts';

const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 5_000;
const MAX_READ_ENTRIES = 1_000;
/** Before anything is known of the size of entries. */
const FIRST_ORDERS_PER_ENTRY = 16;

export interface SyncOptions extends SyncStores {
  /** Orders in one transaction. */
  readonly batchRows: number;
}

export class Sync {
  readonly #options: SyncOptions;
  readonly #hints = new Hints();
  readonly #teller: WatermarkTeller;
  readonly #sales: HeldSales;
  readonly #sweep: Sweep;
  #ordersPerEntry = FIRST_ORDERS_PER_ENTRY;
  #stopping = false;
  #running: Promise<void> | undefined;
  #unsubscribe: (() => Promise<void>) | undefined;

  constructor(options: SyncOptions) {
    this.#options = options;
    this.#teller = new WatermarkTeller(options.backend.log);
    this.#sales = new HeldSales(options, this.#teller, this.#hints);
    this.#sweep = new Sweep(options, this.#teller, this.#sales);
  }

  /** Resolves after the first sweep and its rebuilds: every sale that is not closed is in the backend then. */
  get ready(): Promise<void> {
    return this.#sweep.ready;
  }

  async start(): Promise<void> {
    this.#unsubscribe = await this.#options.backend.subscribe({
      hint: (saleId, segments) => this.#hints.add(saleId, segments),
    });
    this.#running = this.#keepRunning();
  }

  /** Ends after the batch and the rebuilds under way. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#hints.close();
    await this.#running;
    await this.#unsubscribe?.();
    await this.#sales.stop();
  }

  async #keepRunning(): Promise<void> {
    let retryMs = RETRY_FIRST_MS;
    while (!this.#stopping) {
      try {
        await this.#step();
        retryMs = RETRY_FIRST_MS;
      } catch (error) {
        this.#options.events.crashed({ error, retryMs });
        await this.#sweep.reportBacklog();
        await this.#sales.forget();
        await this.#hints.sleep(retryMs, 'deaf');
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
    }
    await this.#teller.settled;
  }

  async #step(): Promise<void> {
    if (this.#sweep.dueInMs <= 0) await this.#sweep.run();
    for (const [saleId, segments] of this.#hints.takeAll()) {
      await this.#sales.apart(saleId, async () => (await this.#sales.logOf(saleId))?.grow(segments));
    }
    const batch = batchOf(await this.#read(), this.#options.batchRows);
    if (batch.orders > 0) await this.#apply(batch);
    else if (this.#hints.isEmpty && !this.#sales.haveGrown) await this.#hints.sleep(this.#sweep.dueInMs);
  }

  /** Reads the logs that have grown. One in which something was found counts as grown still: there may be more. */
  async #read(): Promise<LogRead[]> {
    const positions = [...this.#sales.logs].flatMap((log) => log.takeGrown());
    const entries = Math.ceil(this.#options.batchRows / Math.max(positions.length, 1) / this.#ordersPerEntry);
    const reads = await this.#options.backend.log.readLog(positions, Math.min(entries, MAX_READ_ENTRIES));
    const sound: LogRead[] = [];
    for (const read of reads) {
      const { saleId, segment } = read.position;
      const log = this.#sales.held(saleId);
      if (!log) continue;
      const verdict = checkChain(read);
      if (!verdict.ok) {
        await this.#sales.apart(saleId, () => this.#sales.broken(read, verdict.problem));
        continue;
      }
      log.sawHead(segment, read.head!);
      if (read.entries.length > 0) log.grow([segment]);
      sound.push(read);
    }
    return sound.filter((read) => this.#sales.held(read.position.saleId));
  }

  async #apply(batch: Batch): Promise<void> {
    const { db, events } = this.#options;
    const began = monotonicMs();
    let rejected = new Map<string, Rejection>();
    try {
      await applyBatch(db, batch);
    } catch (error) {
      if (error instanceof CursorMoved) return this.#sales.forget(salesOf(batch));
      if (!(error instanceof GuardRefused)) throw error;
      rejected = await applyEach(db, batch);
      await this.#takeBack(batch, rejected);
    }
    this.#noteApplied(batch);
    // Not awaited: the next batch may be read meanwhile.
    void this.#teller.tell(watermarksOf(batch, rejected));
    const oldestMs = Date.now() - takenAtMs(batch.slices[0]!.entries[0]!.tail);
    events.applied({ orders: batch.orders, oldestMs, tookMs: monotonicMs() - began });
  }

  /** Before the watermark tells of it, the backend must have forgotten a rejected order: a replay would find it. */
  async #takeBack(batch: Batch, rejected: ReadonlyMap<string, Rejection>): Promise<void> {
    for (const { from, entries } of batch.slices) {
      for (const { orderId } of entries.flatMap((entry) => entry.orders)) {
        const rejection = rejected.get(orderId);
        if (rejection) this.#options.events.rejected({ saleId: from.saleId, ...rejection });
      }
    }
    for (const saleId of salesOf(batch)) await applyReturns(this.#options.db, this.#options.backend, saleId);
  }

  #noteApplied(batch: Batch): void {
    let entries = 0;
    for (const slice of batch.slices) {
      this.#sales.held(slice.from.saleId)?.applied(slice.to, slice.entries.at(-1)!.ordersSoFar);
      entries += slice.entries.length;
    }
    this.#ordersPerEntry = Math.max(1, (this.#ordersPerEntry * 3 + batch.orders / entries) / 4);
  }
}

function salesOf({ slices }: Batch): Set<string> {
  return new Set(slices.map((slice) => slice.from.saleId));
}
