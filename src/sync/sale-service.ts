import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Backend, SaleState } from '../engine/contract.ts';
import { StaleGeneration, StockadeError } from '../engine/errors.ts';
import { parseSale, saleToJson } from '../engine/sale-json.ts';
import { unitsLeft } from '../engine/units-left.ts';
import { type Database, rows } from './database.ts';
import { followState } from './follow-state.ts';
import {
  SaleExists,
  type SaleOperations,
  type SaleStatus,
  UnknownSale,
  type VerifyReport,
  WrongState,
} from './operations.ts';
import { rebuildSale } from './rebuild.ts';
import type { SaleLocks } from './sale-locks.ts';
import { insertSale, readSale, readSales, type SaleRow } from './sale-rows.ts';
import { verifySale } from './verify.ts';

const PARALLEL_STATUSES = 8;
/** How long to wait for another node that builds the sale's state already. */
const BUILD_WAIT_MS = 10_000;
const BUILD_POLL_MS = 20;

/** What each state may become, and what that is called. */
const TRANSITIONS: Record<SaleState, { readonly from: readonly SaleState[]; readonly called: string }> = {
  paused: { from: ['open', 'paused'], called: 'paused' },
  open: { from: ['paused', 'open'], called: 'resumed' },
  closed: { from: ['open', 'paused', 'closed'], called: 'closed' },
};

/**
 * The operators' work on Postgres and the backend. Postgres is written first; if this process dies before the backend
 * follows, sync's sweep sees the difference and makes it follow.
 */
export class SaleService implements SaleOperations {
  readonly #db: Database;
  readonly #backend: Backend;
  readonly #locks: SaleLocks;

  constructor(db: Database, backend: Backend, locks: SaleLocks) {
    this.#db = db;
    this.#backend = backend;
    this.#locks = locks;
  }

  async create(input: unknown): Promise<SaleStatus> {
    const sale = parseSale(input);
    if (!(await insertSale(this.#db, sale))) throw new SaleExists(sale.id);
    await this.#build(sale.id);
    return this.show(sale.id);
  }

  async list(): Promise<SaleStatus[]> {
    return pLimit(PARALLEL_STATUSES).map(await readSales(this.#db), (row) => this.#status(row));
  }

  async show(saleId: string): Promise<SaleStatus> {
    return this.#status(await this.#row(saleId));
  }

  pause(saleId: string): Promise<SaleStatus> {
    return this.#setState(saleId, 'paused');
  }

  resume(saleId: string): Promise<SaleStatus> {
    return this.#setState(saleId, 'open');
  }

  close(saleId: string): Promise<SaleStatus> {
    return this.#setState(saleId, 'closed');
  }

  async verify(saleId: string): Promise<VerifyReport> {
    return verifySale(this.#db, this.#backend, saleId);
  }

  /** Builds the sale's state, or waits for the sync that was faster. */
  async #build(saleId: string): Promise<void> {
    const deadline = Date.now() + BUILD_WAIT_MS;
    while (!(await this.#isBuilt(saleId))) {
      if (await this.#locks.tryLock(saleId)) {
        try {
          if (!(await this.#isBuilt(saleId))) await rebuildSale(this.#db, this.#backend, saleId);
        } catch (error) {
          if (!(error instanceof StaleGeneration) || Date.now() > deadline) throw error;
        } finally {
          await this.#locks.unlock(saleId);
        }
      } else if (Date.now() > deadline) {
        throw new StockadeError(
          'unavailable',
          `sale ${saleId} was created, but its state was not built within ${BUILD_WAIT_MS} ms; sync goes on with it: ` +
            'look at the sale before you create it again',
        );
      } else await delay(BUILD_POLL_MS);
    }
  }

  async #isBuilt(saleId: string): Promise<boolean> {
    const [row, record] = await Promise.all([this.#row(saleId), this.#backend.sales.read(saleId)]);
    return record?.generation === row.generation;
  }

  async #setState(saleId: string, state: SaleState): Promise<SaleStatus> {
    const { from, called } = TRANSITIONS[state];
    const changed = await rows(
      this.#db,
      'UPDATE sales SET state = ? WHERE id = ? AND state = ANY (?) RETURNING id',
      [state, saleId, [...from]],
    );
    const row = await this.#row(saleId);
    if (changed.length === 0) throw new WrongState(saleId, row.state, called);
    await followState(this.#db, this.#backend, saleId);
    return this.show(saleId);
  }

  async #row(saleId: string): Promise<SaleRow> {
    const row = await readSale(this.#db, saleId);
    if (!row) throw new UnknownSale(saleId);
    return row;
  }

  async #status(row: SaleRow): Promise<SaleStatus> {
    const { sale, state, generation } = row;
    const [sold] = await rows<{ orders: string; units: string }>(
      this.#db,
      `SELECT count(*) AS orders, coalesce(sum(quantity), 0) AS units FROM orders
       WHERE sale_id = ? AND status IN ('unpaid', 'paid', 'redeemed')`,
      [sale.id],
    );
    const remaining = await remainingUnits(this.#backend, row);
    return {
      ...saleToJson(sale),
      state,
      remaining,
      soldOut: remaining === 0,
      generation,
      committedOrders: Number(sold!.orders),
      committedUnits: Number(sold!.units),
    };
  }
}

async function remainingUnits(backend: Backend, { sale, generation }: SaleRow): Promise<number | undefined> {
  return unitsLeft(await backend.sales.snapshot(sale.id, sale.segments, generation));
}
