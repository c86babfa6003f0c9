import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import { Deletions } from '../deletion/deletions.ts';
import type { Backend, Sale } from '../engine/contract.ts';
import { StaleGeneration, StockadeError } from '../engine/errors.ts';
import type { Author } from '../engine/sale/author.ts';
import { isRehearsal } from '../engine/sale/rehearsal.ts';
import type { SaleChange } from '../engine/sale/sale-change.ts';
import { parseNewSale, saleToJson } from '../engine/sale/sale-json.ts';
import { unitsLeft } from '../engine/sale/units-left.ts';
import { monotonicMs } from '../lib/monotonic.ts';
import type { PageQuery } from '../operations/checked-input.ts';
import { type Deletion, SaleDeleting } from '../operations/delete-operations.ts';
import type { RebalanceOptions, RebalanceReport } from '../operations/rebalance-operations.ts';
import type { Recovery } from '../operations/recover-operations.ts';
import { DEFAULT_PAGE_SALES, type SalePage, type SaleQuery } from '../operations/sale-list.ts';
import {
  type LedgerPage,
  SaleExists,
  type SaleOperations,
  type SaleStatus,
} from '../operations/sale-operations.ts';
import type { VerifyOptions, VerifyReport } from '../operations/verify-report.ts';
import type { Database } from '../postgres/database.ts';
import { refuseBesideOlderNodes } from '../postgres/older-nodes.ts';
import type { SaleLocks } from '../postgres/sale-locks.ts';
import { archiveSale } from '../rebuild/archive.ts';
import { writeDraft } from '../rebuild/draft.ts';
import { buildNewSale, insertNewSale } from '../rebuild/new-sale.ts';
import { rebuildSale } from '../rebuild/rebuild.ts';
import { Recoveries } from '../rebuild/recovery.ts';
import { readDeletion, readOpenDeletion } from '../sales/deleted-sales.ts';
import { readLedger, readWantedSegments } from '../sales/ledger.ts';
import { countLiveOrders } from '../sales/live-orders.ts';
import { followMovements } from '../sales/movements.ts';
import { SELL_PAST_QUEUES } from '../sales/queue-change.ts';
import { rebalanceSale } from '../sales/rebalance.ts';
import { makeChange, SELL_WITHOUT_TOKENS } from '../sales/sale-changes.ts';
import { readSalePage, readSummedSale, type SummedSale } from '../sales/sale-pages.ts';
import { insertSale, readKnownSale, readPresentSale, type SaleRow } from '../sales/sale-rows.ts';
import { withdraw } from '../sales/withdrawal.ts';
import { repairSale } from '../verify/repair.ts';
import { verifySale } from '../verify/verify.ts';
import type { Ownership } from './ownership.ts';

/** Segments of this many sales are counted in the backend at once. */
const PARALLEL_STATUSES = 100;
/** Longest wait for the sync that builds the sale's state: it may have to drain the logs first. */
const BUILD_WAIT_MS = 30_000;
const BUILD_POLL_MS = 20;

/** For `refuseBesideOlderNodes`. */
const TELL_OF_REHEARSALS = 'tell the shop of the orders of a rehearsal';

/** How the service claims its stores. It is not needed if backend and database certainly belong together. */
export type SaleOwnership = Pick<Ownership, 'claim' | 'discardLeftover'>;

/**
 * The operators' work on Postgres and the backend. Postgres is written first. If this process dies before the backend
 * is updated, sync's reconciler finds the difference and updates it.
 */
export class SaleService implements SaleOperations {
  readonly #db: Database;
  readonly #backend: Backend;
  readonly #locks: SaleLocks;
  readonly #ownership: SaleOwnership | undefined;
  readonly #recoveries: Recoveries;
  readonly #deletions: Deletions;

  constructor(db: Database, backend: Backend, locks: SaleLocks, ownership?: SaleOwnership) {
    this.#db = db;
    this.#backend = backend;
    this.#locks = locks;
    this.#ownership = ownership;
    this.#recoveries = new Recoveries(db, backend, locks, async () => ownership?.claim());
    this.#deletions = new Deletions(db, backend, locks);
  }

  async create(input: unknown, actor: string): Promise<SaleStatus> {
    const { sale, reason } = parseNewSale(input);
    await this.#ownership?.claim();
    if (sale.requireToken) await refuseBesideOlderNodes(this.#db, SELL_WITHOUT_TOKENS);
    if (sale.queue) await refuseBesideOlderNodes(this.#db, SELL_PAST_QUEUES);
    if (isRehearsal(sale.id)) await refuseBesideOlderNodes(this.#db, TELL_OF_REHEARSALS);
    const isBuilt = await this.#insertAndBuild(sale, { actor, reason });
    if (!isBuilt) await this.#build(sale.id, `sale ${sale.id} was created`);
    return this.show(sale.id);
  }

  async list(query: SaleQuery = {}): Promise<SalePage> {
    const { limit = DEFAULT_PAGE_SALES } = query;
    const { sales, next } = await readSalePage(this.#db, { ...query, limit });
    return { sales: await pLimit(PARALLEL_STATUSES).map(sales, (sale) => this.#status(sale)), next };
  }

  async show(saleId: string): Promise<SaleStatus> {
    return this.#status(await readSummedSale(this.#db, saleId));
  }

  /** @param latestMs as for `transactionInTime`. Archiving takes its own time: it can't be repeated with another effect */
  async change(saleId: string, change: SaleChange, author: Author, latestMs?: number): Promise<SaleStatus> {
    if (change.action === 'withdraw')
      await withdraw(this.#db, this.#backend, saleId, change.units, author, latestMs);
    else if (change.action === 'archive') await this.#archive(saleId, author);
    else {
      await makeChange(this.#db, saleId, change, author, { latestMs });
      await followMovements(this.#db, this.#backend, saleId);
      if (change.action === 'resize') await this.#build(saleId, `sale ${saleId} is to be resized`);
    }
    return this.show(saleId);
  }

  async ledger(saleId: string, query: PageQuery = {}): Promise<LedgerPage> {
    return readLedger(this.#db, await this.#row(saleId), query);
  }

  async verify(saleId: string, { repair = false }: VerifyOptions = {}): Promise<VerifyReport> {
    const [db, backend, recoveries] = [this.#db, this.#backend, this.#recoveries];
    return repair ? repairSale({ db, backend, recoveries }, saleId) : verifySale(db, backend, saleId);
  }

  rebalance(saleId: string, options: RebalanceOptions): Promise<RebalanceReport> {
    return rebalanceSale(this.#db, this.#backend, saleId, options);
  }

  async recover(saleId: string): Promise<Recovery> {
    await readPresentSale(this.#db, saleId);
    return this.#recoveries.begin(saleId);
  }

  async recovery(saleId: string): Promise<Recovery> {
    await this.#row(saleId);
    return this.#recoveries.stateOf(saleId);
  }

  async delete(saleId: string, orders: number, author: Author): Promise<Deletion> {
    await this.#ownership?.claim();
    return this.#deletions.delete(saleId, orders, author);
  }

  deletion(saleId: string): Promise<Deletion> {
    return readDeletion(this.#db, saleId);
  }

  /** @returns false if the sale is not built yet, because another process has its lock or rebuilds it */
  async #insertAndBuild(sale: Sale, author: Author): Promise<boolean> {
    if (!(await this.#locks.tryLock(sale.id))) {
      if (!(await insertSale(this.#db, sale, author))) throw await this.#existing(sale.id);
      return false;
    }
    try {
      const leftover = await this.#ownership?.discardLeftover(sale.id);
      const row = await insertNewSale(this.#db, sale, author, leftover);
      if (!row) throw await this.#existing(sale.id);
      await buildNewSale(this.#db, this.#backend, row);
      return true;
    } catch (error) {
      if (error instanceof StaleGeneration) return false;
      throw error;
    } finally {
      await this.#locks.unlock(sale.id);
    }
  }

  /** Why a sale with this id can't be created. */
  async #existing(saleId: string): Promise<StockadeError> {
    const isDeleting = (await readOpenDeletion(this.#db, saleId)) !== undefined;
    return isDeleting ? new SaleDeleting(saleId) : new SaleExists(saleId);
  }

  async #archive(saleId: string, author: Author): Promise<void> {
    await this.#ownership?.claim();
    const stores = { db: this.#db, backend: this.#backend, locks: this.#locks };
    await archiveSale(stores, saleId, author);
  }

  /**
   * Builds the sale's state from Postgres, or waits until the sync that works on the sale has built it.
   * @param what the change made so far, for the error message
   */
  async #build(saleId: string, what: string): Promise<void> {
    const deadline = monotonicMs() + BUILD_WAIT_MS;
    for (;;) {
      if (await this.#locks.tryLock(saleId)) {
        try {
          if (!(await this.#isBuilt(saleId))) await this.#rebuild(saleId);
          return;
        } catch (error) {
          if (!(error instanceof StaleGeneration) || monotonicMs() > deadline) throw error;
        } finally {
          await this.#locks.unlock(saleId);
        }
      } else if (await this.#isBuilt(saleId)) return;
      else if (monotonicMs() > deadline) {
        throw new StockadeError(
          'unavailable',
          `${what}, but its state was not built within ${BUILD_WAIT_MS} ms; sync continues: ` +
            'look at the sale before you repeat the change',
        );
      } else await delay(BUILD_POLL_MS);
    }
  }

  /** For a resize, the sale keeps selling while the draft is written. */
  async #rebuild(saleId: string): Promise<void> {
    await this.#ownership?.claim();
    const [row, wanted] = await Promise.all([this.#row(saleId), readWantedSegments(this.#db, saleId)]);
    const draft = wanted === undefined ? undefined : await writeDraft(this.#db, this.#backend, row, wanted);
    await rebuildSale(this.#db, this.#backend, saleId, undefined, { draft });
  }

  async #isBuilt(saleId: string): Promise<boolean> {
    const [row, wanted, record] = await Promise.all([
      this.#row(saleId),
      readWantedSegments(this.#db, saleId),
      this.#backend.sales.read(saleId),
    ]);
    return record?.generation === row.generation && wanted === undefined;
  }

  #row(saleId: string): Promise<SaleRow> {
    return readKnownSale(this.#db, saleId);
  }

  /** By the first equation of verify, the units in live orders are those that the sale has had, less its stock. */
  async #status(summed: SummedSale): Promise<SaleStatus> {
    const { movedUnits, waitingErasures, liveOrders, behindHead, offeredUnits, ...row } = summed;
    const { sale, state, generation, stock, archivedAt } = row;
    const remaining = archivedAt
      ? stock
      : unitsLeft(await this.#backend.sales.snapshot(sale.id, sale.segments, generation));
    return {
      ...saleToJson(sale),
      state,
      archivedAt: archivedAt?.toISOString(),
      remaining,
      soldOut: remaining === 0,
      generation,
      movedUnits,
      committedOrders: liveOrders ?? (await countLiveOrders(this.#db, sale.id)),
      committedUnits: sale.stock + movedUnits - stock,
      ...(waitingErasures > 0 && { waitingErasures }),
      ...(behindHead !== undefined && { behindHead }),
      ...(offeredUnits !== undefined && { offeredUnits }),
    };
  }
}
