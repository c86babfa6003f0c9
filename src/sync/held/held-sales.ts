/**
 * The sales that this sync works on, each under its lock, with its cursors in memory. The loop (sync.ts) and the
 * reconciler (reconciler.ts) get a sale's log here, and return sales that they can't continue with.
 *
 *   unknown ──lock──> held ──release──> unknown
 *      └──another sync has the lock──> left alone for FOREIGN_MS
 *   held ──handed over (sale-shares.ts)──> left alone for HANDED_OVER_MS
 *   held ──its data in the backend is invalid──> left alone for FAILED_SALE_MS
 *   held ──lost writes, or an older generation──> rebuilt beside the loop (rebuilds.ts) ──> unknown
 *                                                     └──the rebuild fails──> left alone for FAILED_SALE_MS
 *   held ──closed and drained──> finished ──the backend has lost it──> unknown
 *
 * A sync that takes a sale over announces again what an earlier one may have left unannounced (announcement.ts). A log that does
 * not continue at its cursor has lost writes: that is reported, and the sale is rebuilt from Postgres.
 */
import type { LogPosition, LogRead } from '../../engine/contract.ts';
import { BackendCorrupt, isOneSalesFault } from '../../engine/errors.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { type Cursor, isAt, readCursors } from '../../postgres/cursors.ts';
import { SaleLog } from '../apply/sale-log.ts';
import type { WatermarkTeller } from '../apply/watermark-teller.ts';
import { announceApplied } from './announcement.ts';
import type { Hints } from './hints.ts';
import { publishedGeneration, type RebuildCause, Rebuilds } from './rebuilds.ts';
import type { SyncStores } from './sync-stores.ts';

/** A sale that another sync works on is tried again after this time. */
const FOREIGN_MS = 500;
/** A sale that was handed over is tried again after this time: by then, the other sync has it. */
const HANDED_OVER_MS = 1_000;
/** A sale that failed is tried again after this time. */
const FAILED_SALE_MS = 2_000;

export class HeldSales {
  readonly #stores: SyncStores;
  readonly #teller: WatermarkTeller;
  readonly #hints: Hints;
  readonly #logs = new Map<string, SaleLog>();
  /**
   * The last SaleLog of each released sale, until the sale is taken over again, another sync has it, or it is finished. Its next
   * SaleLog takes over what was seen in the logs.
   */
  readonly #past = new Map<string, SaleLog>();
  readonly #rebuilds: Rebuilds;
  readonly #leftAloneUntil = new Map<string, number>();
  /** Closed sales whose logs are drained: they need no lock. An id stays after the sale is archived or deleted. */
  readonly #finished = new Set<string>();

  constructor(stores: SyncStores, teller: WatermarkTeller, hints: Hints) {
    this.#stores = stores;
    this.#teller = teller;
    this.#hints = hints;
    this.#rebuilds = new Rebuilds(stores, hints, (saleId, error) => this.setAside(saleId, error));
  }

  get logs(): Iterable<SaleLog> {
    return this.#logs.values();
  }

  get isEmpty(): boolean {
    return this.#logs.size === 0;
  }

  /** How many sales this sync has locked, with those that are being rebuilt. */
  get count(): number {
    return this.#logs.size + this.#rebuilds.count;
  }

  get haveGrown(): boolean {
    for (const log of this.#logs.values()) if (log.hasGrown) return true;
    return false;
  }

  /**
   * The positions of logs that have grown, at most `most`. Sales take turns: a sale that was just read goes to the
   * end. So the order of the sales also says which of them are busy (`handOver`).
   */
  takeGrown(most: number): LogPosition[] {
    const positions: LogPosition[] = [];
    for (const log of [...this.#logs.values()]) {
      if (positions.length >= most) break;
      if (!log.hasGrown) continue;
      positions.push(...log.takeGrown(most - positions.length));
      this.#logs.delete(log.saleId);
      this.#logs.set(log.saleId, log);
    }
    return positions;
  }

  /** The sale's log, if this sync works on the sale now. */
  held(saleId: string): SaleLog | undefined {
    return this.#logs.get(saleId);
  }

  /**
   * Whether this sync works on the sale, or may try its lock now. Other hints need not wake the loop: every sync of a shop hears
   * the hints of all nodes, thousands a second, and most of them are about sales of other syncs.
   */
  mayTake(saleId: string): boolean {
    if (this.#logs.has(saleId)) return true;
    const isLeftAlone = monotonicMs() < (this.#leftAloneUntil.get(saleId) ?? 0);
    return !isLeftAlone && !this.#finished.has(saleId) && !this.#rebuilds.has(saleId);
  }

  /** The sale's log, if this sync works on the sale or gets its lock now. */
  async logOf(saleId: string): Promise<SaleLog | undefined> {
    await this.takeOver([saleId]);
    return this.#logs.get(saleId);
  }

  /**
   * Works on these sales from now on, as far as no other sync does. All locks are tried in one statement: beside another sync,
   * which may have a thousand sales, a statement for each would take half a second of every second.
   */
  async takeOver(saleIds: Iterable<string>): Promise<void> {
    const free = [...saleIds].filter((saleId) => !this.#logs.has(saleId) && this.mayTake(saleId));
    if (free.length === 0) return;
    const locked = await this.#stores.locks.tryLocks(free);
    for (const saleId of free) {
      if (locked.has(saleId)) continue;
      this.#leftAloneUntil.set(saleId, monotonicMs() + FOREIGN_MS);
      this.#past.delete(saleId);
    }
    const waiting = new Set(locked);
    try {
      for (const saleId of locked) {
        waiting.delete(saleId);
        await this.isolate(saleId, () => this.#begin(saleId));
      }
    } catch (error) {
      await this.#unlock(waiting);
      throw error;
    }
  }

  /** Takes over sales that another sync has released for this one, without waiting until they are tried again. */
  async takeReleased(saleIds: readonly string[]): Promise<void> {
    for (const saleId of saleIds) this.#leftAloneUntil.delete(saleId);
    await this.takeOver(saleIds);
  }

  /**
   * Releases sales for another sync. The sales are lined up, the one that was read last first, and every n-th of them is released.
   * So busy sales are divided like the others, and a single busy one, which is the first, stays. No batch may be under way.
   * @returns the released sales, the busiest first
   */
  async handOver(count: number): Promise<string[]> {
    const latestFirst = [...this.#logs.keys()].reverse();
    const given = Math.min(count, latestFirst.length);
    const place = (i: number) => Math.ceil(((i + 1) * latestFirst.length) / given) - 1;
    const saleIds = Array.from({ length: given }, (_, i) => latestFirst[place(i)]!);
    for (const saleId of saleIds) {
      this.#dropLog(saleId);
      this.#leftAloneUntil.set(saleId, monotonicMs() + HANDED_OVER_MS);
    }
    await this.#unlock(saleIds);
    return saleIds;
  }

  async #begin(saleId: string): Promise<void> {
    this.#leftAloneUntil.delete(saleId);
    const cursors = await this.#lockedCursors(saleId);
    const log = new SaleLog(saleId, cursors, this.#past.get(saleId));
    this.#past.delete(saleId);
    this.#logs.set(saleId, log);
    await this.announce(saleId, cursors);
    log.grow(cursors.map((cursor) => cursor.segment));
  }

  /**
   * Releases sales. Their cursors are read again when they are next worked on. The hint makes the loop try that soon: their logs
   * may have grown.
   */
  async release(saleIds: Iterable<string> = [...this.#logs.keys()]): Promise<void> {
    for (const saleId of saleIds) {
      if (!this.#dropLog(saleId)) continue;
      this.#leftAloneUntil.delete(saleId);
      await this.#stores.locks.unlock(saleId).catch(() => {});
      this.#hints.add(saleId);
    }
  }

  /** Releases a closed and drained sale for good. */
  async finish(saleId: string): Promise<void> {
    this.#finished.add(saleId);
    await this.release([saleId]);
    this.#past.delete(saleId);
  }

  isFinished(saleId: string): boolean {
    return this.#finished.has(saleId);
  }

  /** The backend's state differs from when the sale was finished: it is worked on again. */
  unfinish(saleId: string): void {
    this.#finished.delete(saleId);
  }

  /** Announces what is in Postgres of the sale. @param cursors if they were just read */
  announce(saleId: string, cursors?: readonly Cursor[]): Promise<void> {
    return announceApplied(this.#stores, this.#teller, saleId, cursors);
  }

  /** Runs work on one sale. Invalid data of this sale must not stop the orders of others: the sale is set aside. */
  async isolate<T>(saleId: string, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!isOneSalesFault(error)) throw error;
      await this.release([saleId]);
      this.setAside(saleId, error);
      return undefined;
    }
  }

  /** Reports a failed sale. Others continue, and this one is tried again later. */
  setAside(saleId: string, error: unknown): void {
    this.#stores.events.saleFailed({ saleId, error });
    this.#leftAloneUntil.set(saleId, monotonicMs() + FAILED_SALE_MS);
  }

  /**
   * Handles a log that does not continue at its cursor: the backend has lost writes, unless another sync has moved the cursor
   * or another process has loaded the segment meanwhile. Reports the loss, and begins a rebuild.
   */
  async handleBreak(read: LogRead, problem: string): Promise<void> {
    const { position, head, fault } = read;
    const { saleId, segment, generation } = position;
    // Unreadable data may hold orders, and a rebuild would discard them: an operator has to look.
    if (fault !== undefined)
      throw new BackendCorrupt(`the log of segment ${segment} can't be read, and may hold orders: ${fault}`);
    const cursors = await readCursors(this.#stores.db, saleId);
    if (!isAt(cursors[segment], position)) return this.release([saleId]);
    // An unfinished rebuild is no loss: the segment is frozen, or the next generation has begun and is not published.
    if (head?.state === 'frozen') return this.rebuild(saleId, problem);
    const published = head ? generation : await publishedGeneration(this.#stores.backend, saleId);
    const isUnpublished = published !== generation;
    if (!head && !isUnpublished && (await this.#isThereNow(position))) return this.release([saleId]);
    const isBegun = published !== undefined && published < generation;
    if (!isBegun) this.#stores.events.logBroken({ saleId, segment, problem });
    this.rebuild(saleId, problem, { isUnpublished });
  }

  /** A rebuild may have been published since the segment was found missing. */
  async #isThereNow(position: LogPosition): Promise<boolean> {
    const [read] = await this.#stores.backend.log.readLog([position], 0);
    return read!.head !== undefined;
  }

  /** Takes the sale out of the loop until it is rebuilt. */
  rebuild(saleId: string, why: string, cause?: RebuildCause): void {
    const log = this.#dropLog(saleId);
    if (log) this.#rebuilds.begin(log, why, cause);
  }

  #dropLog(saleId: string): SaleLog | undefined {
    const log = this.#logs.get(saleId);
    if (!log) return undefined;
    this.#logs.delete(saleId);
    this.#past.set(saleId, log);
    return log;
  }

  /** Resolves when all rebuilds begun so far have ended. */
  rebuilt(): Promise<void> {
    return this.#rebuilds.ended();
  }

  /** Releases all sales, after the rebuilds under way. */
  async stop(): Promise<void> {
    await this.#rebuilds.stop();
    await this.release();
  }

  /** Reads the cursors after locking. If that fails, unlocks. */
  async #lockedCursors(saleId: string): Promise<Cursor[]> {
    try {
      return await readCursors(this.#stores.db, saleId);
    } catch (error) {
      await this.#unlock([saleId]);
      throw error;
    }
  }

  /** Gives up the locks of sales that are not held, or not any more. */
  async #unlock(saleIds: Iterable<string>): Promise<void> {
    for (const saleId of saleIds) await this.#stores.locks.unlock(saleId).catch(() => {});
  }
}
