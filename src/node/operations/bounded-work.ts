/**
 * Operators' work with an end. Sync may wait for a store for ever; an operator, and the connection that he holds, must
 * not. Also says which store it was, which the clients' own errors seldom do.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { OPERATION_DEADLINE_MS, VERIFY_DEADLINE_MS } from '../../config/ops-deadlines.ts';
import { InvalidInput, StaleGeneration } from '../../engine/errors.ts';
import { monotonicMs } from '../../lib/monotonic.ts';
import { UnknownDeadLetter } from '../../operations/event-operations.ts';
import { MetRebuild, OperationTimedOut, StoresAway } from '../../operations/operation-faults.ts';
import { InsufficientStock, SaleExists, UnknownSale, WrongState } from '../../operations/sale-operations.ts';
import { QUERY_TIMEOUT_MS } from '../../postgres/database.ts';
import type { StoreWatch } from '../stores/store-watch.ts';

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
const ANSWERS = [InsufficientStock, InvalidInput, SaleExists, UnknownDeadLetter, UnknownSale, WrongState];

export type Watch = Pick<StoreWatch, 'away' | 'backendAway'>;

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

export class BoundedWork {
  readonly bounds: Bounds;
  readonly #watch: Watch;

  constructor(watch: Watch, bounds: Bounds = BOUNDS) {
    this.#watch = watch;
    this.bounds = bounds;
  }

  /**
   * The work's result. What was given up goes on unheard.
   * @param changes something is to be changed, and the error says that it may be so all the same
   * @throws what the work throws, StoresAway, OperationTimedOut; MetRebuild for StaleGeneration
   */
  async run<T>(
    name: string,
    work: Promise<T>,
    { deadlineMs = this.bounds.operationMs, changes = false } = {},
  ): Promise<T> {
    const end = new AbortController();
    try {
      return await Promise.race([work, this.#giveUp({ name, deadlineMs, changes }, end.signal)]);
    } catch (error) {
      if (ANSWERS.some((kind) => error instanceof kind) || error instanceof StoresAway) throw error;
      const away = await this.#watch.away();
      if (away.length > 0) throw new StoresAway(away, { changes, cause: error });
      throw error instanceof StaleGeneration ? new MetRebuild(name, { changes, cause: error }) : error;
    } finally {
      end.abort();
    }
  }

  /** Rejects when the work must be given up; once the signal has come it does not matter any more. */
  async #giveUp({ name, deadlineMs, changes }: Operation, signal: AbortSignal): Promise<never> {
    const deadline = monotonicMs() + deadlineMs;
    for (;;) {
      await delay(Math.min(this.bounds.lookEveryMs, deadline - monotonicMs()), undefined, { signal });
      const away = await this.#watch.backendAway();
      if (away !== undefined) throw new StoresAway([away], { changes });
      if (monotonicMs() >= deadline) throw new OperationTimedOut(name, deadlineMs, { changes });
    }
  }
}
