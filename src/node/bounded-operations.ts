/**
 * The operators' work with an end. Sync may wait for a store for ever; an operator, and the connection that he holds,
 * must not. Also says which store it was, which the clients' own errors seldom do.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { OPERATION_DEADLINE_MS, VERIFY_DEADLINE_MS } from '../config/ops-deadlines.ts';
import { InvalidInput } from '../engine/errors.ts';
import { monotonicMs } from '../engine/monotonic.ts';
import { OperationTimedOut, StoresAway } from '../http/ops-faults.ts';
import { QUERY_TIMEOUT_MS } from '../sync/database.ts';
import {
  SaleExists,
  type SaleOperations,
  type SaleStatus,
  UnknownSale,
  type VerifyReport,
  WrongState,
} from '../sync/operations.ts';
import { SaleService } from '../sync/sale-service.ts';
import { StoreWatch } from './store-watch.ts';
import type { Stores } from './stores.ts';

/**
 * While work goes on, the stock's store is asked this often whether it answers: a frozen Redis is not waited for until
 * the deadline. Postgres is not asked, because a statement in it has a bound of its own and may keep PGlite's one session.
 */
const LOOK_EVERY_MS = 5_000;

if (OPERATION_DEADLINE_MS <= QUERY_TIMEOUT_MS) {
  throw new Error(
    `OPERATION_DEADLINE_MS ${OPERATION_DEADLINE_MS} must be above QUERY_TIMEOUT_MS, which is ${QUERY_TIMEOUT_MS}`,
  );
}

/** Answers to what was asked, and no faults of the stores. */
const ANSWERS = [InvalidInput, SaleExists, UnknownSale, WrongState];

type Watch = Pick<StoreWatch, 'away' | 'backendAway'>;

export interface Bounds {
  readonly operationMs: number;
  readonly verifyMs: number;
  readonly lookEveryMs: number;
}

const BOUNDS: Bounds = {
  operationMs: OPERATION_DEADLINE_MS,
  verifyMs: VERIFY_DEADLINE_MS,
  lookEveryMs: LOOK_EVERY_MS,
};

interface Operation {
  readonly name: string;
  readonly deadlineMs: number;
  readonly changes: boolean;
}

/** Each throws, beside what SaleOperations says, StoresAway and OperationTimedOut. What was given up goes on unheard. */
export class BoundedOperations implements SaleOperations {
  readonly #work: SaleOperations;
  readonly #watch: Watch;
  readonly #bounds: Bounds;

  constructor(work: SaleOperations, watch: Watch, bounds: Bounds = BOUNDS) {
    this.#work = work;
    this.#watch = watch;
    this.#bounds = bounds;
  }

  create(input: unknown): Promise<SaleStatus> {
    return this.#change('create', this.#work.create(input));
  }

  list(): Promise<SaleStatus[]> {
    return this.#bounded('list', this.#work.list());
  }

  show(saleId: string): Promise<SaleStatus> {
    return this.#bounded('show', this.#work.show(saleId));
  }

  pause(saleId: string): Promise<SaleStatus> {
    return this.#change('pause', this.#work.pause(saleId));
  }

  resume(saleId: string): Promise<SaleStatus> {
    return this.#change('resume', this.#work.resume(saleId));
  }

  close(saleId: string): Promise<SaleStatus> {
    return this.#change('close', this.#work.close(saleId));
  }

  verify(saleId: string): Promise<VerifyReport> {
    return this.#bounded('verify', this.#work.verify(saleId), { deadlineMs: this.#bounds.verifyMs });
  }

  #change(name: string, work: Promise<SaleStatus>): Promise<SaleStatus> {
    return this.#bounded(name, work, { changes: true });
  }

  async #bounded<T>(
    name: string,
    work: Promise<T>,
    { deadlineMs = this.#bounds.operationMs, changes = false } = {},
  ): Promise<T> {
    const end = new AbortController();
    try {
      return await Promise.race([work, this.#giveUp({ name, deadlineMs, changes }, end.signal)]);
    } catch (error) {
      if (ANSWERS.some((kind) => error instanceof kind) || error instanceof StoresAway) throw error;
      const away = await this.#watch.away();
      throw away.length > 0 ? new StoresAway(away, { changes, cause: error }) : error;
    } finally {
      end.abort();
    }
  }

  /** Rejects when the work must be given up; once the signal has come it does not matter any more. */
  async #giveUp({ name, deadlineMs, changes }: Operation, signal: AbortSignal): Promise<never> {
    const deadline = monotonicMs() + deadlineMs;
    for (;;) {
      await delay(Math.min(this.#bounds.lookEveryMs, deadline - monotonicMs()), undefined, { signal });
      const away = await this.#watch.backendAway();
      if (away !== undefined) throw new StoresAway([away], { changes });
      if (monotonicMs() >= deadline) throw new OperationTimedOut(name, deadlineMs, { changes });
    }
  }
}

export function boundedOperations(stores: Stores): SaleOperations {
  const { db, backend, locks } = stores;
  return new BoundedOperations(new SaleService(db, backend, locks), new StoreWatch(stores));
}
