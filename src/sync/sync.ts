/**
 * Sync: carries every order from the order logs into Postgres.
 *
 * A loop of: read the logs that have grown -> apply one batch in one transaction -> tell the watermarks, trim the logs.
 * While a batch commits, the next one grows in the logs, as in a lane. Hints say which logs have grown; a slow sweep over
 * all logs makes up for lost hints, and finds sales that the backend does not have or has in an older generation.
 *
 * Crash points. Before the transaction: nothing has happened. Between it and the trim: the cursors know; the entries
 * are below them and are never read again, and the next `advance` trims them. A second sync on the same sale: its cursors
 * have moved, its transaction fails, it reads the cursors again.
 *
 * A log that does not follow on from the cursor has lost writes. That is never skipped: it is reported, and the sale is
 * rebuilt from Postgres (rebuild.ts).
 */
import type { Backend, LogRead, Pulse, Rejection, Watermark } from '../engine/contract.ts';
import { BackendCorrupt, StaleGeneration } from '../engine/errors.ts';
import { monotonicMs } from '../engine/monotonic.ts';
import { takenAtMs } from '../engine/order-id.ts';
import { applyBatch, CursorMoved, GuardRefused } from './apply.ts';
import { applyEach } from './apply-each.ts';
import { type Batch, batchOf, newestOf, watermarksOf } from './batch.ts';
import { type Cursor, readCursors } from './cursors.ts';
import type { Database } from './database.ts';
import { followState } from './follow-state.ts';
import { checkChain, checkHead, isOn } from './log-chain.ts';
import { rebuildSale } from './rebuild.ts';
import { applyReturns, readRejections } from './returns.ts';
import type { SaleLocks } from './sale-locks.ts';
import { SaleLog } from './sale-log.ts';
import { readSale, readSales, type SaleRow } from './sale-rows.ts';
import type { SyncEvents } from './sync-events.ts';

const SWEEP_MS = 1_000;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 5_000;
const MAX_READ_ENTRIES = 1_000;
/** Before anything is known of the size of entries. */
const FIRST_ORDERS_PER_ENTRY = 16;
/** A sale that another sync works on is asked for again after this time. */
const FOREIGN_MS = 500;
/** A sale that can't be worked on, because of what the backend holds of it, is tried again after this time. */
const FAILED_SALE_MS = 2_000;

export interface SyncOptions {
  readonly db: Database;
  readonly backend: Backend;
  readonly locks: SaleLocks;
  readonly events: SyncEvents;
  /** Orders in one transaction. */
  readonly batchRows: number;
}

export class Sync {
  readonly #options: SyncOptions;
  readonly #logs = new Map<string, SaleLog>();
  /** The logs that were worked on before the loop failed. */
  #lastSeen: SaleLog[] = [];
  readonly #foreignUntil = new Map<string, number>();
  /** Closed sales whose logs are drained: nothing more will come. */
  readonly #finished = new Set<string>();
  #hinted = new Map<string, Set<number>>();
  #ordersPerEntry = FIRST_ORDERS_PER_ENTRY;
  #advancing: Promise<void> = Promise.resolve();
  /** Watermarks that the backend has not taken yet. */
  #untold: Watermark[] = [];
  #stopping = false;
  #sweepDue = 0;
  #wake: (() => void) | undefined;
  #deaf = false;
  #running: Promise<void> | undefined;
  #swept: () => void = () => {};
  /** Resolves after the first sweep: every sale is in the backend then. */
  readonly ready = new Promise<void>((resolve) => {
    this.#swept = resolve;
  });
  #unsubscribe: (() => Promise<void>) | undefined;

  constructor(options: SyncOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#unsubscribe = await this.#options.backend.subscribe({
      hint: (saleId, segments) => this.#hint(saleId, segments),
    });
    this.#running = this.#keepRunning();
  }

  /** Ends after the batch under way. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#wake?.();
    await this.#running;
    await this.#unsubscribe?.();
    await this.#forget();
  }

  async #keepRunning(): Promise<void> {
    let retryMs = RETRY_FIRST_MS;
    while (!this.#stopping) {
      try {
        await this.#step();
        retryMs = RETRY_FIRST_MS;
      } catch (error) {
        this.#options.events.crashed({ error, retryMs });
        await this.#reportBacklog();
        await this.#forget();
        await this.#sleep(retryMs, 'deaf');
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
    }
    await this.#advancing;
  }

  async #step(): Promise<void> {
    if (monotonicMs() >= this.#sweepDue) await this.#sweep();
    const hinted = this.#hinted;
    this.#hinted = new Map();
    for (const [saleId, segments] of hinted) {
      await this.#apart(saleId, async () => (await this.#logOf(saleId))?.grow(segments));
    }
    const batch = batchOf(await this.#read(), this.#options.batchRows);
    if (batch.orders > 0) await this.#apply(batch);
    else if (this.#hinted.size === 0 && !this.#anyGrown()) await this.#sleep(this.#sweepDue - monotonicMs());
  }

  /** Reads the logs that have grown. One in which something was found counts as grown still: there may be more. */
  async #read(): Promise<LogRead[]> {
    const positions = [...this.#logs.values()].flatMap((log) => log.takeGrown());
    const entries = Math.ceil(this.#options.batchRows / Math.max(positions.length, 1) / this.#ordersPerEntry);
    const reads = await this.#options.backend.log.readLog(positions, Math.min(entries, MAX_READ_ENTRIES));
    const sound: LogRead[] = [];
    for (const read of reads) {
      const log = this.#logs.get(read.position.saleId);
      const verdict = checkChain(read);
      if (!log) continue;
      if (!verdict.ok) {
        await this.#apart(read.position.saleId, () => this.#broken(read, verdict.problem));
        continue;
      }
      log.sawHead(read.position.segment, read.head!);
      if (read.entries.length > 0) log.grow([read.position.segment]);
      sound.push(read);
    }
    return sound.filter((read) => this.#logs.has(read.position.saleId));
  }

  async #apply(batch: Batch): Promise<void> {
    const { db, events } = this.#options;
    const began = monotonicMs();
    let rejected = new Map<string, Rejection>();
    try {
      await applyBatch(db, batch);
    } catch (error) {
      if (error instanceof CursorMoved) return this.#forget(salesOf(batch));
      if (!(error instanceof GuardRefused)) throw error;
      rejected = await applyEach(db, batch);
      await this.#takeBack(batch, rejected);
    }
    this.#noteApplied(batch);
    const watermarks = watermarksOf(batch, rejected);
    // Not awaited: the next batch may be read meanwhile.
    void this.#tell(watermarks);
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
      this.#logs.get(slice.from.saleId)?.applied(slice.to, slice.entries.at(-1)!.ordersSoFar);
      entries += slice.entries.length;
    }
    this.#ordersPerEntry = Math.max(1, (this.#ordersPerEntry * 3 + batch.orders / entries) / 4);
  }

  /**
   * One after the other: a watermark means "all up to here", so that a newer one must not get ahead of an older one that
   * names a rejected order. Never rejects: what the backend does not take now is told again, before all that is newer.
   */
  #tell(watermarks: readonly Watermark[]): Promise<void> {
    this.#advancing = this.#advancing.then(async () => {
      const untold = [...this.#untold.splice(0), ...watermarks];
      try {
        await this.#options.backend.log.advance(untold);
      } catch {
        this.#untold = newestOf(untold);
      }
    });
    return this.#advancing;
  }

  async #sweep(): Promise<void> {
    if (this.#untold.length > 0) await this.#tell([]);
    const sales = (await readSales(this.#options.db)).filter((row) => !this.#finished.has(row.sale.id));
    const pulses = await this.#options.backend.sales.pulse(sales.map((row) => row.sale.id));
    let backlog = 0;
    for (const [i, row] of sales.entries()) {
      // Closed sales come last, and nobody waits for them.
      if (row.state === 'closed') this.#swept();
      backlog += (await this.#apart(row.sale.id, () => this.#sweepSale(row, pulses[i]))) ?? 0;
    }
    // Only a whole sweep counts: one that failed is made up for at the next attempt.
    this.#sweepDue = monotonicMs() + SWEEP_MS;
    this.#options.events.backlog({ orders: backlog });
    this.#swept();
  }

  /** Postgres may be away: what the logs hold beyond the newest cursors that this sync knew is its backlog. */
  async #reportBacklog(): Promise<void> {
    if (this.#logs.size > 0) this.#lastSeen = [...this.#logs.values()];
    try {
      for (const log of this.#lastSeen) {
        for (const read of await this.#options.backend.log.readLog(log.positions, 0)) {
          if (read.head) log.sawHead(read.position.segment, read.head);
        }
      }
      this.#options.events.backlog({ orders: this.#lastSeen.reduce((sum, log) => sum + log.backlog, 0) });
    } catch {
      // The backend is away too: the last figure stands.
    }
  }

  /** What is wrong with one sale in the backend must not keep the others' orders from Postgres. */
  async #apart<T>(saleId: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!isOneSalesFault(error)) throw error;
      this.#options.events.saleFailed({ saleId, error });
      await this.#forget([saleId]);
      this.#foreignUntil.set(saleId, monotonicMs() + FAILED_SALE_MS);
      return undefined;
    }
  }

  /** @returns the orders in the sale's logs that are not in Postgres yet */
  async #sweepSale(row: SaleRow, pulse: Pulse | undefined): Promise<number> {
    const { id } = row.sale;
    if (this.#logs.has(id) && this.#logs.get(id)!.generation !== row.generation) await this.#forget([id]);
    const log = await this.#logOf(id);
    if (!log) return 0;
    if (pulse?.generation !== row.generation) {
      if (await this.#isBehind(id)) {
        await this.#rebuild(id, 'the backend does not hold the sale in its newest generation');
      }
      return 0;
    }
    if (pulse.state !== row.state) await followState(this.#options.db, this.#options.backend, id);
    for (const read of await this.#options.backend.log.readLog(log.positions, 0)) {
      const verdict = checkHead(read);
      if (!verdict.ok) await this.#broken(read, verdict.problem);
      else if (read.head!.seq > read.position.seq) log.grow([read.position.segment]);
      if (read.head) log.sawHead(read.position.segment, read.head);
    }
    if (row.state === 'closed' && log.backlog === 0) await this.#finish(id);
    return log.backlog;
  }

  /** Asked again under the lock: another may have built the sale since the sweep began. */
  async #isBehind(saleId: string): Promise<boolean> {
    const [row, [pulse]] = await Promise.all([
      readSale(this.#options.db, saleId),
      this.#options.backend.sales.pulse([saleId]),
    ]);
    return row !== undefined && pulse?.generation !== row.generation;
  }

  /** The sale's log, if this sync works on the sale or can do so from now on. */
  async #logOf(saleId: string): Promise<SaleLog | undefined> {
    const known = this.#logs.get(saleId);
    if (known || this.#finished.has(saleId) || monotonicMs() < (this.#foreignUntil.get(saleId) ?? 0))
      return known;
    if (!(await this.#options.locks.tryLock(saleId))) {
      this.#foreignUntil.set(saleId, monotonicMs() + FOREIGN_MS);
      return undefined;
    }
    this.#foreignUntil.delete(saleId);
    const cursors = await this.#lockedCursors(saleId);
    const log = new SaleLog(saleId, cursors);
    this.#logs.set(saleId, log);
    await this.#resume(saleId, cursors);
    return log;
  }

  /** A lock without a log would be nobody's to unlock: the sale would be foreign to this sync for good. */
  async #lockedCursors(saleId: string): Promise<Cursor[]> {
    try {
      return await readCursors(this.#options.db, saleId);
    } catch (error) {
      await this.#options.locks.unlock(saleId).catch(() => {});
      throw error;
    }
  }

  /** The sync before this one may have died between its commit and telling the backend of it. */
  async #resume(saleId: string, cursors: readonly Cursor[]): Promise<void> {
    await applyReturns(this.#options.db, this.#options.backend, saleId);
    const rejected = await readRejections(this.#options.db, saleId);
    await this.#tell(await this.#applied(cursors, rejected));
    this.#logs.get(saleId)?.grow(cursors.map((cursor) => cursor.segment));
  }

  /** Watermarks of the logs that hold what was applied. The others have lost writes, and must not be trimmed. */
  async #applied(cursors: readonly Cursor[], rejected: readonly Rejection[]): Promise<Watermark[]> {
    const begun = cursors.filter((cursor) => cursor.seq > 0);
    const before = begun.map((cursor) => ({ ...cursor, seq: cursor.seq - 1 }));
    const reads = await this.#options.backend.log.readLog(before, 1);
    return begun
      .filter((cursor, i) => isOn(reads[i]!, cursor))
      .map((cursor) => ({ ...cursor, rejected, tails: [cursor.tail] }));
  }

  /** A log does not follow on. Unless another sync has moved the cursor meanwhile, the backend has lost writes. */
  async #broken({ position, head, fault }: LogRead, problem: string): Promise<void> {
    // What can't be read may hold orders. A rebuild would throw them away: somebody has to look.
    if (fault !== undefined) throw new BackendCorrupt(`log of segment ${position.segment}: ${fault}`);
    const cursors = await readCursors(this.#options.db, position.saleId);
    const cursor = cursors[position.segment];
    if (cursor?.generation !== position.generation || cursor.seq !== position.seq)
      return this.#forget([position.saleId]);
    // A rebuild that was not finished is no loss.
    if (!head?.frozen) {
      this.#options.events.logBroken({ saleId: position.saleId, segment: position.segment, problem });
    }
    await this.#rebuild(position.saleId, problem);
  }

  /** Only with the sale's lock, so that two nodes do not both begin. */
  async #rebuild(saleId: string, why: string): Promise<void> {
    if (!this.#logs.has(saleId)) return;
    const { db, backend, events } = this.#options;
    try {
      const report = await rebuildSale(db, backend, saleId);
      if (!report) return;
      const { rejected, ...built } = report;
      for (const rejection of rejected) events.rejected({ saleId, ...rejection });
      events.rebuilt({ saleId, why, ...built });
    } catch (error) {
      if (!(error instanceof StaleGeneration)) throw error;
    } finally {
      await this.#forget([saleId]);
    }
    this.#hint(saleId, []);
  }

  async #finish(saleId: string): Promise<void> {
    this.#finished.add(saleId);
    await this.#forget([saleId]);
  }

  /** Lets go of sales: their cursors are read again when they are next worked on. */
  async #forget(saleIds: Iterable<string> = [...this.#logs.keys()]): Promise<void> {
    for (const saleId of saleIds) {
      if (!this.#logs.delete(saleId)) continue;
      this.#foreignUntil.delete(saleId);
      await this.#options.locks.unlock(saleId).catch(() => {});
      this.#hint(saleId, []);
    }
  }

  #anyGrown(): boolean {
    for (const log of this.#logs.values()) if (log.hasGrown) return true;
    return false;
  }

  /** A hint wakes the loop, but not from the pause after a failure: under load that would be no pause. */
  #hint(saleId: string, segments: readonly number[]): void {
    let hinted = this.#hinted.get(saleId);
    if (!hinted) {
      hinted = new Set();
      this.#hinted.set(saleId, hinted);
    }
    for (const segment of segments) hinted.add(segment);
    if (!this.#deaf) this.#wake?.();
  }

  async #sleep(ms: number, hearing: 'deaf' | 'to hints' = 'to hints'): Promise<void> {
    if (ms <= 0 || this.#stopping) return;
    this.#deaf = hearing === 'deaf';
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }
}

/** What Redis answers about one sale's keys (`ReplyError`), not a connection or database that fails for all. */
function isOneSalesFault(error: unknown): boolean {
  if (error instanceof BackendCorrupt || error instanceof StaleGeneration) return true;
  return error instanceof Error && error.name === 'ReplyError';
}

function salesOf({ slices }: Batch): Set<string> {
  return new Set(slices.map((slice) => slice.from.saleId));
}
