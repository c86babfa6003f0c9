/**
 * Sync carries every order from the order logs into Postgres.
 *
 * It is a loop: read the logs that have grown -> apply a batch in one transaction, announce the watermarks, trim the
 * logs (applier.ts). While a batch commits, the next one grows in the logs, as in a lane. Hints name the logs that
 * have grown (hints.ts); sweeps over all sales cover lost hints (reconciler.ts). held-sales.ts has the sales
 * that this sync works on, and handles faulty ones; sale-shares.ts divides them among several syncs; rebuilds run
 * beside the loop (rebuilds.ts). lib/backpressure.ts decides when the loop yields the processor to buyers.
 *
 * Crash points, and what a second sync on the same sale does: docs/internals/log-and-sync.md.
 */
import type { KnownEntry, LogRead } from '../engine/contract.ts';
import { Backpressure, type BackpressureOptions } from '../lib/backpressure.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { Applier } from './applier.ts';
import { type Batch, batchOf } from './apply/batch.ts';
import { checkChain } from './apply/log-chain.ts';
import { WatermarkTeller } from './apply/watermark-teller.ts';
import { HeldSales } from './held/held-sales.ts';
import { Hints } from './held/hints.ts';
import type { SyncStores } from './held/sync-stores.ts';
import { Rebalancer } from './rebalancer.ts';
import { Reconciler } from './reconciler/reconciler.ts';
import { SaleShares } from './sale-shares.ts';

const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 1_000;
const MAX_READ_ENTRIES = 1_000;
/** While sync yields to buyers, it checks this often whether it still may. */
const YIELD_STEP_MS = 50;
/** Estimate that is used until the first batch was read. */
const FIRST_ORDERS_PER_ENTRY = 16;

export interface SyncOptions extends SyncStores {
  /** Orders in one transaction. */
  readonly batchRows: number;
  /** Pause between two rounds of the rebalancer, in milliseconds; 0 or missing: it never runs. */
  readonly rebalanceEveryMs?: number;
  /** Missing: sync never yields to buyers. */
  readonly backpressure?: BackpressureOptions | undefined;
}

export class Sync {
  readonly #options: SyncOptions;
  readonly #hints = new Hints();
  readonly #teller: WatermarkTeller;
  readonly #sales: HeldSales;
  readonly #shares: SaleShares;
  readonly #reconciler: Reconciler;
  readonly #applier: Applier;
  readonly #rebalancer: Rebalancer;
  readonly #backpressure: Backpressure;
  #ordersPerEntry = FIRST_ORDERS_PER_ENTRY;
  #isBehind = false;
  #stopping = false;
  #running: Promise<void> | undefined;
  #unsubscribe: (() => Promise<void>) | undefined;

  constructor(options: SyncOptions) {
    this.#options = options;
    this.#backpressure = new Backpressure(options.backpressure ?? { isLoadHigh: () => false, maxMs: 0 });
    this.#teller = new WatermarkTeller(options.backend.log, (error) => options.events.untold({ error }));
    this.#sales = new HeldSales(options, this.#teller, this.#hints);
    this.#shares = new SaleShares(options.backend.syncs, this.#sales, () => this.#hints.notify());
    this.#reconciler = new Reconciler(
      options,
      this.#teller,
      this.#sales,
      () => this.#hints.wake(),
      () => this.#backpressure.awaited(monotonicMs()),
    );
    this.#applier = new Applier(options, this.#teller, this.#sales, () => this.#hints.wake());
    this.#rebalancer = new Rebalancer(options, this.#sales, options.rebalanceEveryMs ?? 0);
  }

  /**
   * Resolves after the first sweep and its rebuilds: then every sale that is not closed is in the
   * backend.
   */
  get ready(): Promise<void> {
    return this.#reconciler.ready;
  }

  /** Whether the logs fill the batches, so that orders wait for sync. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  async start(): Promise<void> {
    this.#unsubscribe = await this.#options.backend.subscribe({
      hint: ({ saleId, segments, awaited }) => {
        if (awaited) this.#backpressure.awaited(monotonicMs());
        if (this.#sales.mayTake(saleId)) this.#hints.add(saleId, segments, awaited);
      },
      resubscribed: () => this.#reconciler.hintsLost(),
      syncNews: (news) => this.#shares.hear(news),
      foreign: (error) => this.#options.events.foreign({ error }),
    });
    this.#running = this.#keepRunning();
    this.#rebalancer.start();
  }

  /** Ends after the batches and the rebuilds under way. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#hints.close();
    await Promise.all([this.#running, this.#rebalancer.stop()]);
    await this.#unsubscribe?.();
    await this.#reconciler.stop();
    await this.#sales.stop();
  }

  async #keepRunning(): Promise<void> {
    let retryMs = RETRY_FIRST_MS;
    while (!this.#stopping) {
      try {
        await this.#step();
        retryMs = RETRY_FIRST_MS;
      } catch (error) {
        await this.#applier.abandon();
        this.#options.events.crashed({ error, retryMs });
        await this.#reconciler.abandon();
        await this.#reconciler.reportBacklog();
        await this.#sales.release();
        await this.#hints.sleep(retryMs, 'none');
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
    }
    await this.#applier.settled();
    await this.#reconciler.abandon();
    await this.#teller.settled;
  }

  async #step(): Promise<void> {
    this.#applier.throwFailure();
    if (this.#reconciler.dueInMs <= 0) await this.#reconciler.advance(() => this.#applier.settled());
    await this.#shares.advance(() => this.#quiet());
    const idle = this.#hints.isEmpty && !this.#sales.haveGrown;
    if (!idle && this.#backpressure.mayYield(monotonicMs())) {
      await this.#hints.sleep(Math.min(YIELD_STEP_MS, this.#reconciler.dueInMs), 'awaited');
      return;
    }
    const hinted = this.#hints.takeAll();
    await this.#sales.takeOver(hinted.keys());
    for (const [saleId, segments] of hinted) this.#sales.held(saleId)?.grow(segments);
    const { reads, isAll } = await this.#read();
    const batch = batchOf(reads, this.#options.batchRows);
    this.#isBehind = !isAll || batch.orders >= this.#options.batchRows / 2;
    if (!this.#isBehind) this.#backpressure.drained();
    if (batch.orders > 0) {
      this.#noteSizes(batch);
      await this.#applier.begin(batch);
    } else if (this.#hints.isEmpty && !this.#sales.haveGrown) {
      await this.#hints.sleep(this.#reconciler.dueInMs);
    }
  }

  /** Resolves when all batches have ended, and what they announce has been sent. */
  async #quiet(): Promise<void> {
    await this.#applier.settled();
    await this.#teller.settled;
  }

  /**
   * Reads logs that have grown, only as many as fill a batch: with hundreds of logs, the rest would be read again for
   * every batch. A log with entries counts as grown until a batch has reached its end (SaleLog.reading); later
   * entries come with new hints.
   * @returns what may go into a batch, and whether all logs that have grown were read
   */
  async #read(): Promise<{ reads: LogRead[]; isAll: boolean }> {
    const entriesOfBatch = Math.ceil(this.#options.batchRows / this.#ordersPerEntry);
    const positions = this.#sales.takeGrown(entriesOfBatch);
    const entries = Math.ceil(entriesOfBatch / Math.max(positions.length, 1));
    const known = positions.map(({ saleId, segment }) => this.#sales.held(saleId)?.newest[segment]);
    const reads = await this.#options.backend.log.readLog(positions, Math.min(entries, MAX_READ_ENTRIES));
    const sound: LogRead[] = [];
    for (const [i, read] of reads.entries()) {
      const { saleId, segment } = read.position;
      const log = this.#sales.held(saleId);
      if (!log) continue;
      if (isOvertaken(read, known[i], log.newest[segment]!)) {
        log.grow([segment]);
        continue;
      }
      const verdict = checkChain(read, log.newest[segment], log.older[segment]);
      if (!verdict.ok) {
        // The cursors in Postgres decide whether the log is broken; a rebuild salvages orders that are not in
        // Postgres yet.
        await this.#applier.settled();
        await this.#sales.isolate(saleId, () => this.#sales.handleBreak(read, verdict.problem));
        continue;
      }
      log.saw(segment, read);
      if (read.entries.length > 0) log.grow([segment]);
      sound.push(read);
    }
    return {
      reads: sound.filter((read) => this.#sales.held(read.position.saleId)),
      isAll: positions.length < entriesOfBatch,
    };
  }

  #noteSizes({ slices, orders }: Batch): void {
    const entries = slices.reduce((sum, slice) => sum + slice.entries.length, 0);
    this.#ordersPerEntry = Math.max(1, (this.#ordersPerEntry * 3 + orders / entries) / 4);
  }
}

/**
 * The scan beside the loop (log-scanner.ts) may see more of a log than a read that was sent before and is answered
 * later: on a cluster, when another log's server is slow. Such a read is not a loss: the next read will catch up.
 */
function isOvertaken({ head }: LogRead, before: KnownEntry | undefined, newest: KnownEntry): boolean {
  return head !== undefined && newest !== before && head.seq < newest.seq;
}
