/**
 * The sweep: a look at all sales, which makes up for what the loop (sync.ts) was not told. It finds logs that have grown
 * although no hint came, sales that the backend does not have or has in an older generation, states and rules that the backend
 * has missed, returns and operators' changes that nobody has followed up, and watermarks that it has not taken. It also
 * counts the backlog.
 *
 *   resting ──due──> looking, beside the loop ──> looked ──the loop has mended what is amiss──> resting
 *                        └──failed──> the loop fails with it ──> resting, and due
 *
 * Orders don't wait for the look (log-scanner.ts), only for what is amiss: that is left to the loop, and read again there.
 */
import { StaleGeneration } from '../engine/errors.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import { applyReturns, salesWithReturns } from '../orders/returns.ts';
import { followState } from '../sales/follow-state.ts';
import { readWantedSegments } from '../sales/ledger.ts';
import { followForsaken, readForsakenSales } from '../sales/movements.ts';
import { readSale } from '../sales/sale-rows.ts';
import { checkHead, checkPublished } from './apply/log-chain.ts';
import type { SaleLog } from './apply/sale-log.ts';
import type { WatermarkTeller } from './apply/watermark-teller.ts';
import type { HeldSales } from './held-sales.ts';
import { isAsWanted, LogScanner, type Seen } from './log-scanner.ts';
import { Resizes } from './resizes.ts';
import type { SyncStores } from './sync-stores.ts';

const SWEEP_MS = 1_000;

/** What is amiss: sales to be worked on, and sales with returns that nobody has applied. */
interface Amiss {
  readonly atWork: readonly Seen[];
  readonly closed: readonly Seen[];
  readonly returning: readonly string[];
}

export class Reconciler {
  readonly #stores: SyncStores;
  readonly #teller: WatermarkTeller;
  readonly #sales: HeldSales;
  readonly #scanner: LogScanner;
  readonly #ended: () => void;
  readonly #resizes: Resizes;
  /** The logs that were worked on before the loop failed. */
  #lastSeen: SaleLog[] = [];
  #dueAtMs = 0;
  #looking: Promise<void> | undefined;
  #looked: Amiss | { readonly error: unknown } | undefined;
  #swept: () => void = () => {};
  /** Resolves after the first sweep and its rebuilds: every sale that is not closed is in the backend then. */
  readonly ready = new Promise<void>((resolve) => {
    this.#swept = resolve;
  });

  /**
   * @param ended is called when a look has ended, well or not
   * @param catchUp lets sync apply what is in the logs, however busy the node is
   */
  constructor(
    stores: SyncStores,
    teller: WatermarkTeller,
    sales: HeldSales,
    ended: () => void,
    catchUp: () => void,
  ) {
    this.#stores = stores;
    this.#teller = teller;
    this.#sales = sales;
    this.#scanner = new LogScanner(stores, sales);
    this.#ended = ended;
    this.#resizes = new Resizes(stores, sales, catchUp);
  }

  /** Milliseconds until the loop is needed here; not above 0 if it is needed now. While a look is under way, its end tells. */
  get dueInMs(): number {
    if (this.#looked) return 0;
    return this.#looking ? SWEEP_MS : this.#dueAtMs - monotonicMs();
  }

  /**
   * Begins a look, or ends the sweep of one that has ended.
   * @param settled is awaited before anything is mended: it is judged by the cursors in Postgres
   * @throws what the look has failed with
   */
  async goOn(settled: () => Promise<void>): Promise<void> {
    if (!this.#looked) this.#looking ??= this.#look();
    // At the start, and after a failure: orders have to wait for it, and another failure is the loop's.
    if (this.#sales.isEmpty) await this.#looking;
    if (!this.#looked) return;
    if ('error' in this.#looked) throw this.#looked.error;
    const { db, backend } = this.#stores;
    const { atWork, closed, returning } = this.#looked;
    if (atWork.length + closed.length + returning.length > 0) await settled();
    for (const seen of atWork) await this.#mendApart(seen);
    void this.#sales.rebuilt().then(this.#swept);
    for (const seen of closed) {
      this.#sales.unfinish(seen.sale.id);
      await this.#mendApart(seen);
    }
    for (const saleId of returning) await this.#sales.apart(saleId, () => applyReturns(db, backend, saleId));
    await this.#resizes.goOn(settled);
    await this.#followForsaken();
    // Only a whole sweep counts: one that failed is made up for at the next attempt.
    this.#looked = undefined;
    this.#dueAtMs = monotonicMs() + SWEEP_MS;
    this.#stores.events.backlog({ orders: backlogOf(this.#sales.logs) });
  }

  /** Resolves when nothing is under way. */
  async stop(): Promise<void> {
    await Promise.all([this.#looking, this.#resizes.stop()]);
  }

  /** Resolves when no look is under way; what the last one came to is no longer of interest. */
  async abandon(): Promise<void> {
    await this.#looking;
    this.#looked = undefined;
  }

  /** Postgres may be away: what the logs hold beyond the newest cursors that this sync knew is its backlog. */
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
      // The backend is away too: the last figure stands.
    }
  }

  async #look(): Promise<void> {
    try {
      await this.#teller.tellAgain();
      const atWork = await this.#scanner.atWork();
      const closed = await this.#scanner.closed();
      this.#looked = { atWork, closed, returning: await salesWithReturns(this.#stores.db) };
    } catch (error) {
      this.#looked = { error };
    }
    this.#looking = undefined;
    this.#ended();
  }

  async #mendApart(seen: Seen): Promise<void> {
    await this.#sales.apart(seen.sale.id, () => this.#mend(seen));
  }

  /** Of all sales too. One that is being built anew is no failure: what is open then is followed up behind that. */
  async #followForsaken(): Promise<void> {
    const { db, backend } = this.#stores;
    for (const saleId of await readForsakenSales(db)) {
      await this.#sales.apart(saleId, () =>
        followForsaken(db, backend, saleId).catch((error) => {
          if (!(error instanceof StaleGeneration)) throw error;
        }),
      );
    }
  }

  async #mend({ sale, version }: Seen): Promise<void> {
    const { db, backend } = this.#stores;
    const { id, generation, state } = sale;
    const held = this.#sales.held(id);
    if (held && held.generation !== generation) await this.#sales.forget([id]);
    const log = await this.#sales.logOf(id);
    // Built anew since it was seen: its record of before says nothing about these segments. The next look sees it.
    if (log?.generation !== generation) return;
    if (version?.generation !== generation) {
      if (await this.#isBehind(id)) {
        this.#sales.rebuild(id, 'the backend does not hold the sale in its newest generation');
      }
      return;
    }
    const reads = await backend.log.readLog(log.positions, 0);
    for (const read of reads) {
      const head = checkHead(read, log.newest[read.position.segment]);
      const verdict = head.ok ? checkPublished(read) : head;
      if (!verdict.ok) return this.#sales.broken(read, verdict.problem);
      log.saw(read.position.segment, read);
    }
    log.growUnread();
    // Behind the check: segments that have to be built anew follow no state.
    const follows = [version, ...reads.map(({ head }) => head!)].every((seen) => isAsWanted(sale, seen));
    if (!follows) await followState(db, backend, id);
    else if (state === 'closed' && log.backlog === 0 && !(await this.#isToBeResized(id))) {
      await this.#sales.finish(id);
    }
  }

  /** Wanted before it was closed, of somebody who may have died: without its log nobody would carry it out. */
  async #isToBeResized(saleId: string): Promise<boolean> {
    return (await readWantedSegments(this.#stores.db, saleId)) !== undefined;
  }

  /** Asked again under the lock: another may have built the sale since the sweep began. */
  async #isBehind(saleId: string): Promise<boolean> {
    const [row, [version]] = await Promise.all([
      readSale(this.#stores.db, saleId),
      this.#stores.backend.sales.versions([saleId]),
    ]);
    return row !== undefined && version?.generation !== row.generation;
  }
}

function backlogOf(logs: Iterable<SaleLog>): number {
  let orders = 0;
  for (const log of logs) orders += log.backlog;
  return orders;
}
