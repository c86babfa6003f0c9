/**
 * The reconciler compares all sales in Postgres and the backend (a sweep), because hints can be lost. It also counts the
 * backlog. It finds
 *
 * - logs that have grown without a hint,
 * - sales that the backend does not have, or has in an older generation,
 * - states and rules that the backend has missed,
 * - returns and operators' changes that were not finished,
 * - units that the backend has lost, and watermarks that it did not take or has lost.
 *
 *   resting ──due──> scanning, beside the loop ──> scanned ──the loop has repaired the findings──> resting
 *                        └──failed──> the loop fails with the error ──> resting, and due
 *
 * So a sweep has two parts: the scan (log-scanner.ts), and the repair of what it has found. Orders don't wait for the scan, only
 * for repairs: the loop makes them, after it has read the data again.
 */

import { StrayCopies } from '../../deletion/stray-copies.ts';
import type { SaleVersion } from '../../engine/contract.ts';
import { StaleGeneration } from '../../engine/errors.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { applySomeReturns, salesWithReturns } from '../../orders/returns.ts';
import { followState } from '../../sales/follow-state.ts';
import { readWantedSegments } from '../../sales/ledger.ts';
import { finishMovements, readOverdueSales } from '../../sales/movements.ts';
import { type OpenWork, readOpenWork } from '../../sales/open-work.ts';
import { readSale } from '../../sales/sale-rows.ts';
import { checkHead, checkPublished } from '../apply/log-chain.ts';
import type { SaleLog } from '../apply/sale-log.ts';
import type { WatermarkTeller } from '../apply/watermark-teller.ts';
import type { HeldSales } from '../held/held-sales.ts';
import { publishedGeneration } from '../held/rebuilds.ts';
import type { SyncStores } from '../held/sync-stores.ts';
import { Erasures } from './erasures.ts';
import { isAnnounced, isAsWanted, LogScanner, type Seen } from './log-scanner.ts';
import { Resizes } from './resizes.ts';
import { type LostUnits, SupplyCheck } from './supply-check.ts';

/** Pause between two sweeps, unless the last one has left returns behind. */
const PAUSE_MS = 1_000;

/** The loop does not wait for the row of one sale, because the other sales would wait too. The next sweep tries again. */
const UNLESS_LOCKED = { ifUnlocked: true };

/** The findings of a scan. */
interface Findings {
  /** Sales that need work: not closed, or closed and held by this sync. */
  readonly atWork: readonly Seen[];
  /** Other closed sales that need work. */
  readonly closed: readonly Seen[];
  /** Sales with returns that are not applied. */
  readonly returning: readonly string[];
  readonly lost: readonly LostUnits[];
  readonly open: OpenWork;
}

export class Reconciler {
  readonly #stores: SyncStores;
  readonly #teller: WatermarkTeller;
  readonly #sales: HeldSales;
  readonly #scanner: LogScanner;
  readonly #supplies: SupplyCheck;
  readonly #onScanned: () => void;
  readonly #resizes: Resizes;
  readonly #erasures: Erasures;
  readonly #copies: StrayCopies;
  /** The logs that sync worked on before the loop failed. Their backlog is reported while Postgres is away. */
  #lastSeen: SaleLog[] = [];
  #dueAtMs = 0;
  #scanning: Promise<void> | undefined;
  #scanned: Findings | { readonly error: unknown } | undefined;
  #resolveReady: () => void = () => {};
  /** Resolves after the first sweep and its rebuilds: then every sale that is not closed is in the backend. */
  readonly ready = new Promise<void>((resolve) => {
    this.#resolveReady = resolve;
  });

  /**
   * @param onScanned called when a scan has ended, successfully or not
   * @param catchUp makes sync apply the logs, however high the load is
   */
  constructor(
    stores: SyncStores,
    teller: WatermarkTeller,
    sales: HeldSales,
    onScanned: () => void,
    catchUp: () => void,
  ) {
    this.#stores = stores;
    this.#teller = teller;
    this.#sales = sales;
    this.#scanner = new LogScanner(stores, sales);
    this.#supplies = new SupplyCheck(stores, sales);
    this.#onScanned = onScanned;
    this.#resizes = new Resizes(stores, sales, catchUp);
    this.#erasures = new Erasures(stores, sales, catchUp);
    this.#copies = new StrayCopies(stores);
  }

  /**
   * Milliseconds until the loop must call `advance`; 0 or less: now. While a scan is under way, its end wakes the loop.
   */
  get dueInMs(): number {
    if (this.#scanned) return 0;
    return this.#scanning ? PAUSE_MS : this.#dueAtMs - monotonicMs();
  }

  /**
   * Starts a scan, or repairs the findings of a finished one.
   * @param settled awaited before any repair, which relies on the cursors in Postgres
   * @throws the error of a failed scan
   */
  async advance(settled: () => Promise<void>): Promise<void> {
    if (!this.#scanned) this.#scanning ??= this.#scan();
    // At the start and after a failure orders wait for the scan anyway, and another failure belongs to the loop.
    if (this.#sales.isEmpty) await this.#scanning;
    if (!this.#scanned) return;
    if ('error' in this.#scanned) throw this.#scanned.error;
    const { atWork, closed, returning, lost, open } = this.#scanned;
    if (atWork.length + closed.length + returning.length + lost.length > 0) await settled();
    for (const { sale } of atWork) {
      // A sale that was finished, archived and deleted may have been made again with the same id.
      if (sale.state !== 'closed') this.#sales.unfinish(sale.id);
    }
    await this.#sales.takeOver(atWork.map(({ sale }) => sale.id));
    for (const seen of atWork) await this.#repairIsolated(seen);
    void this.#sales.rebuilt().then(this.#resolveReady);
    for (const seen of closed) {
      this.#sales.unfinish(seen.sale.id);
      await this.#repairIsolated(seen);
    }
    const areLeft = await this.#applyReturns(returning);
    for (const units of lost) await this.#sales.isolate(units.saleId, () => this.#restore(units));
    if (open.movements || this.#resizes.areDrafting) await this.#resizes.advance(settled);
    if (open.erasures) await this.#erasures.advance(settled);
    if (open.movements) await this.#finishOverdue(settled);
    // Only now: if a repair throws, the loop discards the findings (`abandon`), and the next scan begins at once.
    this.#scanned = undefined;
    this.#dueAtMs = monotonicMs() + (areLeft ? 0 : PAUSE_MS);
    this.#stores.events.backlog({ orders: backlogOf(this.#sales.logs) });
  }

  /** Hints may have been lost: the next scans look at every sale. */
  hintsLost(): void {
    this.#scanner.hintsLost();
  }

  /** Resolves when no scan and no draft is under way. */
  async stop(): Promise<void> {
    await Promise.all([this.#scanning, this.#resizes.stop()]);
  }

  /** Resolves when no scan is under way; the findings of the last one are discarded. */
  async abandon(): Promise<void> {
    await this.#scanning;
    this.#scanned = undefined;
  }

  /**
   * Reports the backlog while Postgres can't be reached: what the logs hold beyond the newest cursors that this sync
   * knew.
   */
  async reportBacklog(): Promise<void> {
    const held = [...this.#sales.logs];
    if (held.length > 0) this.#lastSeen = held;
    try {
      for (const log of this.#lastSeen) {
        for (const read of await this.#stores.backend.log.readLog(log.positions, 0)) {
          log.saw(read.position.segment, read);
        }
      }
      this.#stores.events.backlog({ orders: backlogOf(this.#lastSeen) });
    } catch {
      // The backend can't be reached either: the last figure stands.
    }
  }

  async #scan(): Promise<void> {
    try {
      await this.#teller.tellAgain();
      const atWork = await this.#scanner.atWork();
      const { needingWork: closed, drained } = await this.#scanner.closed();
      const open = await readOpenWork(this.#stores.db);
      if (open.deletions) await this.#copies.removeNext();
      const lost = await this.#supplies.next(drained);
      const returning = open.returns ? await salesWithReturns(this.#stores.db) : [];
      this.#scanned = { atWork, closed, returning, lost, open };
    } catch (error) {
      this.#scanned = { error };
    }
    this.#scanning = undefined;
    this.#onScanned();
  }

  /**
   * A page of each sale, because orders wait meanwhile.
   * @returns whether others are left, for the next sweeps
   */
  async #applyReturns(saleIds: readonly string[]): Promise<boolean> {
    const { db, backend } = this.#stores;
    let areLeft = false;
    for (const saleId of saleIds) {
      if (await this.#sales.isolate(saleId, () => applySomeReturns(db, backend, saleId))) areLeft = true;
    }
    return areLeft;
  }

  async #repairIsolated(seen: Seen): Promise<void> {
    await this.#sales.isolate(seen.sale.id, () => this.#repair(seen).catch(unlessRebuilt));
  }

  /** Finishes operators' changes that were left unfinished, of all sales. */
  async #finishOverdue(settled: () => Promise<void>): Promise<void> {
    const { db, backend } = this.#stores;
    const overdue = await readOverdueSales(db);
    // A batch under way has rows of sales locked.
    if (overdue.length > 0) await settled();
    for (const saleId of overdue) {
      await this.#sales.isolate(saleId, () =>
        finishMovements(db, backend, saleId, UNLESS_LOCKED).catch(unlessRebuilt),
      );
    }
  }

  async #repair({ sale, version }: Seen): Promise<void> {
    const { db, backend } = this.#stores;
    const { id, generation, state } = sale;
    const held = this.#sales.held(id);
    if (held && held.generation !== generation) await this.#sales.release([id]);
    const log = await this.#sales.logOf(id);
    if (sale.isArchived) return this.#repairArchived(id, version);
    // The sale was rebuilt since the scan, so the scanned record says nothing about these segments. The next scan
    // covers it.
    if (log?.generation !== generation) return;
    if (version?.generation !== generation) {
      if (await this.#isBackendOutdated(id)) {
        this.#sales.rebuild(id, 'the backend does not hold the sale in its newest generation', {
          isUnpublished: true,
        });
      }
      return;
    }
    const reads = await backend.log.readLog(log.positions, 0);
    for (const read of reads) {
      const head = checkHead(read, log.newest[read.position.segment]);
      const verdict = head.ok ? checkPublished(read) : head;
      if (!verdict.ok) return this.#sales.handleBreak(read, verdict.problem);
      log.saw(read.position.segment, read);
    }
    log.growUnread();
    if (!reads.every(isAnnounced)) await this.#sales.announce(id);
    // After the check, because segments that must be rebuilt take no state.
    const follows = [version, ...reads.map(({ head }) => head!)].every((seen) => isAsWanted(sale, seen));
    if (!follows) await followState(db, backend, id, UNLESS_LOCKED);
    else if (state === 'closed' && log.backlog === 0 && !(await this.#isToBeResized(id))) {
      await this.#sales.finish(id);
    }
  }

  /** Begins a rebuild, which gives the segments what Postgres has. If the sale was rebuilt since the scan, they have it already. */
  async #restore({ saleId, generation, problem }: LostUnits): Promise<void> {
    this.#sales.unfinish(saleId);
    const log = await this.#sales.logOf(saleId);
    if (log?.generation === generation) this.#sales.rebuild(saleId, problem);
  }

  /** A rebuild of an archived sale removes it from the backend (rebuild.ts). */
  async #repairArchived(saleId: string, version: SaleVersion | undefined): Promise<void> {
    if (version === undefined) return this.#sales.finish(saleId);
    if (await this.#isBackendOutdated(saleId))
      this.#sales.rebuild(saleId, 'the backend holds a sale that is archived');
  }

  /**
   * An operator asked for a resize before the sale was closed. If the sale were released, no sync would carry it out.
   */
  async #isToBeResized(saleId: string): Promise<boolean> {
    return (await readWantedSegments(this.#stores.db, saleId)) !== undefined;
  }

  /**
   * Whether the backend lacks the sale's generation, or still has a sale that is archived. Read again under the lock: another process
   * may have rebuilt the sale since the scan.
   */
  async #isBackendOutdated(saleId: string): Promise<boolean> {
    const { db, backend } = this.#stores;
    const [row, published] = await Promise.all([readSale(db, saleId), publishedGeneration(backend, saleId)]);
    if (row?.archivedAt) return published !== undefined;
    return row !== undefined && published !== row.generation;
  }
}

/** If another process rebuilds the sale meanwhile, that is no failure: a later sweep tries again. */
function unlessRebuilt(error: unknown): void {
  if (!(error instanceof StaleGeneration)) throw error;
}

function backlogOf(logs: Iterable<SaleLog>): number {
  let orders = 0;
  for (const log of logs) orders += log.backlog;
  return orders;
}
